"""Search for the kernels and tiles that `matmul` and `gemm` should choose; add them to a table.

    python tools/tune.py kernels results/choice.json --sizes 1024,4096
    python tools/tune.py tiles results/choice.json --letter d --sizes 1000,2048
    python tools/tune.py constants results/choice.json --letter d

`kernels` searches the kernels of the ladder, by strategy for edges. `constants` measures those of
the generator's tiles of warps.

`tiles` is AutoGEMM's profiler (D. Tanner, AutoGEMM, documentation of clBLAS, 2015, section III): at
each size every tile is timed where it divides the sizes, which ranks it. It continues where it
stopped. What is not exact never counts.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import cache, partial
from math import isqrt, prod
from pathlib import Path
from typing import Any

import common
import numpy as np
import pyopencl as cl
import pyopencl.array as cla
from compare import operands
from tqdm import tqdm

from gemmlab import check, matmul, trial
from gemmlab.catalog import KernelSpec, Key, ParameterError, catalog
from gemmlab.cli import count, kernel_numbers, output_file, size_list
from gemmlab.generate import table as choices
from gemmlab.generate.cost import Constants
from gemmlab.generate.precision import PRECISIONS
from gemmlab.generate.schedule import UNITS
from gemmlab.generate.table import Sizes
from gemmlab.generate.tiles import OperandLayout, by_rule, complete_tile, configure
from gemmlab.generate.written import written
from gemmlab.measurement import clock, records
from gemmlab.opencl.devices import Device, find_device

Tile = dict[str, int]
#: A kernel's number and all of its parameters.
Setting = tuple[Key, dict[str, int]]
#: Rates a setting at M, N, K of the column-major product in GFLOPS; 0 if it does not count.
Rater = Callable[[Setting, Sizes], float]

#: A neighbour has to be so much faster that the search moves on to it.
CLEARLY = 1.02


# Kernels


def by_trial(setting: Setting, sizes: Sizes, device: Device) -> float:
    """Check and time a setting in a child process, which is stopped if it takes too long."""
    kernel, params = setting
    outcome = trial(kernel, *sizes, params=params, device=device, repeats=5, most_seconds=4.0)
    if outcome.ok:
        return outcome.result.pipeline_gflops
    print(f"  kernel {kernel} {params} does not count: {outcome.verdict.splitlines()[0]}")
    return 0.0


@dataclass(frozen=True)
class Search:
    """What to search among.

    Attributes:
        device: where.
        edges: the strategy whose kernels to try.
        kernels: only these, if there are any.
        tries: parameter sets of each kernel to begin with.
        steps: how often at most the best setting moves on to a neighbour.
    """

    device: Device
    edges: str = "pad"
    kernels: Sequence[Key] = ()
    tries: int = 6
    steps: int = 100

    def specs(self) -> list[KernelSpec]:
        """The kernels to try."""
        return [
            spec
            for kernel, spec in catalog.items()
            if (not self.kernels or kernel in self.kernels)
            and not spec.tensor
            and self.edges == spec.edges
        ]


def best_row(search: Search, size: int | Sizes, rate: Rater) -> dict[str, Any]:
    """The row of the table for a size: the best of a sample of all kernels, then of its neighbours.

    Args:
        search: what to search among.
        size: M = N = K, or M, N and K of the column-major product.
        rate: rates a setting.
    """
    device, sizes = search.device, choices.dimensions(size)
    kernel, params = choices.nearest(device, sizes, search.edges)
    rated: dict[tuple, float] = {}

    def best(settings: list[Setting]) -> Setting:
        choices = [(kernel, tuple(params.items())) for kernel, params in settings]
        new = [choice for choice in dict.fromkeys(choices) if choice not in rated]
        rated.update({choice: rate((choice[0], dict(choice[1])), sizes) for choice in new})
        number, pairs = max(choices, key=lambda choice: rated[choice])
        return number, dict(pairs)

    def rate_of(setting: Setting) -> float:
        return rated[setting[0], tuple(setting[1].items())]

    # what the table has counts, too: a new row must be better
    leader = best([(kernel, dict(params)), *samples(search, sizes)])
    for _ in range(search.steps):
        following = best([leader, *neighbours(search, leader)])
        if rate_of(following) <= CLEARLY * rate_of(leader):
            break
        leader = following
    gflops = rate_of(leader)
    print(f"  best: kernel {leader[0]} {leader[1]}, {gflops:,.1f} GFLOPS of {len(rated)} tried")
    row = {"size": size if isinstance(size, int) else list(size), "kernel": leader[0]}
    return {**row, "params": leader[1], "gflops": round(gflops, 1)}


def samples(search: Search, sizes: Sizes) -> list[Setting]:
    """Some settings of every kernel, and all that the tables have."""
    limits, smallest = search.device.limits, min(sizes)
    rows = [row for kind in choices.table() for row in choices.kernel_rows(kind, search.edges)]
    found = []
    for spec in search.specs():
        offers = [spec.fit(limits), *spec.sample(limits, search.tries, seed=smallest)]
        offers += [row["params"] for row in rows if row["kernel"] == spec.number]
        for params in offers:
            large = max(spec.minimum_sizes(params)[:2]) > 8 * smallest
            if not large and not spec.problems(params, limits):
                found.append((spec.number, params))
    return found


def neighbours(search: Search, setting: Setting) -> list[Setting]:
    """Legal settings one step of one parameter away; rules may move other parameters, too."""
    kernel, params = setting
    spec, limits = catalog[kernel], search.device.limits
    found = []
    for p in spec.params:
        below = [value for value in p.choices if value < params[p.name]][-1:]
        above = [value for value in p.choices if value > params[p.name]][:1]
        for value in (*below, *above):
            moved, _ = spec.nearest_legal({**params, p.name: value}, p.name, limits)
            if not spec.problems(moved, limits):
                found.append((kernel, moved))
    return found


# Tiles of the generator

#: On a GPU: work-items of a group, micro-tiles, depths, stages.
SPACE = (
    ((16, 16), (8, 16), (16, 8), (8, 8)),
    ((2, 2), (4, 2), (4, 4), (8, 4), (4, 8), (6, 6), (8, 8)),
    (8, 16),
    (1, 2),
)
#: On a CPU: work-items of a group, vectors of rows and columns of a micro-tile, numbers in a
#: vector.
CPU_SPACE = (
    ((1, 1), (4, 1), (16, 1), (4, 4), (1, 8)),
    ((1, 4), (1, 6), (1, 8), (1, 12), (2, 4), (2, 6)),
    (4, 8, 16),
)
#: Tiles of warps: the fastest on an H200 at some size, or on paper for some random
#: shapes: TSM, TSN, WPTM, WPTN, TSK, STAGES. Those of float64, complex128 and float16 are for
#: tensor cores.
WARPS: dict[str, tuple[tuple[int, ...], ...]] = {
    "s": (),
    "d": (
        (128, 128, 4, 8, 8, 3), (128, 64, 8, 8, 8, 4), (64, 128, 4, 8, 8, 4), (64, 128, 8, 4, 8, 4),
        (64, 64, 4, 8, 8, 6), (64, 64, 4, 8, 16, 3), (128, 32, 8, 4, 8, 4), (32, 128, 4, 8, 8, 4),
        (64, 32, 4, 4, 8, 8), (32, 32, 4, 4, 16, 6), (16, 64, 2, 8, 16, 4), (32, 16, 2, 4, 16, 6),
        (16, 16, 2, 2, 16, 6),
    ),
    "c": (
        (128, 128, 8, 8, 8, 2), (64, 128, 8, 4, 8, 3), (64, 64, 8, 8, 8, 5), (64, 64, 8, 4, 8, 4),
        (64, 64, 8, 4, 16, 2), (32, 128, 4, 8, 8, 4), (64, 32, 8, 4, 8, 4), (32, 32, 4, 4, 16, 4),
        (128, 16, 8, 4, 8, 4), (16, 64, 2, 8, 8, 6), (64, 16, 4, 4, 16, 4), (16, 32, 2, 4, 16, 4),
        (16, 16, 2, 2, 16, 4),
    ),
    "z": (
        (64, 64, 2, 8, 8, 3), (64, 64, 4, 8, 8, 3), (32, 64, 2, 4, 8, 4), (64, 32, 4, 4, 8, 4),
        (32, 32, 4, 4, 8, 6), (64, 16, 2, 4, 8, 4), (16, 64, 2, 4, 8, 4), (32, 16, 2, 4, 8, 6),
        (16, 32, 2, 4, 8, 6), (16, 16, 2, 2, 8, 6),
    ),
    "h": (
        (256, 128, 8, 16, 32, 2), (128, 256, 8, 16, 32, 2), (128, 128, 8, 16, 32, 3),
        (128, 128, 8, 8, 32, 3), (128, 128, 4, 16, 32, 3), (128, 64, 8, 8, 32, 4),
        (64, 128, 4, 16, 32, 4), (64, 128, 8, 8, 32, 4), (64, 64, 4, 8, 32, 6),
        (64, 64, 4, 8, 64, 3), (128, 32, 4, 8, 32, 4), (32, 128, 4, 8, 32, 4),
        (64, 32, 4, 4, 32, 6), (32, 32, 2, 4, 64, 4), (64, 16, 2, 4, 64, 4), (16, 64, 2, 4, 64, 4),
    ),
}  # fmt: skip
#: Tiles of warpgroups for float16: TSM, TSN, TSK, STAGES.
WARPGROUPS = (
    (128, 256, 32, 2), (128, 256, 16, 4), (128, 128, 32, 3), (128, 192, 32, 2),
    (256, 128, 32, 2), (64, 256, 32, 2), (64, 256, 16, 4), (64, 128, 32, 4), (128, 64, 32, 4),
    (64, 64, 64, 3), (64, 64, 32, 6),
)  # fmt: skip
#: Registers of 32 bits that accumulators take on a GPU: with more, none are left for anything else;
#: with fewer, a work-item loads more than it multiplies.
REGISTERS = range(32, 129)
#: Tiles in a row of the table.
KEPT = 4
#: A tile's sides along M, N and K.
SIDES = ("TSM", "TSN", "TSK")
#: Steps of k of the products that show a tile's constants.
STEPS = (1024, 4096)
#: Work-groups per compute unit where many share it.
MANY = 16
#: Seconds of a launch with its first loads. These five were measured on an H200.
START = 2.5e-6
#: Seconds to store 1024 bytes of a tile of C.
STORE = 4e-8
#: Seconds to share a tile.
CUT = 1e-6
#: Seconds for each work-group that shares it.
PART = 1.5e-7
#: Seconds to add 1024 bytes of each of them.
ADD = 9e-9


def candidates(device: Device, letter: str) -> list[Tile]:
    """The legal tiles to try for a precision, none twice, that of the rule first."""
    found = [by_rule(device, letter, (4096, 4096, 4096))]
    if device.kind == "GPU":
        found += warp_tiles(letter) + gpu_tiles(letter)
    else:
        found += cpu_tiles(letter)
    unique = {tuple(tile.items()): tile for tile in found}
    return [tile for tile in unique.values() if is_legal(device, letter, tile)]


def gpu_tiles(letter: str) -> list[Tile]:
    size, found = PRECISIONS[letter].sum_size, []
    for (down, across), (rows, columns), depth, stages in itertools.product(*SPACE):
        tile = {"TSM": down * rows, "TSN": across * columns, "TSK": depth, "STAGES": stages}
        tile |= {"WPTM": rows, "WPTN": columns, "WIDTH": max(1, 16 // size)}
        if rows * columns * size // 4 in REGISTERS:
            found.append(complete_tile(tile))
    return found


def cpu_tiles(letter: str) -> list[Tile]:
    parts, found = PRECISIONS[letter].components, []
    for (down, across), (vectors, columns), numbers in itertools.product(*CPU_SPACE):
        rows = max(1, vectors * numbers // parts)
        tile = {"TSM": down * rows, "TSN": across * columns, "TSK": 1, "STAGES": 0, "UNROLL": 1}
        tile |= {"WPTM": rows, "WPTN": columns, "WIDTH": max(1, numbers // parts)}
        found.append(complete_tile(tile))
    return found


def warp_tiles(letter: str) -> list[Tile]:
    """The tiles of `WARPS` with all parameters."""
    names = ("TSM", "TSN", "WPTM", "WPTN", "TSK", "STAGES")
    is_tensor = PRECISIONS[letter].real == "double" or PRECISIONS[letter].half
    unit = "tensor" if is_tensor else "warps"
    rest = {"WIDTH": 16 // PRECISIONS[letter].size, "UNIT": UNITS.index(unit)}
    tiles = [dict(zip(names, numbers, strict=True)) for numbers in WARPS[letter]]
    if letter == "h":
        for numbers in WARPGROUPS:
            tile = dict(zip(("TSM", "TSN", "TSK", "STAGES"), numbers, strict=True))
            tile |= {"WPTM": 2, "WPTN": tile["TSN"] // 4, "UNIT": UNITS.index("warpgroups")}
            tiles.append(tile)
    return [complete_tile({"UNROLL": tile["TSK"], **rest, **tile}) for tile in tiles]


def is_legal(device: Device, letter: str, tile: Tile) -> bool:
    """Whether the tile is legal, and within the device's limits."""
    whole = tile["TSM"], tile["TSN"], tile["TSK"]
    with suppress(ParameterError):
        configuration = configure(
            letter, tile, whole, OperandLayout("T", 0, 16), OperandLayout("N", 0, 16), True
        )
        return not configuration.problems(device.limits)
    return False


