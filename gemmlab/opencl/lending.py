"""Memory that a device borrows from its owner, and how it is given back.

A kernel that was given the address of a NumPy array goes on writing there after Python has lost interest: OpenCL does
not keep the array alive, and Ctrl-C raises KeyboardInterrupt after any step of Python. So whoever lends memory to a
device enqueues its commands inside `lend`, which does not end, by return or by any exception, before the device has
finished with that memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pyopencl as cl

_T = TypeVar("_T")


def lend(work: Callable[[], _T], *waits: Callable[[], object]) -> _T:
    """Call `work`, which enqueues commands on borrowed memory, and wait for them; return what `work` returned.

    Args:
        work: a function without arguments, which keeps a reference to the memory.
        waits: functions that return once the commands are done, such as `queue.finish`.

    Raises:
        What `work` or a wait raises, after `complete(*waits)`.
    """
    try:
        result = work()
        for wait in waits:
            wait()
        return result
    except BaseException:
        complete(*waits)
        raise


def complete(*waits: Callable[[], object]) -> None:
    """Call each wait until it returns, however often it is interrupted: a second Ctrl-C has to wait as well."""
    for wait in waits:
        while True:
            try:
                wait()
                break
            except cl.Error:  # the device is lost, and does not write any more
                break
            except BaseException:  # the caller raises the first exception
                continue
