"""Schedules of generated kernels to test, and matrices that show whether a kernel is right."""

import itertools
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyopencl as cl
from layouts import Framed, Layout

from gemmlab import check
from gemmlab.blas.layout import OUT, Matrix
from gemmlab.blas.plan import PlanBuilder, launch_schedule
from gemmlab.blas.product import Product
from gemmlab.blas.run import session_of
from gemmlab.generate import Schedule
from gemmlab.generate.elements import ELEMENTS
from gemmlab.generate.schedule import EDGE_SIDES
from gemmlab.opencl.devices import Device

#: Tiles that compile and run quickly, with several work-items and steps along each axis.
SMALL = {"tile": (8, 4), "micro_tile": (2, 2), "depth": 4, "unroll": 2}
SMALL_TILE = {"TSM": 8, "TSN": 4, "TSK": 4, "WPTM": 2, "WPTN": 2}
SMALL_TILE |= {"UNROLL": 2, "WIDTH": 1, "STAGES": 1}

#: The same for kernels without local memory.
DIRECT = {"stages": 0, "tile": (8, 4), "micro_tile": (4, 2)}
DIRECT |= {"depth": 1, "unroll": 1, "load_widths": (2, 1)}

#: The same for warps: two warps, and two steps of the tensor cores in a tile.
WARPS = {"tile": (16, 16), "micro_tile": (2, 2), "depth": 8, "unroll": 8}
HALF_WARPS = {"tile": (32, 16), "micro_tile": (2, 4), "depth": 32, "unroll": 32}
WARPGROUPS = {"tile": (64, 16), "micro_tile": (2, 4), "depth": 16, "unroll": 16}
OTHER_WARPS = {"s": {"tile": (32, 32), "micro_tile": (4, 4)}, "h": HALF_WARPS, "sh": HALF_WARPS}


