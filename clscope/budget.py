"""What a simulation may spend: seconds of its thread, and bytes for what it records."""

from __future__ import annotations

import time
from collections.abc import Callable

#: Processor time of the present thread, in seconds; WebAssembly has no such clock.
thread_time = getattr(time, "thread_time", time.perf_counter)
#: Called now and then by anything that may take long; raises `OutOfBudget` when time is up.
Clock = Callable[[], None]
#: Bytes that the log and the output of printf may take, without and with a deadline.
MOST_BYTES, MOST_BYTES_TIMED = 1 << 29, 1 << 27
#: The share of the time that a kernel may run; the rest is for the search for races.
RUNNING = 0.7


class OutOfBudget(TimeoutError):
    """A simulation has spent what it may; the message says what was spent."""


def no_limit() -> None:
    """A deadline that never expires."""


class Budget:
    """A deadline, and bytes to be taken.

    Args:
        seconds: processor time of this thread from now on; None for no deadline.

    Attributes:
        spent: seconds since it began, as of the last time that it looked.
    """

    def __init__(self, seconds: float | None = None):
        self.seconds = seconds
        self.size = self.left = MOST_BYTES if seconds is None else MOST_BYTES_TIMED
        self.begun, self.spent, self.calls = thread_time(), 0.0, 0

    def __call__(self, share: float = 1.0) -> None:
        """Raise OutOfBudget if more than this share of the time has been spent.

        Asking for the time takes microseconds, so only every 16th call does.
        """
        self.calls += 1
        if self.calls % 16:
            return
        self.spent = thread_time() - self.begun
        if self.seconds is not None and self.spent > share * self.seconds:
            raise OutOfBudget(f"it stopped after {self.seconds:g} s")

    def take(self, size: int) -> None:
        """Take bytes; raise OutOfBudget if there are not so many left."""
        self.left -= size
        if self.left < 0:
            raise OutOfBudget(f"it stopped after {self.size >> 20} MB of records")
