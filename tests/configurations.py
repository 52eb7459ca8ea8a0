"""Schedules of generated kernels to test, and matrices that show whether a kernel is right."""

import itertools
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyopencl as cl

from gemmlab import check
from gemmlab.generate import Schedule
from gemmlab.generate.precision import PRECISIONS
from gemmlab.generate.schedule import EDGES
from gemmlab.generate.written import Gemm, GeneratedKernel, View
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
    for precision, beta, edges in itertools.product(PRECISIONS, (False, True), EDGES):
        operations = "NTCR" if PRECISIONS[precision].components == 2 else "NT"
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
    for (unit, precision), beta, edges in itertools.product(kinds, (False, True), EDGES):
        element = PRECISIONS[precision]
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


def loaded() -> list[Schedule]:
    """The schedules with the longest texts: everything switched on, and the widest loads."""
    full = Schedule(beta=True, edges="both", tail=True, stages=2)
    warps = replace(full, unit="tensor", precision="z", micro_tile=(4, 8), depth=8, unroll=8)
    widest = (("s", 4), ("d", 4), ("c", 4), ("z", 4), ("h", 4))
    return [replace(full, precision=p, load_widths=(w, w)) for p, w in widest] + [
        replace(full, precision="z", trans_a="C", trans_b="R", load_widths=(2, 2)),
        replace(warps, trans_a="C", trans_b="R", stages=3),
        replace(warps, unit="warps", precision="c", load_widths=(2, 1), stages=3),
    ]


FRAME_BYTES = 4096  # before and behind C; a multiple of every device's alignment


def on_device(device: Device, memory: np.ndarray) -> cl.Buffer:
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    return cl.Buffer(device.context, flags, hostbuf=np.ascontiguousarray(memory))


def split_k_memory(kernel: GeneratedKernel, given: Case, queue) -> tuple[cl.Buffer, ...]:
    """Partial tiles and counters, where the kernel has them; the counters are 0."""
    sizes = [size for size in kernel.workspace(given.sizes) if size]
    found = [cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, size) for size in sizes]
    for buffer, size in zip(found, sizes, strict=True):
        cl.enqueue_fill_buffer(queue, buffer, np.int32(0), 0, size)
    return tuple(found)


def computed(
    kernel: GeneratedKernel, given: Case, in_place: bool = False, queue=None, workspace=()
) -> tuple[np.ndarray, bool]:
    """C, and whether the memory around it is untouched. C is NaN before, or C0 if `in_place`."""
    s, (m, n, _), queue = kernel.schedule, given.sizes, queue or kernel.device.queue
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
    views = [
        View(on_device(kernel.device, x.memory), x.offset, 1, x.ld)
        for x in (given.a, given.b, before)
    ]
    added = None
    if s.beta:
        added = View(out, 0, 1, m) if in_place else views[2]
    product = Gemm(given.sizes, given.alpha, views[0], views[1], given.beta, added, out)
    kernel.bound(product, workspace or split_k_memory(kernel, given, queue))(queue)
    cl.enqueue_copy(queue, memory, framed)
    return inner, bool((memory[:frame] == 7).all() and (memory[-frame:] == 7).all())


def wrong(device: Device, schedules: list[Schedule]) -> list[str]:
    """Those that are not exact, or store outside of C."""
    found = []
    for s in schedules:
        if s.element.real == "double" and "double" not in device.features:
            continue
        given = case(s)
        got, inside = computed(GeneratedKernel(s, device, device.context), given)
        verdict = check.compare(got, given.expected, 0.0)
        if not verdict.ok or not inside:
            found.append(f"{s.name}: {verdict}{'' if inside else '; stores outside C'}")
    return found