def every() -> list[Schedule]:
    """Each combination of precision, op, beta and edges; tail, load widths and stages cycle."""
    found = []
    for precision, beta, edges in itertools.product(ELEMENTS, (False, True), EDGE_SIDES):
        operations = "NTCR" if ELEMENTS[precision].components == 2 else "NT"
        for turn, (a, b) in enumerate(itertools.product(operations, repeat=2), len(found)):
            widths = (1 + turn % 2, 1 + turn // 2 % 2)
            staged = {"tail": turn % 4 > 0, "load_widths": widths, "stages": 1 + turn // 4 % 2}
            chosen = DIRECT if turn % 3 == 0 else SMALL | staged
            found.append(Schedule(precision, a, b, beta, edges=edges, **chosen))
    return found


def warped() -> list[Schedule]:
    """The same for the kernels whose warps share blocks of C, with and without tensor cores."""
    found = []
    units = {"warps": ("s", "d", "c", "z"), "tensor": ("d", "z", "h", "sh")}
    units["warpgroups"] = ("h", "sh")
    kinds = [(unit, letter) for unit, letters in units.items() for letter in letters]
    for (unit, precision), beta, edges in itertools.product(kinds, (False, True), EDGE_SIDES):
        element = ELEMENTS[precision]
        operations = "NTCR" if element.components == 2 else "NT"
        shape = WARPS | OTHER_WARPS.get(precision, {})
        shape = WARPGROUPS if unit == "warpgroups" else shape
        for turn, (a, b) in enumerate(itertools.product(operations, repeat=2), len(found)):
            s = Schedule(
                precision, a, b, beta, edges=edges, unit=unit, **shape, stages=2 + turn % 3
            )
            widest = 16 // element.size if turn % 2 else 1
            widths = tuple(1 if any(s.load_conflicts(x, widest)) else widest for x in s.operands)
            store = s.widest_store if not beta and turn % 3 < 2 else 1
            found.append(replace(s, tail=turn % 4 > 0, load_widths=widths, store_width=store))
    return found


def shared() -> list[Schedule]:
    """Some of them with split-K: in two parts, in three, and in more than there are steps for."""
    sample = covering(warped())[::3]
    parts = itertools.cycle((2, 3, 5))
    return [replace(s, split_k=next(parts)) for s in sample]


def covering(schedules: list[Schedule] | None = None, count: int = 2) -> list[Schedule]:
    """Schedules in which any `count` values that occur together in all of them occur together."""
    left = {s: _together(s, count) for s in schedules or every()}
    missing, chosen = set().union(*left.values()), []
    while missing:
        chosen.append(max(left, key=lambda s: len(left[s] & missing)))
        missing -= left.pop(chosen[-1])
    return chosen


def _together(s: Schedule, count: int) -> set:
    operands = s.trans_a, s.trans_b, s.load_widths
    values = (s.unit, s.precision), *operands, s.beta, s.edges, s.tail, s.stages, s.store_width
    return set(itertools.combinations(enumerate(values), count))


def sizes(s: Schedule) -> tuple[int, int, int]:
    """M, N and K that end inside a tile wherever the schedule allows it, as far as loads do."""
    lengths = []
    for x, tiles in ((s.a, 2), (s.b, 3)):
        step = 1 if s.scheme == "direct" or x.k_contiguous else x.width
        if x.name == "A":
            step = max(step, s.store_width)
        missing = 0
        if x.guarded:
            missing = step if step > 1 else 3
        lengths.append(tiles * x.side - missing)
    k = 11 if s.stages == 0 else 3 * s.depth - (max(s.load_widths) if s.tail else 0)
    return lengths[0], lengths[1], k


class Stored(NamedTuple):
    """A column-major matrix in a larger array that is NaN everywhere else."""

    memory: np.ndarray
    offset: int
    ld: int


def stored(x: np.ndarray, operation: str = "N", width: int = 1) -> Stored:
    """The matrix that the operation makes into x, with offset and ld that suit loads of `width`."""
    back = {"N": x, "T": x.T, "C": x.conj().T, "R": x.conj()}[operation]
    rows, columns = back.shape
    offset, ld = 3 * width, -(-rows // width) * width + 2 * width
    memory = np.full(offset + ld * columns, np.nan, x.dtype)
    view = memory[offset:].reshape(columns, ld).T
    view[:rows] = back
    return Stored(memory, offset, ld)


class Case(NamedTuple):
    """What a schedule is to compute, in numbers for which no order of summation rounds."""

    sizes: tuple[int, int, int]
    alpha: complex
    beta: complex
    a: Stored
    b: Stored
    before: Stored
    expected: np.ndarray


def case(s: Schedule, seed: int = 0) -> Case:
    m, n, k = sizes(s)
    dtype = s.element.dtype
    alpha, beta = (2 - 3j, -1 + 2j) if s.element.components == 2 else (2.0, -3.0)
    a, b = check.exact_inputs(m, n, k, seed, dtype)
    before, _ = check.exact_inputs(m, 1, n, seed + 1, s.element.result)
    wide = np.result_type(dtype, np.float32)
    expected = alpha * (a.astype(wide) @ b.astype(wide)) + (beta * before if s.beta else 0)
    expected = expected.astype(s.element.result)
    left, right = stored(a, s.trans_a, s.a.width), stored(b, s.trans_b, s.b.width)
    return Case((m, n, k), alpha, beta, left, right, stored(before), expected)


def on_device(device: Device, memory: np.ndarray) -> cl.Buffer:
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    return cl.Buffer(device.context, flags, hostbuf=np.ascontiguousarray(memory))


def is_exact(
    s: Schedule, device: Device, given: Case, in_place: bool = False, runs: int = 1
) -> bool:
    """Whether C is right after each run, and all around it untouched; before it is NaN, or C0."""
    m, n, k = given.sizes

    def matrix(x: Stored, rows: int, columns: int, operation: str) -> Matrix:
        if operation in "TC":
            return matrix(x, columns, rows, "N").T
        return Matrix(rows, columns, 1, x.ld, x.offset, buffer=on_device(device, x.memory))

    a, b = matrix(given.a, m, k, s.trans_a), matrix(given.b, k, n, s.trans_b)
    c, start = Matrix.compact(m, n, OUT), np.full_like(given.expected, np.nan)
    if in_place:
        start[:] = given.before.memory[given.before.offset :].reshape(n, given.before.ld).T[:m]
    before = (c if in_place else matrix(given.before, m, n, "N")) if s.beta else None
    builder = PlanBuilder(device.queue, device, s.element.dtype, given.expected.dtype)
    launch_schedule(builder, Product(a, b, c, given.alpha, given.beta, before), s)
    plan, session = builder.finish(), session_of(device.queue, device)
    right = True
    for _ in range(runs):
        out = Framed(start, Layout(columns=True, sub_buffer=True), device.queue)
        session.run(plan, (None, None, None, out.given.base_data))
        right &= out.holds(given.expected)
    return right


def wrong(device: Device, schedules: list[Schedule]) -> list[str]:
    """Those that are not exact, or store outside of C, which C0 may be; split-K runs twice, for its
    counters.
    """
    found = []
    for s in schedules:
        if s.element.real == "double" and "double" not in device.features:
            continue
        given = case(s)
        for in_place in {False, s.beta}:
            if not is_exact(s, device, given, in_place, runs=1 + (s.split_k > 1)):
                found.append(s.name)
    return found
