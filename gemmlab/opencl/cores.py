"""A core for each thread that computes.

PoCL starts as many threads as there are cores, and leaves it to the system where they run. They sleep between kernels,
and at times the system wakes two of them on one core, where they stay for milliseconds: longer than many a product
takes, and then it has half of the processor only.

Intel's runtime starts one thread fewer, since the thread that waits for a kernel computes as well. Where that one runs
is the system's choice, which is the core of another one more often than not if the caller has been elsewhere.
"""

from __future__ import annotations

import ctypes
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


class Team:
    """Threads of a runtime that compute together with the thread that calls, each on a core of its own.

    Args:
        started: their numbers.

    Raises:
        ValueError: if they are not one fewer than there are cores.
    """

    def __init__(self, started: set[int]):
        self._free, *others = sorted(os.sched_getaffinity(0))
        self._threads = dict(zip(others, sorted(started), strict=True))  # by the core of each
        for core, thread in self._threads.items():
            os.sched_setaffinity(thread, {core})
        self._current_core = ctypes.CDLL(None).sched_getcpu

    def make_room(self) -> None:
        """If one of them is on the core of the thread that calls, send it to the core that is left.

        That takes a microsecond, or a tenth where all is well. The thread that calls is the user's, and stays as it is.
        """
        core = self._current_core()
        thread = self._threads.pop(core, None)
        if thread is not None:
            self._threads[self._free] = thread
            with suppress(OSError):  # it has ended
                os.sched_setaffinity(thread, {self._free})
            self._free = core


def team_of(started: set[int]) -> Team | None:
    """These threads as a team, or None where they are not one fewer than there are cores, or cores are not told."""
    with suppress(AttributeError, OSError, ValueError):  # Windows and macOS have neither of the functions
        return Team(started)
    return None
