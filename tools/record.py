"""Record what chapters, explorers and the model of `matmul` show or need of a device.

    python tools/record.py landscape --kernels 3 --seconds 200     settings of the explorers
    python tools/record.py candidates results/my_candidates.json   kernels that matmul may choose
    python tools/record.py chapters results/my_chapters.json       sweeps that the chapters show

`landscape` and `candidates` continue a file that exists. `python -m gemmlab bench --json` records
the kernels themselves.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from math import inf
from typing import Any

import common
import in_cuda
import record_candidates
import record_landscape
from registers import registers

from gemmlab import catalog
from gemmlab.catalog import Key
from gemmlab.cli import count, kernel_numbers, record_file
from gemmlab.measurement import records, sweeps, timing
from gemmlab.opencl import launch, ptx
from gemmlab.opencl.devices import Device, find_device

#: The switches of kernel 8: READONLY and SHUFFLE.
SWITCHES = {"plain": (0, 0), "read-only": (1, 0), "shuffles": (0, 1), "both": (1, 1)}
#: The sweeps that the chapters show: kernel, the parameter that varies, its values, fixed
#: parameters. "WPTM WPTN" varies both together.
CURVES: dict[str, tuple[Key, str, tuple[int, ...], dict[str, int]]] = {
    "02 TS": (2, "TS", (4, 8, 16, 32), {}),
    "03 WPT": (3, "WPT", (1, 2, 4, 8, 16), {"TS": 32}),
    "04 WIDTH": (4, "WIDTH", (1, 2, 4, 8), {"TS": 32}),
    "06 block": (6, "WPTM WPTN", (2, 4, 8), {"TSM": 64, "TSN": 64, "TSK": 16}),
    "07 WIDTH": (7, "WIDTH", (1, 2, 4, 8), {}),
    "09 TSK, kernel 9": (9, "TSK", (8, 16, 32), {}),
    "10 size": (10, "size", (1000, 1016, 1023, 1024, 1025, 1032, 1088, 1151, 1152, 1153), {}),
    "10 large sizes": (10, "size", (500, 1000, 2000, 4000), {}),
}


def chapters(device: Device, size: int) -> Iterator[dict[str, Any]]:
    """What the chapters show of a recorded device, as far as it is measured, after each step;
    sweeps over parameters are at M = N = K = size.
    """
    parts = "curves", "passes", "registers", "instructions", "transposing", "switches"
    recorded: dict[str, Any] = {"size": size, **{part: {} for part in parts}}
    for title, (kernel, name, values, params) in CURVES.items():
        results = sweeps.sweep(kernel, name, values, size, params, device, repeats=5)
        if name == "size":
            rates = {value: result.pipeline_gflops for value, result in results.items()}
            recorded["passes"] |= {value: result.passes_ms for value, result in results.items()}
        else:
            rates = {value: result.gflops for value, result in results.items()}
            recorded["registers"][title] = {
                value: registers(kernel, result.params, device) for value, result in results.items()
            }
        recorded["curves"][title] = rates
        print(title, {value: round(rate) for value, rate in rates.items()}, flush=True)
        yield recorded
    for wpt in CURVES["03 WPT"][2]:
        if text := ptx.ptx(launch.kernel(3, {"TS": 32, "WPT": wpt}, device)):
            recorded["instructions"][wpt] = ptx.instructions(text)
    for name in ("coalesced", "naive"):
        recorded["transposing"][name] = sweeps.transposing(size, name == "coalesced", device)
    for name, (readonly, shuffle) in SWITCHES.items():
        params = {"READONLY": readonly, "SHUFFLE": shuffle}
        result = timing.measure(8, size, params=params, device=device, repeats=10)
        recorded["switches"][name] = {"gflops": result.gflops, "path": result.path, "ok": result.ok}
        yield recorded
    if "nvidia" in device.features:
        recorded["cuda"], recorded["opencl"] = {}, {}
        for number in in_cuda.KERNELS:
            recorded["cuda"][number] = in_cuda.measure(number, size)
            result = timing.measure(number, size, device=device, repeats=10)
            recorded["opencl"][number] = result.gflops
            yield recorded


# Commands


def run_landscape(given: argparse.Namespace) -> None:
    device = find_device(given.device)
    path = given.out or record_landscape.file_of(device.name)
    recorded = record_landscape.record(device, given.kernels, given.size, path, given.seconds)
    for kernel in recorded.kernels:
        best = recorded.best(kernel)
        rate = f"at best {best.gflops:,.0f} GFLOPS with {best.params}" if best else "none is right"
        print(f"kernel {kernel}: {len(recorded.rows(kernel)):,} settings, {rate}")
    print(f"wrote {path}; the same command continues it")


def run_candidates(given: argparse.Namespace) -> None:
    record_candidates.record(find_device(given.device), given.file, given.seconds)


def run_chapters(given: argparse.Namespace) -> None:
    device = find_device(given.device)
    head = common.head(device, given.title)
    for recorded in chapters(device, given.size):
        records.write(given.file, head | recorded)


def parser() -> argparse.ArgumentParser:
    top = common.parser(__doc__)
    commands = top.add_subparsers(required=True)
    explorers = commands.add_parser("landscape", help="every setting that the explorers offer")
    explorers.set_defaults(run=run_landscape)
    words = "such as 1,3,10 (default: all)"
    explorers.add_argument("--kernels", type=kernel_numbers, default=list(catalog), help=words)
    words = "the file to write (default: landscape_DEVICE.json in results/)"
    explorers.add_argument("--out", type=record_file, metavar="FILE", help=words)
    candidates = commands.add_parser("candidates", help="every kernel that matmul may choose")
    candidates.set_defaults(run=run_candidates)
    shown = commands.add_parser("chapters", help="the sweeps that the chapters show")
    shown.set_defaults(run=run_chapters)
    shown.add_argument("--title", help="a short name of the device for charts")
    for command in (candidates, shown):
        command.add_argument("file", type=record_file, help="the file to write")
    for command in (explorers, shown):
        command.add_argument("--size", type=count, default=4096, help="M = N = K (default: 4096)")
    for command in (explorers, candidates):
        words = "begin nothing more after that time"
        command.add_argument("--seconds", type=float, default=inf, help=words)
    for command in (explorers, candidates, shown):
        common.add_device(command)
    return top


def main(arguments: list[str] | None = None) -> None:
    given = parser().parse_args(arguments)
    given.run(given)


if __name__ == "__main__":
    common.run(main)
