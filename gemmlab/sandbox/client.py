"""The child process behind the widgets, seen from the notebook: newest request wins, a crash or a
hang is an answer.

Compilers abort on odd kernels, and kernels can hang or write where they must not. So nothing of
that happens in the notebook's own process: `child` does it in a child process (`process`), and this
module watches over the child.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from ..ladder import Key
from ..measurement.comparison import BUDGET, Comparison
from ..opencl.devices import Device
from ..simulation import ProductRun
from .look import Seen
from .process import Child

#: Seconds that each step of a job may take before the child is stopped (PoCL compiles once more at
#: the first launch).
LIMITS = {
    "start": 60.0,
    "compile": 60.0,
    "predict": 20.0,
    "check": 20.0,
    "time": 20.0,
    "look": 60.0,
}
#: Seconds that an outdated request may still take before the child is ended.
OVERTAKEN = 1.5
#: What a child is doing to a kernel in each step; in the others it runs it.
DOING = {"": "starting", "start": "starting", "compile": "compiling", "look": "simulating"}


@dataclass(frozen=True)
class Outcome:
    """The answer to a request: a `result`, or a `problem` in words and its `kind` ("hang", "crash",
    "stopped", or the name of an error).

    `seen` holds the simulator's findings in a text of the reader's own, or why it could not run the
    text; None if there are none. `compared` holds the interval of a measured rate.
    """

    arguments: dict[str, Any]
    result: Any = None
    problem: str = ""
    kind: str = ""
    seen: Seen | None = None
    compared: Comparison | None = None

    @property
    def state(self) -> str:
        """What a panel shows: "ok"; "wrong"; "luck" if the device's result is right although the
        simulator found the text wrong; or the kind of the problem.
        """
        if self.result is None:
            return self.kind
        if not self.result.ok:
            return "wrong"
        return "luck" if self.seen and self.seen.why else "ok"

    @property
    def ok(self) -> bool:
        """Whether the result is right, and not by luck."""
        return self.state == "ok"

    @property
    def verdict(self) -> str:
        """The verdict on the result, or the problem, and what the simulator saw."""
        if self.state == "luck":
            return f"right here, by luck: {self.seen}"
        words = self.result.verdict if self.result else self.problem
        seen = self.seen
        if self.state == "wrong" and seen:  # what was not looked at explains nothing
            seen = replace(seen, unfinished="")
        if not seen or not str(seen) or (seen.unread and self.kind == "BuildError"):
            return words
        between = "\n" if "\n" in words else " " if words.endswith("?") else "; "
        return f"{words}{between}{seen}"

    def __str__(self) -> str:
        if self.result:
            return str(replace(self.result, verdict=self.verdict))
        return self.verdict


@dataclass
class _Request:
    """A request, and how far it has come.

    Attributes:
        at: the step that the child has begun; empty before it has heard of the request.
        ended: why its child was killed: "stopped", "overtaken" or "hang"; empty if it was not.
        seen: what the simulator saw in its text.
    """

    client: str
    job: str
    arguments: dict[str, Any]
    done: Callable[[Outcome], None]
    step: Callable[[str], None]
    at: str = ""
    ended: str = ""
    seen: Seen | None = None

    def problem(self, kind: str, problem: str) -> Outcome:
        return Outcome(self.arguments, problem=problem, kind=kind, seen=self.seen)


class Sandbox:
    """Runs jobs in a child process, started when first needed and again after a crash or a hang.

    One thread serves one request after another: it sends the request and reads the child's
    answers, which end when the child is killed, by a timer or by `stop`.

    Attributes:
        limits: seconds for each step.
        child: the process; None before it is needed, and after its end.
    """

    def __init__(self) -> None:
        self.limits = dict(LIMITS)
        self.child: Child | None = None
        self._changed = threading.Condition()  # held while the attributes below are read or changed
        self._waiting: dict[str, _Request] = {}  # the newest of each client
        self._running: _Request | None = None
        self._timer: threading.Timer | None = None  # it kills the child
        threading.Thread(target=self._serve, daemon=True).start()

    def submit(
        self,
        client: str,
        arguments: dict[str, Any],
        done: Callable[[Outcome], None],
        step: Callable[[str], None] = lambda step: None,
        job: str = "measure",
    ) -> None:
        """Ask for a job, one of `child.JOBS`; an older request of the same client is forgotten, or
        ended soon if it runs already.

        `done` is called with the Outcome, and `step` with each of `LIMITS` that begins, both from
        another thread. Arguments that cannot be sent to another process raise TypeError.
        """
        try:
            pickle.dumps(arguments)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise TypeError(f"the arguments cannot be sent to another process: {error}") from None
        with self._changed:
            running = self._running
            if running and running.client == client and client not in self._waiting:
                self._kill_after(OVERTAKEN)
            self._waiting[client] = _Request(client, job, arguments, done, step)
            self._changed.notify()

    def stop(self, client: str) -> None:
        """End the child that works for this client, or forget what waits; `done` hears of it."""
        with self._changed:
            waiting = self._waiting.pop(client, None)
            if self._running and self._running.client == client:
                self._kill("overtaken" if waiting else "stopped")
        if waiting:
            waiting.done(waiting.problem("stopped", "stopped before it ran, as requested"))

    def warm(self) -> None:
        """Start the child before it is needed."""
        with self._changed:
            self.child = self.child or Child()

    def limit(self, step: str, arguments: dict[str, Any]) -> float:
        """Seconds that a step may take.

        Some runtimes compile at the first launch, in whichever step that is. So a launch of a
        kernel's own text may take as long as compiling; a text of the reader's own may never end.
        """
        launches = step in ("predict", "check")
        return self.limits["compile" if launches and arguments.get("source") is None else step]

    # The thread

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                request = self._running = self._waiting.pop(next(iter(self._waiting)))
            try:
                outcome = self._answer(request)
            except Exception as error:  # the next request is served all the same
                self._kill("crash")
                self.child = None
                outcome = request.problem("crash", f"no process can run the kernel: {error}")
            with self._changed:
                self._running = None
                self._kill_after(None)
            if outcome.kind != "overtaken":
                _guarded(request.done, outcome)

    def _answer(self, request: _Request) -> Outcome:
        """Have the child do a job; a child that died while it was idle is replaced."""
        while True:
            with self._changed:
                old = self.child
                child = self.child = old or Child()
                self._kill_after(self.limits["start"])
            child.begin((request.job, request.arguments))
            for message in child.answers():
                if (outcome := self._heard(request, message)) is not None:
                    return outcome
            self.child = None
            outcome = self._obituary(child, request)
            child.close()
            if request.at or request.ended or not old:
                return outcome

    def _heard(self, request: _Request, message: Any) -> Outcome | None:
        """The outcome, if the message has it; other messages are noted."""
        if request.ended:
            return None
        if isinstance(message, dict):
            return Outcome(request.arguments, seen=request.seen, **message)
        if isinstance(message, Seen):
            request.seen = message
            return None
        request.at = message
        with self._changed:
            if request.client in self._waiting:
                return None  # it is outdated, and ends soon
            self._kill_after(self.limit(message, request.arguments))
        _guarded(request.step, message)
        return None

    def _kill_after(self, seconds: float | None) -> None:
        """Kill the child after so many seconds, or not at all; this replaces any earlier timer."""
        if self._timer:
            self._timer.cancel()
        self._timer = threading.Timer(seconds, self._late) if seconds is not None else None
        if self._timer:
            self._timer.daemon = True
            self._timer.start()

    def _late(self) -> None:
        with self._changed:
            if self._running and self._timer is threading.current_thread():
                self._kill("overtaken" if self._running.client in self._waiting else "hang")

    def _kill(self, why: str) -> None:
        if self._running:
            self._running.ended = self._running.ended or why
        if self.child:
            self.child.kill()

    def _obituary(self, child: Child, request: _Request) -> Outcome:
        """Why a child died, in words."""
        doing = DOING.get(request.at, "running")
        if request.ended in ("stopped", "overtaken"):
            return request.problem(request.ended, f"stopped while {doing}, as requested")
        if request.ended:
            seconds = self.limit(request.at or "start", request.arguments)
            problem = f"stopped: {doing} took over {seconds:g} s"
            if doing == "running" and request.at != "time":  # the check has ended
                problem += ". Is there a loop that never ends, or a barrier that not all reach?"
            return request.problem("hang", problem)
        code = child.process.returncode
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        words = child.last_words()
        last = "; its last words: " + " / ".join(words) if words else ""
        problem = f"the process that was {doing} the kernel died ({how}){last}"
        if request.arguments.get("source") is None:
            problem += "; `gemmlab.doctor()` says whether damaged caches are the reason"
        return request.problem("crash", problem)


def _guarded(function: Callable[..., None], *arguments: Any) -> None:
    """Call a function; if it fails, whoever asks next is served all the same."""
    try:
        function(*arguments)
    except Exception:
        sys.excepthook(*sys.exc_info())


def shared_sandbox() -> Sandbox:
    """The sandbox that all widgets of this process share; its child ends with the process."""
    return _sandbox_of(os.getpid())


@cache
def _sandbox_of(process: int) -> Sandbox:
    """The sandbox of a process: a forked one has no threads of its parent's."""
    return Sandbox()


