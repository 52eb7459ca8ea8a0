"""Configurations of the family to test, and matrices that show whether a kernel does what its configuration says."""

import itertools
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyopencl as cl

from gemmlab import check
from gemmlab.family import Configuration
from gemmlab.family.configuration import EDGES, PRECISIONS
from gemmlab.family.written import View, Written
from gemmlab.opencl.devices import Device

#: Tiles that compile and run quickly, and still have more than one work-item, micro-tile and step in each direction.
SMALL = {"tile": (8, 4), "micro_tile": (2, 2), "depth": 4, "unroll": 2}
SMALL_TILE = {"TSM": 8, "TSN": 4, "TSK": 4, "WPTM": 2, "WPTN": 2, "UNROLL": 2, "WIDTH": 1, "STAGES": 1}


#: What a kernel without local memory has instead.
DIRECT = {"stages": 0, "tile": (8, 4), "micro_tile": (4, 2), "depth": 1, "unroll": 1, "widths": (2, 1)}


def every() -> list[Configuration]:
    """Each combination of precision, operations, beta and edges; tail, widths and stages take turns."""
    found = []
    for precision, beta, edges in itertools.product(PRECISIONS, (False, True), EDGES):
        operations = "NTCR" if PRECISIONS[precision].parts == 2 else "NT"
        for turn, (a, b) in enumerate(itertools.product(operations, repeat=2), len(found)):
            staged = {"tail": turn % 4 > 0, "widths": (1 + turn % 2, 1 + turn // 2 % 2), "stages": 1 + turn // 4 % 2}
            chosen = DIRECT if turn % 3 == 0 else SMALL | staged
            found.append(Configuration(precision, a, b, beta, edges=edges, **chosen))
    return found


#: For kernels of warps: two warps, two micro-tiles down and across, and two steps of the tensor cores in a tile.
WARPS = {"tile": (16, 16), "micro_tile": (2, 2), "depth": 8, "unroll": 8}


def warped() -> list[Configuration]:
    """The same for the kernels whose warps share blocks of C, with tensor cores and without."""
    found = []
    kinds = [(unit, p) for unit, letters in (("warps", "sdcz"), ("tensor", "dz")) for p in letters]
    for (unit, precision), beta, edges in itertools.product(kinds, (False, True), EDGES):
        operations = "NTCR" if PRECISIONS[precision].parts == 2 else "NT"
        shape = WARPS | ({"tile": (32, 32), "micro_tile": (4, 4)} if precision == "s" else {})
        for turn, (a, b) in enumerate(itertools.product(operations, repeat=2), len(found)):
            c = Configuration(precision, a, b, beta, edges=edges, unit=unit, **shape, stages=2 + turn % 3)
            width = 16 // PRECISIONS[precision].size
            widths = tuple(width if turn % 2 and c.takes(operand, width) else 1 for operand in "ab")
            together = c.neighbours if unit == "warps" and not beta and turn % 3 < 2 else 1
            found.append(replace(c, tail=turn % 4 > 0, widths=widths, stored=together))
    return found


def shared() -> list[Configuration]:
    """Some of them whose work-groups share tiles: in two parts, in three, and in more than there are steps for."""
    sample = covering(warped())[::3]
    return [replace(c, shares=shares) for c, shares in zip(sample, itertools.cycle((2, 3, 5)), strict=False)]


def covering(configurations: list[Configuration] | None = None, count: int = 2) -> list[Configuration]:
    """So many of them that whatever `count` values occur together, occur: always the one with most that are new."""
    left = {c: _together(c, count) for c in configurations or every()}
    missing, chosen = set().union(*left.values()), []
    while missing:
        chosen.append(max(left, key=lambda c: len(left[c] & missing)))
        missing -= left.pop(chosen[-1])
    return chosen


def _together(c: Configuration, count: int) -> set:
    values = ((c.unit, c.precision), c.a, c.b, c.beta, c.edges, c.tail, c.widths, c.stages, c.stored)
    return set(itertools.combinations(enumerate(values), count))


def sizes(c: Configuration) -> tuple[int, int, int]:
    """M, N and K that end inside a tile wherever the configuration allows it, as far as its loads do."""
    m, n = (
        many * side - (0 if not c.guards(operand) else together if (together := _at_once(c, operand)) > 1 else 3)
        for operand, many, side in zip("ab", (2, 3), c.tile, strict=True)
    )
    k = 11 if c.stages == 0 else 3 * c.depth - (max(c.widths) if c.tail else 0)
    return m, n, k


def _at_once(c: Configuration, operand: str) -> int:
    """Elements in a load or a store along the size that the operand shares with C."""
    loaded = c.width(operand) if c.stages > 0 and not c.along_k(operand) else 1
    return max(loaded, c.stored if operand == "a" else 1)


class Stored(NamedTuple):
    """A matrix as it lies, column-major, in a larger array that is NaN everywhere else."""

    memory: np.ndarray
    offset: int
    ld: int


def stored(x: np.ndarray, operation: str = "N", width: int = 1) -> Stored:
    """The matrix that the operation makes into x; views for loads of `width` begin at multiples of it."""
    back = {"N": x, "T": x.T, "C": x.conj().T, "R": x.conj()}[operation]
    rows, columns = back.shape
    offset, ld = 3 * width, -(-rows // width) * width + 2 * width
    memory = np.full(offset + ld * columns, np.nan, x.dtype)
    view = memory[offset:].reshape(columns, ld).T
    view[:rows] = back
    return Stored(memory, offset, ld)


class Case(NamedTuple):
    """What a configuration is to compute, in numbers for which no order of summation rounds."""

    sizes: tuple[int, int, int]
    alpha: complex
    beta: complex
    a: Stored
    b: Stored
    before: Stored
    expected: np.ndarray


def case(c: Configuration, seed: int = 0) -> Case:
    m, n, k = sizes(c)
    dtype = PRECISIONS[c.precision].dtype
    alpha, beta = (2 - 3j, -1 + 2j) if c.parts == 2 else (2.0, -3.0)
    a, b = check.exact_inputs(m, n, k, seed, dtype)
    before, _ = check.exact_inputs(m, 1, n, seed + 1, dtype)
    expected = (alpha * (a @ b) + (beta * before if c.beta else 0)).astype(dtype)
    return Case(
        (m, n, k), alpha, beta, stored(a, c.a, c.width("a")), stored(b, c.b, c.width("b")), stored(before), expected
    )


def loaded() -> list[Configuration]:
    """The configurations whose texts are longest: everything switched on, and the widest loads taken apart."""
    full = Configuration(beta=True, edges="both", tail=True, stages=2, tile=(64, 64), depth=16)
    warps = replace(full, unit="tensor", precision="z", stages=3, tile=(64, 64), micro_tile=(4, 8), depth=8, unroll=8)
    return [replace(full, precision=p, widths=(w, w)) for p, w in (("s", 4), ("d", 4), ("c", 4), ("z", 4))] + [
        replace(full, precision="z", a="C", b="R", widths=(2, 2)),
        replace(warps, a="C", b="R"),
        replace(warps, unit="warps", precision="c", widths=(2, 1)),
    ]


FRAME_BYTES = 4096  # before and behind C; a multiple of every device's alignment


def on_device(device: Device, memory: np.ndarray) -> cl.Buffer:
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    return cl.Buffer(device.context, flags, hostbuf=np.ascontiguousarray(memory))


def computed(kernel: Written, given: Case, in_place: bool = False, queue=None) -> tuple[np.ndarray, bool]:
    """C, m x n, and whether the memory before and behind it is untouched. It is NaN before, or C0 if `in_place`."""
    c, (m, n, _), queue = kernel.configuration, given.sizes, queue or kernel.device.queue
    before = given.before
    dtype = given.expected.dtype
    frame = FRAME_BYTES // dtype.itemsize
    memory = np.full(m * n + 2 * frame, 7, dtype)
    inner = memory[frame:-frame].reshape(n, m).T
    inner[:] = np.nan
    if in_place:
        inner[:] = before.memory[before.offset :].reshape(n, before.ld).T[:m]
    framed = on_device(kernel.device, memory)
    out = framed.get_sub_region(FRAME_BYTES, m * n * dtype.itemsize)
    a, b = (View(on_device(kernel.device, x.memory), x.offset, 1, x.ld) for x in (given.a, given.b))
    added = None
    if c.beta:
        added = (
            View(out, 0, 1, m)
            if in_place
            else View(on_device(kernel.device, before.memory), before.offset, 1, before.ld)
        )
    workspace = kernel.workspace(given.sizes, queue)
    kernel.bound(given.sizes, given.alpha, a, b, given.beta, added, out, workspace=workspace)(queue)
    cl.enqueue_copy(queue, memory, framed)
    return inner, bool((memory[:frame] == 7).all() and (memory[-frame:] == 7).all())


def wrong(device: Device, configurations: list[Configuration]) -> list[str]:
    """What is not exact, or stores outside."""
    found = []
    for c in configurations:
        if PRECISIONS[c.precision].real == "double" and "double" not in device.features:
            continue
        given = case(c)
        got, inside = computed(Written(c, device, device.context), given)
        verdict = check.compare(got, given.expected, 0.0)
        if not verdict.ok or not inside:
            found.append(f"{c.name}: {verdict}{'' if inside else '; stores outside C'}")
    return found
