"""Work that goes on while a cell does something else, or after it has ended.

In CPython it runs in a thread. A browser's Python (Pyodide) has no threads: there it is a task of
the event loop, and whoever waits suspends its own stack, which browsers call JSPI.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from typing import Any

if sys.platform == "emscripten":
    from pyodide.ffi import can_run_sync, run_sync

    def start(function: Callable[..., object], *arguments: Any) -> None:
        """Begin to call a function."""

        async def task() -> None:
            try:
                function(*arguments)
            except Exception:
                sys.excepthook(*sys.exc_info())

        _tasks.add(running := asyncio.ensure_future(task()))
        running.add_done_callback(_tasks.discard)

    def start_after(seconds: float, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function when so many seconds have passed."""
        asyncio.get_event_loop().call_later(seconds, start, function, *arguments)

    class Event:
        """Something to wait for."""

        def __init__(self) -> None:
            self._future: asyncio.Future[None] = asyncio.get_event_loop().create_future()

        def set(self) -> None:
            """Let everybody go on who waits, now or later."""
            if not self._future.done():
                self._future.set_result(None)

        def wait(self, timeout: float | None = None) -> bool:
            """Wait for `set`; return whether it came within `timeout` seconds.

            Where no stack can be suspended, return at once.
            """
            if can_run_sync():
                run_sync(asyncio.wait([self._future], timeout=timeout))
            return self._future.done()

    #: The event loop holds tasks weakly.
    _tasks: set[asyncio.Future[None]] = set()

else:
    Event = threading.Event

    def start(function: Callable[..., object], *arguments: Any) -> None:
        """Begin to call a function."""
        threading.Thread(target=function, args=arguments, daemon=True).start()

    def start_after(seconds: float, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function when so many seconds have passed."""
        timer = threading.Timer(seconds, function, arguments)
        timer.daemon = True
        timer.start()