def is_exact(device: Device, letter: str, tile: Tile, sizes: Sizes, **options: Any) -> bool:
    """Whether a small product that has the same edges is exact."""
    m, n, k = (2 * tile[side] + size % tile[side] for side, size in zip(SIDES, sizes, strict=True))
    a, b = check.exact_inputs(n, m, k, dtype=PRECISIONS[letter].dtype)
    c = matmul(a, b, kernel="family", params=tile, device=device, **options)
    wide = np.result_type(a.dtype, np.float32)
    return bool(np.array_equal(c, (a.astype(wide) @ b.astype(wide)).astype(a.dtype)))


def call_rate(device: Device, letter: str, sizes: Sizes, seconds: float, **options: Any) -> float:
    """GFLOPS of `matmul` on device arrays: 2 M N K, or for complex types 8 M N K, over its time.

    Args:
        device: where.
        letter: "s", "d", "c" or "z".
        sizes: M, N and K of the column-major product: the row-major one is N x K by K x M.
        seconds: about how long to time.
        options: of `matmul`.
    """
    queue, a, b = device_operands(device, letter, sizes)
    spent = clock.call_seconds(partial(matmul, a, b, **options), queue.finish, seconds)
    return (8 if PRECISIONS[letter].components == 2 else 2) * prod(sizes) / spent * 1e-9


