"""Work for the time in which nobody waits: what would otherwise be asked next, and what a chart
shows beside it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .client import Outcome, Worker

#: Seconds that a job of this kind may still run after somebody has asked for something.
GRACE = 0.1
#: Seconds without a request after which such jobs go on.
PAUSE = 0.5


@dataclass(frozen=True)
class Job:
    """What is to be done, as `Worker.submit` takes it, and who hears of it."""

    job: str
    arguments: dict[str, Any]
    done: Callable[[Outcome], None] = lambda outcome: None


class Idle:
    """Runs jobs one after the other in a child process of their own, so that the other child stays
    warm and free.

    When somebody asks for something, the job that runs is given GRACE seconds. If it has not ended
    then, its child is ended, and the job waits for the next pause.

    Args:
        hire: makes the worker whose child runs these jobs, and nothing else; called at the first
            job.
    """

    def __init__(self, hire: Callable[[], Worker]):
        self._hire = hire
        self._worker: Worker | None = None
        self._lock = threading.RLock()
        self._plans: dict[str, list[Job]] = {}  # by client, the latest first
        self._running: tuple[list[Job], Job] | None = None  # a job, and the plan that it comes from
        self._reasons: set[str] = set()  # why nothing may run now
        self._quiet = True  # whether nobody has asked for a while
        self._timer: threading.Timer | None = None
        self._closed = False

    def plan(self, client: str, jobs: Sequence[Job]) -> None:
        """What to do for a client, in this order, instead of what was planned for it before."""
        with self._lock:
            self._plans = {
                client: list(jobs),
                **{c: plan for c, plan in self._plans.items() if c != client},
            }
            self._next()

    def hold(self, reason: str) -> None:
        """Somebody asks for something, or a cell runs: begin nothing new, and stop in a moment."""
        with self._lock:
            if not self._reasons:
                self._after(GRACE, self._interrupt)
            self._reasons.add(reason)
            self._quiet = False

    def release(self, reason: str) -> None:
        """That reason is no more: if there is no other, go on in a moment."""
        with self._lock:
            self._reasons.discard(reason)
            if not self._reasons:
                self._after(PAUSE, self._go_on)

    def close(self) -> None:
        """End the child, and do nothing any more."""
        with self._lock:
            self._closed = True
            if self._timer:
                self._timer.cancel()
            if self._worker:
                self._worker.close()

    def _after(self, seconds: float, action: Callable[[], None]) -> None:
        if self._timer:
            self._timer.cancel()
        if not self._closed:
            self._timer = threading.Timer(seconds, action)
            self._timer.daemon = True
            self._timer.start()

    def _interrupt(self) -> None:
        with self._lock:
            if self._reasons and self._running and self._worker:
                self._worker.stop("idle")

    def _go_on(self) -> None:
        with self._lock:
            self._quiet = not self._reasons
            self._next()

    def _next(self) -> None:
        plan = next((plan for plan in self._plans.values() if plan), None)
        if plan and self._quiet and not self._running and not self._closed:
            self._worker = self._worker or self._hire()
            job = plan.pop(0)
            self._running = plan, job
            self._worker.submit("idle", job.arguments, self._ended, job=job.job)

    def _ended(self, outcome: Outcome) -> None:
        with self._lock:
            assert self._running
            (plan, job), self._running = self._running, None
            if outcome.kind == "stopped":
                plan.insert(0, job)  # of use only if no newer plan has taken its place
            self._next()
        if outcome.kind != "stopped":
            job.done(outcome)
