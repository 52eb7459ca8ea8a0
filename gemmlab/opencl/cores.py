"""A core for each thread of PoCL.

PoCL starts as many threads as there are cores, and leaves it to the system where they run. They sleep between kernels,
and at times the system wakes two of them on one core, where they stay for milliseconds: longer than many a product
takes, and then it has half of the processor only.
"""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import cycle


def threads() -> set[int]:
    """The numbers of this process's threads; none where the system does not list them, as only Linux does."""
    try:
        return set(map(int, os.listdir("/proc/self/task")))
    except OSError:
        return set()


def keep_apart(started: set[int]) -> None:
    """Give each thread that PoCL has started a core of its own, if there are as many as cores, once for each PoCL.

    Nothing is changed where PoCL's own variable POCL_AFFINITY is set.

    Args:
        started: their numbers.
    """
    cores = sorted(os.sched_getaffinity(0)) if started else [0]
    if len(started) % len(cores) or "POCL_AFFINITY" in os.environ:
        return
    for thread, core in zip(sorted(started), cycle(cores), strict=False):
        with suppress(OSError):  # it has ended, or the system does not allow it
            os.sched_setaffinity(thread, {core})
