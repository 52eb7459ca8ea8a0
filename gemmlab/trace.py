"""Replay a kernel in Python: which work-item touches which element, when. No device needed.

Each kernel is told once more as a generator that one work-item walks through, one statement after the
other as in its file; a barrier is a `yield`. The work-items of a group run one after another from
barrier to barrier, in any order one likes. On a real device they run in an order nobody promised, so
a kernel is right only if every order is: leave a barrier out, and the replay shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from . import check
from .catalog import find

#: One touch of one element. `step` counts a work-item's own touches, `phase` the barriers it has passed.
EVENT = np.dtype(
    [("group", "i4"), ("item", "i4"), ("step", "i4"), ("phase", "i4"), ("store", "?"), ("array", "U4"), ("index", "i4")]
)


@dataclass(frozen=True)
class Trace:
    """What a replay did.

    Attributes:
        kernel, params, m, n, k: what was replayed.
        a, b: the inputs, m x k and k x n.
        c: the product that the replay computed, NaN where nothing was stored.
        events: every touch in the order of the replay, fields as in `EVENT`; `index` counts floats from the
            start of the (column-major) array, `item` is the work-item's number in its group.
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

    def count(self, *arrays: str, store: bool = False) -> int:
        """How many loads (or stores) went to the arrays of these names."""
        return int((np.isin(self.events["array"], arrays) & (self.events["store"] == store)).sum())

    def touches(self, array: str, group: int = 0, warp: int = 0, width: int = 32, store: bool = False) -> np.ndarray:
        """The element that each lane of a warp touches, one row a load: shape (loads, lanes)."""
        e = self.events
        mine = (e["array"] == array) & (e["store"] == store) & (e["group"] == group) & (e["item"] // width == warp)
        e = e[mine]
        lanes = np.unique(e["item"])
        order = np.lexsort((e["item"], e["step"]))
        return e["index"][order].reshape(-1, len(lanes))


def segments(indices: Iterable[int], size: int = 32) -> int:
    """How many aligned segments of `size` bytes a warp's loads of these floats touch: its memory transactions."""
    return len({4 * int(i) // size for i in indices})


class WorkItem:
    """One work-item of a replay: its identifiers, and the memory it may touch."""

    def __init__(self, group, local, number, memory: dict[str, list], log: list):
        self.group, self.local = group, local
        self._number, self._memory, self._log = number, memory, log
        self._step = self.phase = 0

    def load(self, array: str, index: int) -> float:
        self._touch(array, index, False)
        return self._memory[array][index]

    def store(self, array: str, index: int, value: float) -> None:
        self._touch(array, index, True)
        self._memory[array][index] = value

    def _touch(self, array: str, index: int, store: bool) -> None:
        if not 0 <= index < len(self._memory[array]):
            raise IndexError(f"work-item {self.local} of group {self.group} touches {array}[{index}], which is outside")
        self._log.append((*self._number, self._step, self.phase, store, array, index))
        self._step += 1


def _naive(w: WorkItem, M, N, K, TS):
    m = w.group[0] * TS + w.local[0]
    n = w.group[1] * TS + w.local[1]
    acc = 0.0
    for k in range(K):
        acc += w.load("A", k * M + m) * w.load("B", n * K + k)
    w.store("C", n * M + m, acc)
    yield from ()


def _work_per_thread(w: WorkItem, M, N, K, TS, WPT=1):
    rts = TS // WPT
    tm, tn = w.local
    m, n = w.group[0] * TS + tm, w.group[1] * TS + tn
    acc = [0.0] * WPT
    for t in range(K // TS):
        for i in range(WPT):
            w.store("Asub", (tn + i * rts) * TS + tm, w.load("A", (t * TS + tn + i * rts) * M + m))
            w.store("Bsub", (tn + i * rts) * TS + tm, w.load("B", (n + i * rts) * K + t * TS + tm))
        yield 1
        for k in range(TS):
            a = w.load("Asub", k * TS + tm)
            for i in range(WPT):
                acc[i] += a * w.load("Bsub", (tn + i * rts) * TS + k)
        yield 2
    for i in range(WPT):
        w.store("C", (n + i * rts) * M + m, acc[i])


#: The replay of each kernel, and its local arrays with their sizes in floats.
_REPLAYS: dict[int, tuple[Callable, dict[str, str]]] = {
    1: (_naive, {}),
    2: (_work_per_thread, {"Asub": "TS * TS", "Bsub": "TS * TS"}),  # WPT = 1
    3: (_work_per_thread, {"Asub": "TS * TS", "Bsub": "TS * TS"}),
}


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
        without_barrier: leave out barrier 1 (after loading) or 2 (after computing).
        swapped: exchange the two local identifiers, as if 0 and 1 were mixed up in the kernel (square groups only).

    Raises:
        ValueError: for sizes that are no whole tiles, or unknown values.
        IndexError: if a work-item touches something outside an array.
    """
    spec = find(kernel)
    if spec.number not in _REPLAYS:
        raise ValueError(f"kernel {spec.number} has no replay; there are {', '.join(map(str, _REPLAYS))}")
    full = spec.validate(params)
    for name, size, multiple in zip("mnk", (m, n, k), spec.multiples(full), strict=True):
        if size < 1 or size % multiple:
            raise ValueError(f"{name}={size} is not a positive multiple of {multiple}")
    if order not in ("forward", "backward", "shuffled"):
        raise ValueError(f"order must be 'forward', 'backward' or 'shuffled', not {order!r}")
    walk, local_arrays = _REPLAYS[spec.number]
    a, b = check.exact_inputs(m, n, k, seed)
    shared = {"A": a.T.ravel().tolist(), "B": b.T.ravel().tolist(), "C": [np.nan] * (m * n)}
    size, local = spec.global_size(m, n, full), spec.local(full)
    counts = size[0] // local[0], size[1] // local[1]
    log: list[tuple] = []
    rng = np.random.default_rng(seed)
    for group in groups or [(x, y) for y in range(counts[1]) for x in range(counts[0])]:
        memory = shared | {name: [np.nan] * spec.value(floats, full) for name, floats in local_arrays.items()}
        number = group[1] * counts[0] + group[0]
        items = []
        for i in range(local[0] * local[1]):
            ids = i % local[0], i // local[0]
            w = WorkItem(group, ids[:: -1 if swapped else 1], (number, i), memory, log)
            items.append((w, walk(w, m, n, k, **full)))
        _run(items, order, without_barrier, rng)
    c = np.array(shared["C"]).reshape(n, m).T
    return Trace(spec.number, full, m, n, k, a, b, c, np.array(log, EVENT))


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