@cache
def device_operands(device: Device, letter: str, sizes: Sizes) -> tuple[cl.CommandQueue, Any, Any]:
    """A queue without profiling, which costs time, and random operands on it."""
    m, n, k = sizes
    queue = cl.CommandQueue(device.context, device.cl)
    a, b = operands(n, m, k, str(PRECISIONS[letter].dtype))
    return queue, cla.to_device(queue, a), cla.to_device(queue, b)


def rate(device: Device, letter: str, tile: Tile, sizes: Sizes) -> tuple[float, str]:
    """GFLOPS of whole tiles; or zero and the reason."""
    sides = [tile[side] for side in SIDES]
    m, n, k = (max(1, size // side) * side for size, side in zip(sizes, sides, strict=True))
    try:
        if not is_exact(device, letter, tile, (m, n, k)):
            return 0.0, "it is not exact"
        given: dict[str, Any] = {"kernel": "family", "params": tile}
        return call_rate(device, letter, (m, n, k), 0.1, **given), ""
    except (RuntimeError, ValueError, MemoryError, cl.Error) as error:  # what does not fit
        return 0.0, str(error).splitlines()[0]


def profile(path: Path, sizes: list, device: Device, letter: str, tiles: list[Tile]) -> None:
    """Find the tiles of each size, and put them into the table; other rows stay."""
    common.load_table(path)  # refuses what is no table before a long search
    partial_path = path.with_suffix(".partial.json")
    known = common.load_table(partial_path)
    progress = tqdm(total=len(sizes) * len(tiles), unit="tile", disable=None)
    for size in sizes:
        whole, rated = choices.dimensions(size), []
        compile_tiles(device, letter, whole, tiles)
        for tile in tiles:
            key = " ".join(map(str, (device, letter, size, tile)))
            if key not in known:
                known[key] = rate(device, letter, tile, whole)
                records.write(partial_path, known)
            gflops, problem = known[key]
            if problem:
                tqdm.write(f"  {letter} {tile} does not count: {problem}")
            else:
                rated.append((gflops, tile))
            progress.update()
        if rated:
            add_tiles(path, device, letter, size, sorted(rated, key=lambda pair: -pair[0]))
    device_operands.cache_clear()
    partial_path.unlink(missing_ok=True)


def compile_tiles(device: Device, letter: str, sizes: Sizes, tiles: list[Tile]) -> None:
    """Compile on all cores for a GPU; what the driver makes stays on disk."""
    if device.kind == "GPU":
        for _ in common.parallel(partial(compile_tile, device.index, letter, sizes), tiles):
            pass


def compile_tile(index: int, letter: str, sizes: Sizes, tile: Tile) -> None:
    device = find_device(index)
    with suppress(RuntimeError, ValueError):  # rating it will say why
        a, b = OperandLayout("N", 0, sizes[0]), OperandLayout("N", 0, sizes[2])
        written(configure(letter, tile, sizes, a, b, False), device, device.context)


def add_tiles(
    path: Path, device: Device, letter: str, size, rated: list[tuple[float, Tile]]
) -> None:
    """Put a row into the table: the fastest tiles of a size.

    Not every device of a kind can run what is fastest: the fastest tile without warps is always
    kept.
    """
    table, entry = open_section(path, device, "tiles")
    given = size if isinstance(size, int) else list(size)
    simple = [pair for pair in rated if not complete_tile(pair[1])["UNIT"]][:1]
    kept = rated[:KEPT]
    if simple and simple[0] not in kept:
        kept = [*rated[: KEPT - 1], *simple]
    row = {"size": given, "tiles": [tile for _, tile in kept]}
    row["gflops"] = [round(gflops, 1) for gflops, _ in kept]
    put_row(entry.setdefault("rules", {}), letter, row)
    records.write(path, table)


def constants(device: Device, letter: str, tile: Tile) -> Constants:
    """The constants of a tile, in seconds: of a step with about a work-group for each compute unit,
    and with many of them. The others follow from the bytes of a tile of C.
    """
    down = isqrt(device.units)
    across = device.units // down
    kilobytes = tile["TSM"] * tile["TSN"] * PRECISIONS[letter].size / 1024
    start = START + STORE * kilobytes

    def spent(groups: int, steps: int) -> float:
        sizes = groups * down * tile["TSM"], across * tile["TSN"], steps
        operations = (8 if PRECISIONS[letter].components == 2 else 2) * prod(sizes)
        rate = call_rate(device, letter, sizes, 0.05, kernel="family", params=tile)
        return 1e-9 * operations / rate - start

    alone = sum(spent(1, steps) for steps in STEPS) / (sum(STEPS) / tile["TSK"])
    shared = spent(MANY, STEPS[0]) / (MANY * STEPS[0] / tile["TSK"])
    part = PART + ADD * kilobytes
    return Constants(start, 0.0, alone, shared, CUT + part, part)


# Tables


def open_section(path: Path, device: Device, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The table, and a section for the device's kind, which now names device and command."""
    table = common.load_table(path)
    entry = table.setdefault(choices.kind(device), {}).setdefault(name, {})
    entry |= device.facts() | {"date": date.today().isoformat()}
    others = [line for line in entry.get("commands", []) if line != common.command()]
    entry["commands"] = [*others, common.command()]
    return table, entry


def put_row(entry: dict[str, Any], name: str, row: dict[str, Any]) -> None:
    """Replace the row of the same size in a list; shapes come after cubes."""
    rows = [old for old in entry.get(name, []) if old["size"] != row["size"]] + [row]
    entry[name] = sorted(rows, key=lambda one: (isinstance(one["size"], list), one["size"]))


# Commands


def run_kernels(given: argparse.Namespace) -> None:
    common.load_table(given.file)  # refuses what is no table before a long search
    device = find_device(given.device)
    search = Search(device, given.edges, given.kernels, given.tries, given.steps)
    for size in given.sizes:
        print(f"{' x '.join(map(str, choices.dimensions(size)))} on {device}:")
        row = best_row(search, size, partial(by_trial, device=device))
        table, entry = open_section(given.file, device, "kernels")
        put_row(entry, given.edges, row)
        records.write(given.file, table)


def run_tiles(given: argparse.Namespace) -> None:
    device = find_device(given.device)
    profile(given.file, given.sizes, device, given.letter, candidates(device, given.letter))


def run_constants(given: argparse.Namespace) -> None:
    device = find_device(given.device)
    tiles = [tile for tile in warp_tiles(given.letter) if is_legal(device, given.letter, tile)]
    if not tiles:
        raise ValueError(f"{device} takes no tile of warps for --letter {given.letter}")
    sizes = 1000, 1000, 1000
    compile_tiles(device, given.letter, sizes, tiles)
    exact = [tile for tile in tiles if is_exact(device, given.letter, tile, sizes)]
    rows = [
        [tile, [float(f"{1e9 * value:.5g}") for value in constants(device, given.letter, tile)]]
        for tile in exact
    ]
    table, entry = open_section(given.file, device, "tiles")
    entry.setdefault("constants", {})[given.letter] = rows
    records.write(given.file, table)


def parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    top = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    commands = top.add_subparsers(required=True)
    kernels = commands.add_parser("kernels", help="rows of results/choice.json")
    kernels.set_defaults(run=run_kernels)
    words = "only these, such as 7,warp_tiling (default: all)"
    kernels.add_argument("--kernels", type=kernel_numbers, default=[], help=words)
    kernels.add_argument(
        "--edges", default="pad", choices=[*choices.EDGES], help="where tiles do not fit"
    )
    words = "parameter sets of each kernel to begin with (default: 6)"
    kernels.add_argument("--tries", type=count, default=6, help=words)
    words = "how often at most the best move on to a neighbour (default: 100)"
    kernels.add_argument("--steps", type=int, default=100, help=words)
    tiles = commands.add_parser("tiles", help="rows of results/choice.json")
    tiles.set_defaults(run=run_tiles)
    own = commands.add_parser("constants", help="constants of tiles of warps")
    own.set_defaults(run=run_constants)
    for command in (kernels, tiles):
        words = "such as 512,64x8192x1024: M x N x K of column-major products"
        command.add_argument("--sizes", type=size_list, required=True, help=words)
    for command in (tiles, own):
        words = "the precision: float32, float64, complex64, complex128 or float16"
        command.add_argument("--letter", choices=list(WARPS), required=True, help=words)
    for command in (kernels, tiles, own):
        command.add_argument("file", type=output_file, help="the table to add to")
        common.add_device(command)
    return top


def main(arguments: list[str] | None = None) -> None:
    given = parser().parse_args(arguments)
    given.run(given)


if __name__ == "__main__":
    common.run(main)
