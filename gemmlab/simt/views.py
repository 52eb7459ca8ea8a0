"""What pictures and chapters ask of a run: the accesses of an array, of a warp, of a work-item; segments."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .api import Run


def select(run: Run, array: str, store: bool = False, **where: int) -> np.ndarray:
    """The events of one array, loads or stores, whose fields (group, item, phase ...) are as asked for."""
    events = run.accesses.get((array, store), run.events()[:0])
    chosen = np.ones(len(events), bool)
    for name, value in where.items():
        chosen &= events[name] == value
    return events[chosen]


def touches(run: Run, array: str, group: int = 0, warp: int = 0, width: int = 32, store: bool = False) -> np.ndarray:
    """The first number that each lane of a warp touches, one row per instruction: shape (instructions, lanes)."""
    events = select(run, array, store, group=group)
    events = events[events["item"] // width == warp]
    lanes = np.unique(events["item"])
    order = np.lexsort((events["item"], events["step"]))
    return events["index"][order].reshape(-1, max(1, len(lanes)))


def elements(events: np.ndarray) -> list[int]:
    """Every number that these events touch, each once, in order."""
    if not len(events):
        return []
    wide = np.arange(int(events["width"].max()))
    places = events["index"][:, None] + np.minimum(wide, events["width"][:, None] - 1)
    return np.unique(places).tolist()


def segments(indices: Iterable[int], size: int = 32, width: int = 1) -> int:
    """How many aligned segments of `size` bytes a warp touches: its memory transactions.

    `indices` are the first floats of loads of `width` floats each.
    """
    return len({4 * (int(i) + j) // size for i in indices for j in range(width)})
