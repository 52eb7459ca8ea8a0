"""Arithmetic on paper: operations, bytes, roofline; banks, occupancy, a time line. No device needed.

The roofline is that of Williams, Waterman and Patterson (Communications of the ACM 52(4), 2009): a program
that does I operations a byte runs at most at min(peak, I x bandwidth).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .catalog import find


@dataclass(frozen=True)
class Peaks:
    """What a device can do at its best: GFLOPS in single precision, GB/s, and the vector width that gave them."""

    gflops: float
    bandwidth: float
    width: int = 1


def flops(m: int, n: int, k: int) -> int:
    """Floating-point operations of an m x k by k x n product: a multiplication and an addition a term."""
    return 2 * m * n * k


def gflops(m: int, n: int, k: int, seconds: float) -> float:
    """The rate of such a product in 10^9 operations a second."""
    return flops(m, n, k) / seconds * 1e-9


def least_bytes(m: int, n: int, k: int) -> int:
    """The fewest bytes a float32 product can move: A and B read once, C written once."""
    return 4 * (m * k + k * n + m * n)


def loads(kernel: int, params: Mapping[str, int] | None = None) -> dict[str, float]:
    """Loads of one float per multiply-add, from "global" and from "local" memory, as the kernel's code asks for."""
    spec = find(kernel)
    full = spec.validate(params)
    return {"global": float(spec.value(spec.global_loads, full)), "local": float(spec.value(spec.local_loads, full))}


def requested_bytes(kernel: int, m: int, n: int, k: int, params: Mapping[str, int] | None = None) -> float:
    """Bytes that a kernel asks of global memory, caches aside: its loads of A and B, and C once."""
    return 4 * (loads(kernel, params)["global"] * m * n * k + m * n)


def intensity(operations: float, transferred: float) -> float:
    """Operations a byte."""
    return operations / transferred


def roofline(peaks: Peaks, operations_per_byte: float) -> float:
    """The GFLOPS that a program of that intensity can reach at most."""
    return min(peaks.gflops, operations_per_byte * peaks.bandwidth)


def ridge(peaks: Peaks) -> float:
    """The intensity from which on arithmetic, and not memory, is the limit."""
    return peaks.gflops / peaks.bandwidth


def tile_loads(m: int, n: int, k: int, g: int, h: int) -> float:
    """Floats that tiles of g x h elements of C load of A and B in all: (m/g)(n/h)(g + h)k."""
    return (m / g) * (n / h) * (g + h) * k


def tile_intensity(g: int, h: int) -> float:
    """Operations a loaded float for a g x h tile (or a g x h block in registers): 2 g h / (g + h)."""
    return 2 * g * h / (g + h)


def shifts(m: int, n: int, rows: int, cols: int) -> list[tuple[int, int, int, int]]:
    """The tiles of an m x n matrix in kernel 13, numbered down the columns: first row, first column, moved up, left.

    A tile that would reach beyond the matrix is moved back until it lies inside; what it owns stays where it was.
    Needs m >= rows and n >= cols.
    """
    if m < rows or n < cols:
        raise ValueError(f"{m} x {n} is less than a tile of {rows} x {cols}")
    found = []
    for left in range(0, n, cols):
        for top in range(0, m, rows):
            first = min(top, m - rows), min(left, n - cols)
            found.append((*first, top - first[0], left - first[1]))
    return found


def turns(indices: Iterable[int], bank_bytes: int = 4, banks: int = 32) -> int:
    """How many turns local memory needs for a warp that touches these floats at once.

    Word w lies in bank w % banks; a bank serves one word a turn, to all who want it.
    """
    words: dict[int, set[int]] = {}
    for i in indices:
        word = 4 * int(i) // bank_bytes
        words.setdefault(word % banks, set()).add(word)
    return max(map(len, words.values()))


