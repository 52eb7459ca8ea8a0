"""Who used the processors: to see that nothing else computed while something was timed."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import psutil

#: What a process is, by a word of its command line; the first that fits counts.
KINDS = {
    "gemmlab.worker.child": "worker",
    "ipykernel_launcher": "kernel",
    "jupyterlab": "server",
    "--type=": "browser",
    "--headless": "browser",
}


@dataclass
class Usage:
    """Seconds of processor time, of each process by its kind and number, and of the whole machine.

    What no living process has used, processes have used that have ended meanwhile, or the system.
    """

    of: Counter[tuple[str, int]]
    machine: float

    @classmethod
    def now(cls) -> Usage:
        """What was used since the machine was started."""
        of: Counter[tuple[str, int]] = Counter()
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                of[_kind(process), process.pid] = times.user + times.system
        whole = psutil.cpu_times()
        return cls(of, whole.user + whole.nice + whole.system)

    def __sub__(self, before: Usage) -> Usage:
        """What was used since then."""
        return Usage(self.of - before.of, self.machine - before.machine)

    def seconds(self, processes: Iterable[int]) -> float:
        """What some processes used, by their numbers."""
        wanted = set(processes)
        return sum(seconds for (_, number), seconds in self.of.items() if number in wanted)

    def __str__(self) -> str:
        shown: dict[str, list[float]] = {}
        for (kind, _), seconds in self.of.most_common():
            shown.setdefault(kind, []).append(seconds)
        parts = [f"{kind} {sum(seconds):.2f}" for kind, seconds in shown.items()]
        ended = max(0.0, self.machine - self.of.total())
        return f"processor seconds: {', '.join(parts)}, ended processes and the system {ended:.2f}"


def _kind(process: psutil.Process) -> str:
    if process.pid == os.getpid():
        return "test"
    words = " ".join(process.cmdline())
    return next((kind for word, kind in KINDS.items() if word in words), "other")
