"""Record what explorers show of a device: every setting of some kernels, checked and timed.

    python tools/record_landscape.py --kernels 3 --seconds 200

The same command continues a file that exists. A child process runs the kernels. NVIDIA's compiler
takes longer than the kernel, and uses one core. So all cores compile the next settings meanwhile,
into a cache that the child uses, too.
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
from itertools import product
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import common
from registers import VERBOSE, registers

from gemmlab import catalog, model, trial
from gemmlab.cli import count, device_option, kernel_numbers, record_file
from gemmlab.ladder import KernelSpec, Key, Limits, find, in_order
from gemmlab.measurement import peaks, records
from gemmlab.measurement.landscape import MEASURED, Landscape, fingerprint
from gemmlab.opencl.devices import Device, find_device
from gemmlab.sandbox.client import Outcome

#: M = N = K at which the defaults of every kernel are recorded as well.
SIZES = (256, 512, 1024, 2048, 3072, 4096, 6144, 8192)
#: Timed runs of a setting.
REPEATS = 5
#: Of a kernel with more legal settings, those are recorded that differ from the defaults in at most
#: two parameters, so that every picture over two parameters is whole around the defaults.
MOST = 3000
#: Seconds between two writes of the file.
SAVE_EVERY = 15.0

#: Registers per work-item and bytes spilled, where the compiler reports them.
Used = tuple[int, int] | None


class Recording(Landscape):
    """A landscape that grows; `rows` are those of the file and the new ones."""

    def save(self, path: Path) -> None:
        kernels = {name: self.kernels[name] for name in in_order(self.kernels)}
        records.write(path, {**self.head, "kernels": kernels})

    def forget(self, kernel: Key) -> None:
        """Drop what was recorded of a kernel."""
        self.kernels.pop(kernel, None)
        self._rows.pop(kernel, None)

    def table(self, kernel: Key) -> dict[str, Any]:
        """What is recorded of a kernel."""
        spec = find(kernel)
        head = {"text": fingerprint(spec.file), "columns": [*spec.defaults, *MEASURED]}
        empty = {**head, "sizes": {}, "settings": [], "refused": []}
        return self.kernels.setdefault(spec.number, empty)

    def add(self, kernel: Key, params: dict[str, int], row: list) -> None:
        """Add a setting: `MEASURED`, or a sentence that says why it does not count."""
        self.rows(kernel)[tuple(params.values())] = row
        part = "refused" if isinstance(row[0], str) else "settings"
        self.table(kernel)[part].append([*params.values(), *row])


class Job(NamedTuple):
    """A setting of a kernel to run at M = N = K = size."""

    kernel: Key
    params: dict[str, int]
    size: int


def record(
    device: Device, kernels: Iterable[Key], size: int, path: Path, seconds: float = inf
) -> Recording:
    """Record what is missing of these kernels' settings at M = N = K = size, and of their defaults
    at the `SIZES` from a sixteenth to twice of it. Nothing begins after so many seconds; an
    interrupt loses nothing. Raises ValueError if the file is of another device, driver or size.
    """
    end = time.monotonic() + seconds
    landscape = begin(path, device, size)
    jobs = missing(landscape, device, list(kernels))
    saved = time.monotonic()
    try:
        with compiled_ahead(device, jobs) as used:
            for job, of_job in zip(common.begun(jobs, end, "setting"), used, strict=False):
                outcome = trial(
                    job.kernel, job.size, params=job.params, device=device, repeats=REPEATS
                )
                add(landscape, device, job, outcome, of_job)
                if time.monotonic() > saved + SAVE_EVERY:
                    landscape.save(path)
                    saved = time.monotonic()
    finally:
        landscape.save(path)
    return landscape


@contextmanager
def compiled_ahead(device: Device, jobs: list[Job]) -> Iterator[Iterator[Used]]:
    """What NVIDIA's compiler reports of each job; nothing on other devices."""
    if "nvidia" not in device.features:
        yield iter([None] * len(jobs))
        return
    with tempfile.TemporaryDirectory() as cache:
        os.environ.update({"CUDA_CACHE_PATH": cache, **VERBOSE})  # for the child of `trial`
        pool = ThreadPoolExecutor(os.cpu_count())
        try:
            yield pool.map(lambda job: registers(job.kernel, job.params, device, cache), jobs)
        finally:
            pool.shutdown(cancel_futures=True)


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