def stride_turns(stride: int, bank_bytes: int = 4) -> int:
    """The same by formula, for 32 lanes that lie `stride` floats apart (1 or more) and 32 banks of 4 or 8 bytes.

    With banks of 4 bytes, the greatest common divisor of stride and 32. With banks of 8 bytes two floats share a
    word: an even stride is half as large in words, and with an odd one some two lanes meet in a bank, except that
    with 1 they share its word, and with 33, 97 ... the only two that might meet do not.
    """
    if stride < 1:
        raise ValueError(f"stride must be at least 1, not {stride}")
    if bank_bytes == 4:
        return math.gcd(stride, 32)
    if stride % 2 == 0:
        return math.gcd(stride // 2, 32)
    return 1 if stride == 1 or stride % 64 == 33 else 2


@dataclass(frozen=True)
class Multiprocessor:
    """What the work-groups on one multiprocessor share, and the most that it takes of each.

    Registers are given to whole warps, 256 at a time.
    """

    name: str
    groups: int
    local_memory: int
    units: int
    work_items: int = 2048
    registers: int = 65536
    registers_per_item: int = 255
    warp: int = 32


K40M = Multiprocessor("Tesla K40m", groups=16, local_memory=48 * 1024, units=15)
H200 = Multiprocessor("NVIDIA H200", groups=32, local_memory=228 * 1024, units=132)


def shares(chip: Multiprocessor, work_items: int, registers: int, local_memory: int) -> dict[str, float]:
    """The share of a multiprocessor's work-items, registers, local memory and places that one work-group takes."""
    for name, value, least in (
        ("work_items", work_items, 1),
        ("registers", registers, 1),
        ("local_memory", local_memory, 0),
    ):
        if value < least:
            raise ValueError(f"{name} must be at least {least}, not {value}")
    warps = -(-work_items // chip.warp)
    of_a_warp = -(-registers * chip.warp // 256) * 256
    return {
        "work-items": warps * chip.warp / chip.work_items,
        "registers": warps * of_a_warp / chip.registers if registers <= chip.registers_per_item else math.inf,
        "local memory": local_memory / chip.local_memory,
        "groups": 1 / chip.groups,
    }


def occupancy(chip: Multiprocessor, work_items: int, registers: int, local_memory: int) -> dict[str, int]:
    """How many work-groups fit on a multiprocessor at once, by each of the four things they share.

    What a chip keeps for itself, such as a little local memory for each group, is left out.

    Args:
        work_items: of a work-group.
        registers: of a work-item.
        local_memory: bytes a work-group.

    Returns:
        The most groups by "work-items", "registers", "local memory" and "groups"; the least of them is what fits.
    """
    taken = shares(chip, work_items, registers, local_memory)
    return {name: int(1 / share + 1e-9) if share else chip.groups for name, share in taken.items()}


@dataclass(frozen=True)
class Span:
    """A stretch of a time line: a group loads or computes a tile."""

    group: int
    what: str
    tile: int
    start: float
    end: float


def timeline(tiles: int, load: float, compute: float, buffers: int = 1, groups: int = 1) -> list[Span]:
    """When each tile is loaded and computed, by groups that share one multiprocessor.

    A load is a wait: many may be under way. Only one group computes at a time. With one buffer a group asks for
    its next tile when it has computed this one; with two, when it begins to. For one group the end is at
    tiles (load + compute), or load + (tiles - 1) max(load, compute) + compute.
    """
    if tiles < 1 or groups < 1 or buffers not in (1, 2):
        raise ValueError(f"tiles={tiles} and groups={groups} must be at least 1, buffers={buffers} 1 or 2")
    spans = [Span(g, "load", 0, 0.0, load) for g in range(groups)]
    ready, tile, free = dict.fromkeys(range(groups), load), dict.fromkeys(range(groups), 0), 0.0
    while ready:
        g = min(ready, key=lambda g: (max(ready[g], free), tile[g], g))
        start = max(ready.pop(g), free)
        free = start + compute
        spans.append(Span(g, "compute", tile[g], start, free))
        tile[g] += 1
        if tile[g] < tiles:
            asked = start if buffers == 2 else free
            spans.append(Span(g, "load", tile[g], asked, asked + load))
            ready[g] = asked + load
    return spans


def pieces(tiles: int, steps: int, groups: int) -> list[list[tuple[int, int, int]]]:
    """What each group does of a line of tiles x steps that is cut into equal pieces: (tile, first step, steps)."""
    found: list[list[tuple[int, int, int]]] = []
    for group in range(groups):
        step, end = tiles * steps * group // groups, tiles * steps * (group + 1) // groups
        found.append([])
        while step < end:
            number = min(end - step, steps - step % steps)
            found[-1].append((step // steps, step % steps, number))
            step += number
    return found


def idle(tiles: int, steps: int, places: int) -> tuple[float, float]:
    """The share of places that have nothing to do: with one group a tile, wave after wave, and with equal shares."""
    longest = max(sum(part[2] for part in parts) for parts in pieces(tiles, steps, places))
    return 1 - tiles / (-(-tiles // places) * places), 1 - tiles * steps / (longest * places)
