"""Record what explorers show of a device: every setting of some kernels, checked and timed.

    python tools/record_landscape.py --kernels 3 --seconds 200

The same command continues a file that exists. A child process runs the kernels. NVIDIA's compiler
takes longer than the kernel, and uses one core. So all cores compile the next settings, into a
cache that the child uses, too. Nothing is timed meanwhile: it made some rates half as high.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from itertools import chain, product
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import common
from registers import VERBOSE, registers

from gemmlab import catalog, trial
from gemmlab.cli import count, device_option, kernel_numbers, record_file
from gemmlab.ladder import KernelSpec, Key, Limits, find, in_order
from gemmlab.measurement import peaks, records
from gemmlab.measurement.landscape import Landscape, fingerprint
from gemmlab.opencl.devices import Device, find_device
from gemmlab.sandbox.client import Outcome

#: M = N = K at which the defaults of every kernel are recorded as well.
SIZES = (256, 512, 1024, 2048, 3072, 4096, 6144, 8192)
#: Timed runs of a setting.
REPEATS = 5
#: Of a kernel with more legal settings, those are recorded that differ from the defaults in at most
#: two parameters, so that every picture over two parameters is whole around the defaults.
MOST = 3000
#: Settings that are compiled together.
BATCH = 64
#: Seconds between two writes of the file.
SAVE_EVERY = 15.0

#: Registers per work-item and bytes spilled, where the compiler reports them.
Used = tuple[int, int] | None


class Job(NamedTuple):
    """A setting of a kernel to run at M = N = K = size."""

    kernel: Key
    params: dict[str, int]
    size: int


def record(
    device: Device, kernels: Iterable[Key], size: int, path: Path, seconds: float = inf
) -> Landscape:
    """Record what is missing of these kernels' settings at M = N = K = size, and of their defaults
    at the `SIZES` from a sixteenth to twice of it. Nothing begins after so many seconds; an
    interrupt loses nothing. Raises ValueError if the file is of another device, driver or size.
    """
    end = time.monotonic() + seconds
    head = common.session(device) | {"limits": limits_of(device)}
    if not path.exists():
        sizes = {"m": size, "n": size, "k": size}
        peak = {"metric": "peak GFLOPS", "median": round(peaks.peaks(device).gflops, 1)}
        records.append(path, head, [{"series": "landscape", **sizes, **peak}])
    landscape = begin(path, device, size)
    jobs = missing(landscape, device, list(kernels))
    new, saved = list[dict[str, Any]](), time.monotonic()
    try:
        with compiled_in_batches(device, jobs) as used:
            for job, of_job in zip(common.begun(jobs, end, "setting"), used, strict=False):
                outcome = trial(
                    job.kernel, job.size, params=job.params, device=device, repeats=REPEATS
                )
                new += rows_of(job, outcome, of_job, job.size == size, device)
                if time.monotonic() > saved + SAVE_EVERY:
                    records.append(path, head, new)
                    new, saved = [], time.monotonic()
    finally:
        records.append(path, head, new)
    return Landscape(records.read(path))


def limits_of(device: Device) -> dict[str, Any]:
    """What the device allows, as JSON has it."""
    return asdict(device.limits) | {"per_dimension": [*device.limits.per_dimension]}


@contextmanager
def compiled_in_batches(device: Device, jobs: list[Job]) -> Iterator[Iterator[Used]]:
    """What NVIDIA's compiler reports of each job; nothing on other devices."""
    if "nvidia" not in device.features:
        yield iter([None] * len(jobs))
        return
    with tempfile.TemporaryDirectory() as cache, ThreadPoolExecutor(os.cpu_count()) as pool:
        os.environ.update({"CUDA_CACHE_PATH": cache, **VERBOSE})  # for the child of `trial`

        def used(job: Job) -> Used:
            return registers(job.kernel, job.params, device, cache)

        batches = (jobs[i : i + BATCH] for i in range(0, len(jobs), BATCH))
        yield chain.from_iterable([*pool.map(used, batch)] for batch in batches)