def trial(  # noqa: PLR0913
    kernel: Key = 1,
    m: int = 256,
    n: int | None = None,
    k: int | None = None,
    *,
    params: Mapping[str, int] | None = None,
    device: Device | int | str | None = None,
    repeats: int | None = None,
    source: str | None = None,
    most_seconds: float | None = None,
    reference: Mapping[str, Any] | None = None,
    budget: float | None = None,
) -> Outcome:
    """`gemmlab.measure` in the child process: a crash or a hang is an answer, and never raises (but
    KeyboardInterrupt).

    Args:
        kernel, m, n, k, params, device, repeats, source, most_seconds: as in `gemmlab.measure`.
        reference: the kernel, m, n, k, params and source of a product to compare with: the runs of
            both alternate (see `comparison.compare`), and the outcome's `compared` says what they
            show. There are no `repeats` then.
        budget: seconds for these runs; also without a reference, for an interval of the rate.
    """
    arguments: dict[str, Any] = {
        "kernel": kernel,
        "m": m,
        "n": n,
        "k": k,
        "params": params,
        "device": device.index if isinstance(device, Device) else device,
        "repeats": repeats,
        "source": source,
        "most_seconds": most_seconds,
    }
    if reference is not None or budget is not None:
        arguments |= {"reference": reference, "budget": BUDGET if budget is None else budget}
    try:
        return awaited("measure", arguments)
    except TypeError as error:
        return Outcome(arguments, problem=str(error), kind="TypeError")


def simulated(kernel: Key, params: dict[str, int], source: str | None = None) -> ProductRun:
    """`look.closely` in the child process, where a text has limits of time and memory.

    Raises RuntimeError with the reason if there is no run.
    """
    outcome = awaited("simulate", {"kernel": kernel, "params": params, "source": source})
    if outcome.result is None:
        raise RuntimeError(outcome.problem)
    return outcome.result


def awaited(job: str, arguments: dict[str, Any]) -> Outcome:
    """The answer to a request of this thread."""
    outcomes: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
    client = f"{job} {threading.get_ident()}"
    shared_sandbox().submit(client, arguments, outcomes.put, job=job)
    try:
        return outcomes.get()
    except KeyboardInterrupt:
        shared_sandbox().stop(client)
        raise KeyboardInterrupt(f"the request to {job} was stopped") from None
