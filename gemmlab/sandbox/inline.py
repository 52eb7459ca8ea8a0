"""Jobs in this process: a browser's Python can start no other one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from clscope.webgpu import EndlessError

from .. import background
from ..opencl import cl
from .jobs import JOBS
from .look import Refused, Seen
from .outcome import Outcome


@dataclass
class _Request:
    """A request; `is_stopped`: nobody waits for its answer any more."""

    client: str
    job: str
    arguments: dict[str, Any]
    done: Callable[[Outcome], None]
    on_step: Callable[[str | Seen], None]
    seen: Seen | None = None
    is_stopped: bool = False

    def take_step(self, step: str | Seen | None) -> None:
        """Report a step; refuse to launch what the simulator could not run, since it may never end.
        A loop that it saw go on for ever is refused by the job.
        """
        unread = self.seen and self.seen.unread
        if isinstance(step, Seen):
            self.seen = step
        elif step and unread and step not in ("start", "look", "compile"):
            raise Refused(f"the simulator could not run it, so the GPU does not: {unread}")
        if step and not self.is_stopped:
            self.on_step(step)

    def run(self) -> None:
        """Do the job, and report its outcome."""
        arguments = self.arguments
        try:
            self.take_step("start")
            answer = JOBS[self.job](arguments, self.take_step)
            outcome = Outcome(arguments, seen=self.seen, **answer)
        except EndlessError as error:
            outcome = Outcome(arguments, problem=str(error), kind="hang")
        except cl.Error as error:
            outcome = Outcome(arguments, problem=str(error), kind="crash")
        except Exception as error:  # every failure is an answer
            outcome = Outcome(arguments, problem=str(error), kind=type(error).__name__)
        self.finish(outcome)

    def finish(self, outcome: Outcome) -> None:
        """Report an outcome once; a client's failure is shown, and hurts nobody else."""
        if self.is_stopped:
            return
        self.is_stopped = True
        try:
            self.done(outcome)
        except Exception:
            sys.excepthook(*sys.exc_info())


class Inline:
    """Runs jobs one after another, as a `Sandbox` does, but where nothing ends them.

    A GPU finishes what it has begun, so source code that the simulator cannot run, or in which it
    sees a loop without an end, does not reach the GPU.
    """

    def __init__(self) -> None:
        self.limits: dict[str, float] = {}  # none, see `limit`
        self._waiting: dict[str, _Request] = {}  # the newest of each client
        self._running: _Request | None = None
        self._idle: background.Event | None = None  # set when nothing waits; None if so now

    def submit(
        self,
        client: str,
        arguments: dict[str, Any],
        done: Callable[[Outcome], None],
        step: Callable[[str | Seen], None] = lambda step: None,
        job: str = "measure",
    ) -> None:
        """Request a job, see `Sandbox.submit`. The answers come from a task."""
        self._waiting[client] = _Request(client, job, arguments, done, step)
        if self._idle is None:
            self._idle = background.Event()
            background.start(self._serve)

    def run(self, client: str, arguments: dict[str, Any], job: str) -> Outcome:
        """Do a job here and now, when those before it have ended; return its outcome."""
        while self._idle is not None and self._idle.wait():
            pass
        outcomes: list[Outcome] = []
        _Request(client, job, arguments, outcomes.append, lambda step: None).run()
        return outcomes[0]

    def stop(self, client: str) -> None:
        """Answer what waits, or runs, for this client at once; what runs goes on unheard."""
        waiting, running = self._waiting.pop(client, None), self._running
        for request in (waiting, running if running and running.client == client else None):
            if request:
                problem = "stopped, as requested"
                request.finish(Outcome(request.arguments, problem=problem, kind="stopped"))

    def warm(self) -> None:
        """Do nothing: there is no process to start."""

    def limit(self, step: str, arguments: dict[str, Any]) -> None:
        """Return the seconds that a step may take: nothing ends it."""

    def _serve(self) -> None:
        while self._waiting:
            self._running = self._waiting.pop(next(iter(self._waiting)))
            self._running.run()
        self._running = None
        idle, self._idle = self._idle, None
        if idle:
            idle.set()
