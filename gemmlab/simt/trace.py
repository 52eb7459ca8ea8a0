"""Replay a kernel in Python: which work-item touches which element, when. No device needed.

The work-items of a group walk through their kernel (`walks`) one after another, from barrier to barrier, in
any order one likes. On a real device they run in an order nobody promised, so a kernel is right only if it
is in every order: leave a barrier out, and the replay shows it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from .. import check
from ..catalog import find
from .walks import WALKS, transpose, transpose_naive
from .workitem import WorkItem

#: One touch of `width` neighbouring floats. `step` counts a work-item's own touches, `phase` its barriers so far.
EVENT = np.dtype(
    [("group", "i4"), ("item", "i4"), ("step", "i4"), ("phase", "i4"), ("store", "?"), ("array", "U5"), ("index", "i4"),
     ("width", "i4")]
)  # fmt: skip


@dataclass(frozen=True)
class Trace:
    """What a replay did.

    Attributes:
        kernel, params, m, n, k: what was replayed.
        a, b: the inputs, m x k and k x n.
        c: the product that the replay computed, NaN where nothing was stored.
        events: every touch in the order of the replay, fields as in `EVENT`; `index` counts floats from the
            start of the (column-major) array, `item` is the work-item's number in its group.
        shapes: rows and floats of a row of each local array.
    """

    kernel: int
    params: dict[str, int]
    m: int
    n: int
    k: int
    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    events: np.ndarray
    shapes: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def transposed(self) -> bool:
        """Whether the kernel reads B as its transpose."""
        return self.kernel > 0 and find(self.kernel).wants_transposed(self.params)

    @property
    def b_shape(self) -> tuple[int, int]:
        """Rows and columns of B as it lies in memory, column-major."""
        return (self.n, self.k) if self.transposed else (self.k, self.n)

    def select(self, array: str, store: bool = False, **where: int) -> np.ndarray:
        """The events of one array, loads or stores, whose fields (group, item, phase ...) are as asked for."""
        e = self.events
        chosen = (e["array"] == array) & (e["store"] == store)
        for name, value in where.items():
            chosen &= e[name] == value
        return e[chosen]

    def count(self, *arrays: str, store: bool = False) -> int:
        """How many floats were loaded from (or stored to) the arrays of these names."""
        return sum(int(self.select(name, store)["width"].sum()) for name in arrays)

    def touches(self, array: str, group: int = 0, warp: int = 0, width: int = 32, store: bool = False) -> np.ndarray:
        """The first float that each lane of a warp touches, one row an instruction: shape (instructions, lanes)."""
        e = self.select(array, store, group=group)
        e = e[e["item"] // width == warp]
        lanes = np.unique(e["item"])
        order = np.lexsort((e["item"], e["step"]))
        return e["index"][order].reshape(-1, len(lanes))


def elements(events: np.ndarray) -> list[int]:
    """Every float that these events touch, each once, in order."""
    return sorted({int(e["index"]) + i for e in events for i in range(int(e["width"]))})


def segments(indices: Iterable[int], size: int = 32, width: int = 1) -> int:
    """How many aligned segments of `size` bytes a warp touches: its memory transactions.

    `indices` are the first floats of loads of `width` floats each.
    """
    return len({4 * (int(i) + j) // size for i in indices for j in range(width)})


def races(replayed: Trace) -> list[tuple[str, int]]:
    """The elements of local memory that one work-item stores while another touches them, no barrier between."""
    touched: dict[tuple, set] = {}
    stored = set()
    for e in replayed.events[np.isin(replayed.events["array"], list(replayed.shapes))].tolist():
        group, item, _, phase, store, array, index, width = e
        for i in range(index, index + width):
            place = group, phase, array, i
            touched.setdefault(place, set()).add(item)
            if store:
                stored.add(place)
    return sorted({(array, i) for group, phase, array, i in stored if len(touched[group, phase, array, i]) > 1})


def replay(
    kernel: int,
    m: int,
    n: int,
    k: int,
    params: dict[str, int] | None = None,
    *,
    groups: list[tuple[int, int]] | None = None,
    order: str = "forward",
    without_barrier: int | None = None,
    swapped: bool = False,
    seed: int = 0,
) -> Trace:
    """Replay a kernel on exact inputs (`check.exact_inputs`).

    Args:
        kernel, params: which; sizes m, n, k must be whole tiles. Keep them small: Python walks every step.
        groups: only these work-groups (all by default).
        order: of the work-items between barriers: "forward", "backward" or "shuffled".
        without_barrier: leave out barrier 1 (before computing) or 2 (after it).
        swapped: exchange the two local identifiers, as if 0 and 1 were mixed up in the kernel (square groups only).

    Raises:
        ValueError: for sizes that are no whole tiles, or unknown values.
        IndexError: if a work-item touches something outside an array.
    """
    spec = find(kernel)
    full = spec.validate(params)
    for name, size, multiple, least in zip(
        "mnk", (m, n, k), spec.multiples(full), spec.minimum_sizes(full), strict=True
    ):
        if size < 1 or size % multiple:
            raise ValueError(f"{name}={size} is not a positive multiple of {multiple}")
        if size < least:
            raise ValueError(f"{name}={size} is less than the {least} of a tile")
    if order not in ("forward", "backward", "shuffled"):
        raise ValueError(f"order must be 'forward', 'backward' or 'shuffled', not {order!r}")
    for name in ("GROUPS", "SPLIT"):
        if full.get(name):
            raise ValueError(f"{name}={full[name]}: one work-group a tile is replayed, {name}=0")
    if spec.number not in WALKS:
        raise ValueError(f"kernel {spec.number} has no replay; there is one of {', '.join(map(str, WALKS))}")
    walk = WALKS[spec.number]
    shapes = {name: tuple(eval(e, {}, full) for e in shape) for name, shape in walk.local.items()}
    a, b = check.exact_inputs(m, n, k, seed)
    b_lies = b if spec.wants_transposed(full) else b.T
    lda, ldb = spec.leading_dimensions(m, n, k, full)
    lying = {name: np.pad(x, ((0, 0), (0, ld - x.shape[1]))) for name, x, ld in (("A", a.T, lda), ("B", b_lies, ldb))}
    shared = {name: x.ravel().tolist() for name, x in lying.items()} | {"C": [np.nan] * (m * n)}
    total, local = spec.global_size(m, n, full), spec.local_size(full)
    counts = total[0] // local[0], total[1] // local[1]

    def steps(w: WorkItem):
        return walk.steps(w, m, n, k, **full)

    events = _walk_all(steps, shared, shapes, counts, local, groups, order, without_barrier, swapped, seed)
    c = np.array(shared["C"]).reshape(n, m).T
    return Trace(spec.number, full, m, n, k, a, b, c, events, shapes)


def replay_transpose(rows: int, cols: int, tile: int = 16, coalesced: bool = True) -> Trace:
    """Replay the transpose of a rows x cols matrix: `transpose.cl` (with TR = TT), or the kernel without its tile.

    Both sizes are multiples of `tile`. The trace's arrays are "in" and "out"; its `a` is the input, `c` the output.
    """
    if rows % tile or cols % tile:
        raise ValueError(f"{rows} x {cols} are not multiples of tile={tile}")
    a = np.arange(rows * cols, dtype=np.float32).reshape(rows, cols)
    shared = {"in": a.T.ravel().tolist(), "out": [np.nan] * a.size}
    shapes = {"tile": (tile, tile + 1)} if coalesced else {}

    def steps(w: WorkItem):
        return (transpose if coalesced else transpose_naive)(w, rows, cols, tile)

    events = _walk_all(steps, shared, shapes, (rows // tile, cols // tile), (tile, tile))
    c = np.array(shared["out"]).reshape(rows, cols).T
    return Trace(0, {"TT": tile}, cols, rows, 0, a, a, c, events, shapes)


def _walk_all(steps, shared, shapes, counts, local, groups=None, order="forward", without_barrier=None, swapped=False,
              seed=0) -> np.ndarray:  # fmt: skip
    """Send every work-item of every group through `steps`; return the events."""
    log: list[tuple] = []
    rng = np.random.default_rng(seed)
    for group in groups if groups is not None else [(x, y) for y in range(counts[1]) for x in range(counts[0])]:
        memory = shared | {name: [np.nan] * (rows * row) for name, (rows, row) in shapes.items()}
        number = group[1] * counts[0] + group[0]
        items = []
        for i in range(local[0] * local[1]):
            ids = i % local[0], i // local[0]
            w = WorkItem(group, ids[:: -1 if swapped else 1], (number, i), memory, log)
            items.append((w, steps(w)))
        _run(items, order, without_barrier, rng)
    return np.array(log, EVENT)


def _run(items, order: str, without_barrier: int | None, rng) -> None:
    """Let each work-item run to its next barrier, until all have ended."""
    while items:
        queue = items[::-1] if order == "backward" else list(items)
        if order == "shuffled":
            rng.shuffle(queue)
        waiting = []
        for w, steps in queue:
            barrier = next(steps, None)
            while barrier is not None and barrier == without_barrier:
                barrier = next(steps, None)
            if barrier is not None:
                w.phase += 1
                waiting.append((w, steps))
        items = [item for item in items if item in waiting]