def file_of(device: str) -> Path:
    """Where a device's landscape goes: "NVIDIA H200" has ``results/landscape_nvidia_h200.json``."""
    name = re.sub("[^a-z0-9]+", "_", device.lower()).strip("_")
    return common.ROOT / "results" / f"landscape_{name}.json"


def settings(spec: KernelSpec, limits: Limits) -> list[dict[str, int]]:
    """The settings of a kernel to record on a device with `limits`, none twice, defaults first."""
    start, offered = spec.fit(limits), product(*(p.choices for p in spec.params))
    every = [start, *(dict(zip(start, values, strict=True)) for values in offered)]
    legal = [setting for setting in every if not spec.problems(setting, limits)]
    if len(legal) > MOST:
        legal = [s for s in legal if sum(s[name] != start[name] for name in s) <= 2]
    return list({tuple(setting.values()): setting for setting in legal}.values())


def begin(path: Path, device: Device, size: int) -> Landscape:
    """The landscape in a file. Raises ValueError for one of another device, driver or size."""
    try:
        landscape = Landscape(records.read(path))
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{path} is not a landscape: {error}") from None
    recorded = landscape.origin.device, landscape.origin.driver, landscape.size
    here = device.name, device.driver, size
    if recorded != here:
        raise ValueError(f"{path} was recorded with {recorded}, not with {here}; name another file")
    return landscape


def missing(landscape: Landscape, device: Device, kernels: list[Key]) -> list[Job]:
    """What is left to record: the defaults, size by size, then settings."""
    jobs = [
        Job(kernel, find(kernel).fit(device.limits), size)
        for size in SIZES
        for kernel in kernels
        if landscape.size / 16 <= size <= 2 * landscape.size
        and size not in landscape.over_sizes(kernel)
    ]
    for kernel in kernels:
        for setting in settings(find(kernel), device.limits):
            job = Job(kernel, setting, landscape.size)
            if job not in jobs and tuple(setting.values()) not in landscape.rows(kernel):
                jobs.append(job)
    return jobs


def rows_of(
    job: Job, outcome: Outcome, used: Used, is_setting: bool, device: Device
) -> list[dict[str, Any]]:
    """The rows of a setting, and of the defaults at a size."""
    spec, size = find(job.kernel), job.size
    shared = {"kernel": spec.number, "code": fingerprint(spec.file), **job.params}
    shared |= {"m": size, "n": size, "k": size}
    if outcome.ok:
        row = {**shared, "metric": "GFLOPS", "median": common.short(outcome.result.gflops)}
    else:
        why = " ".join(outcome.verdict.split())[:160]
        row = {**shared, "metric": "refused", "note": why}
    found = []
    if job.params == spec.fit(device.limits):
        found.append({"series": "sizes", **row})
    if is_setting:
        compiled = dict(zip(("registers", "spilled"), used, strict=True)) if used else {}
        found.append({"series": "landscape", **row, **compiled})
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = common.parser(__doc__)
    words = "such as 1,3,10 (default: all)"
    parser.add_argument("--kernels", type=kernel_numbers, default=list(catalog), help=words)
    words = "the file to write (default: landscape_DEVICE.json in results/)"
    parser.add_argument("--out", type=record_file, metavar="FILE", help=words)
    parser.add_argument("--size", type=count, default=4096, help="M = N = K (default: 4096)")
    common.add_seconds(parser)
    device_option(parser)
    given = parser.parse_args(arguments)
    device = find_device(given.device)
    path = given.out or file_of(device.name)
    recorded = record(device, given.kernels, given.size, path, given.seconds)
    for kernel in in_order(recorded.settings):
        best = recorded.best(kernel)
        rate = "no setting is right"
        if best:
            rate = f"at best {best.gflops:,.0f} GFLOPS with {best.params}"
        print(f"kernel {kernel}: {len(recorded.rows(kernel)):,} settings, {rate}")
    print(f"wrote {path}; the same command continues it")


if __name__ == "__main__":
    common.run(main)
