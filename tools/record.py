"""Record what explorers and the model of `matmul` need of a device.

    python tools/record.py landscape --kernels 3 --seconds 200     settings of the explorers
    python tools/record.py candidates results/my_candidates.json   kernels that matmul may choose

Both continue a file that exists. `python -m gemmlab bench --json` records the kernels themselves.
"""

from __future__ import annotations

import argparse
from contextlib import suppress
from math import inf

import common
import record_candidates
import record_landscape

from gemmlab import catalog
from gemmlab.cli import count, kernel_numbers, output_file
from gemmlab.measurement.landscape import Landscape
from gemmlab.opencl.devices import find_device


def run_landscape(given: argparse.Namespace) -> None:
    device = find_device(given.device)
    path = given.out or record_landscape.file_of(device.name)
    with suppress(KeyboardInterrupt):
        record_landscape.record(device, given.kernels, given.size, path, given.seconds)
    recorded = Landscape.load(path)
    for kernel in recorded.kernels:
        best = recorded.best(kernel)
        rate = f"at best {best.gflops:,.0f} GFLOPS with {best.params}" if best else "none is right"
        print(f"kernel {kernel}: {len(recorded.rows(kernel)):,} settings, {rate}")
    print(f"wrote {path}; the same command continues it")


def run_candidates(given: argparse.Namespace) -> None:
    record_candidates.record(find_device(given.device), given.file, given.seconds, given.random)


def parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    top = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    commands = top.add_subparsers(required=True)
    explorers = commands.add_parser("landscape", help="every setting that the explorers offer")
    explorers.set_defaults(run=run_landscape)
    words = "such as 1-3,10 (default: all)"
    explorers.add_argument("--kernels", type=kernel_numbers, default=list(catalog), help=words)
    explorers.add_argument("--size", type=count, default=4096, help="M = N = K (default: 4096)")
    explorers.add_argument(
        "--seconds", type=float, default=inf, help="begin no more after that time"
    )
    words = "the file to write (default: landscape_DEVICE.json in results/)"
    explorers.add_argument("--out", type=output_file, metavar="FILE", help=words)
    candidates = commands.add_parser("candidates", help="every kernel that matmul may choose")
    candidates.set_defaults(run=run_candidates)
    words = "compile for at most half of that time, begin no more shapes after it"
    candidates.add_argument("--seconds", type=float, default=inf, help=words)
    words = "so many random shapes (default: 240)"
    candidates.add_argument("--random", type=count, default=240, metavar="N", help=words)
    candidates.add_argument("file", type=output_file, help="the file to write")
    for command in (explorers, candidates):
        common.add_device(command)
    return top


def main(arguments: list[str] | None = None) -> None:
    given = parser().parse_args(arguments)
    given.run(given)


if __name__ == "__main__":
    common.run(main)