def begin(path: Path, device: Device, size: int) -> Recording:
    """The landscape in a file if it can be continued, or an empty one."""
    origin = records.origin(common.command())
    if not path.exists():
        head = {**common.head(device), "begun": origin["date"], "size": size}
        peak = round(peaks.peaks(device).gflops, 1)
        return Recording({**head, "peak": peak, "limits": asdict(device.limits)})
    try:
        found = Landscape.load(path)
    except ValueError as error:
        raise ValueError(f"{path} is no landscape: {error}") from None
    landscape = Recording(found.head, found.kernels)
    common.continued(path, device, size=size)
    for kernel in [kernel for kernel in landscape.kernels if not landscape.current(kernel)]:
        print(f"kernel {kernel}: its text has changed since it was recorded; it is recorded again")
        landscape.forget(kernel)
    landscape.head |= origin
    return landscape


def missing(landscape: Recording, device: Device, kernels: list[Key]) -> list[Job]:
    """What is left to record: the defaults, size by size, then settings."""
    jobs = [
        Job(kernel, find(kernel).fit(device.limits), size)
        for size in SIZES
        for kernel in kernels
        if landscape.size / 16 <= size <= 2 * landscape.size
        and size not in landscape.over_sizes(kernel)
    ]
    for kernel in kernels:
        recorded = landscape.rows(kernel)
        wanted = settings(find(kernel), device.limits)
        new = [setting for setting in wanted if tuple(setting.values()) not in recorded]
        jobs += [Job(kernel, setting, landscape.size) for setting in new]
    return jobs


def add(landscape: Recording, device: Device, job: Job, outcome: Outcome, used: Used) -> None:
    """Put what came of a setting into the landscape."""
    spec = find(job.kernel)
    gflops = common.short(outcome.result.gflops) if outcome.ok else 0.0
    if job.params == spec.fit(device.limits):
        landscape.table(job.kernel)["sizes"][str(job.size)] = gflops
    if job.size != landscape.size or tuple(job.params.values()) in landscape.rows(job.kernel):
        return
    if outcome.ok:
        registers, spilled = used or (None, None)
        occupied = occupancy(device, spec, job.params, registers)
        landscape.add(job.kernel, job.params, [gflops, registers, spilled, occupied])
    else:
        landscape.add(job.kernel, job.params, [" ".join(outcome.verdict.split())[:160]])


def occupancy(
    device: Device, spec: KernelSpec, params: dict[str, int], registers: int | None
) -> int | None:
    """Per cent of the work-items that a multiprocessor holds; None if `registers` or the chip is
    unknown.
    """
    # OpenCL reports less than the whole local memory of a multiprocessor
    chips = {chip.name: chip for chip in (model.H200, model.K40M)}
    chip = chips.get(device.name)
    if registers is None or chip is None:
        return None
    across, down = spec.local_size(params)
    limits = model.occupancy(chip, across * down, registers, spec.local_memory(params))
    return round(100 * min(limits.values()) * across * down / chip.work_items)


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
    for kernel in recorded.kernels:
        best = recorded.best(kernel)
        rate = "no setting is right"
        if best:
            rate = f"at best {best.gflops:,.0f} GFLOPS with {best.params}"
        print(f"kernel {kernel}: {len(recorded.rows(kernel)):,} settings, {rate}")
    print(f"wrote {path}; the same command continues it")


if __name__ == "__main__":
    common.run(main)
