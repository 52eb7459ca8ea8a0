"""The worker process behind the widgets, seen from the notebook: newest request wins, a crash or a
hang is an answer.

Compilers abort on odd kernels, and kernels can hang or write where they must not. So nothing of
that happens in the notebook's own process: `child` does it in a child process (`process`), and this
module watches over the child.
"""

from __future__ import annotations

import math
import pickle
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from ..catalog import Key
from ..measurement.comparison import Comparison
from ..opencl.devices import Device
from ..simt import ProductRun
from .look import Seen
from .process import Child

#: Seconds that each step of a job may take before the child is stopped (PoCL compiles once more at
#: the first launch).
LIMITS = {
    "start": 60.0,
    "compile": 60.0,
    "predict": 20.0,
    "check": 20.0,
    "time": 10.0,
    "look": 20.0,
}
#: Seconds that an outdated request may still take before the child is ended.
OVERTAKEN = 1.5
#: What a child is doing to a kernel in each step; in the others it runs it.
DOING = {"": "starting", "start": "starting", "compile": "compiling", "look": "looking at"}


@dataclass(frozen=True)
class Outcome:
    """The answer to a request: a `result`, or a `problem` in words and its `kind` ("hang", "crash",
    "stopped", or the name of an error).

    `seen` holds the simulator's findings in a text of the reader's own, or why it could not run the
    text; None if there are none. `compared` holds the interval of a measured rate.
    """

    arguments: dict
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
        return "ok" if self.seen is None or self.seen.unread else "luck"

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
        if not self.seen:
            return words
        between = "\n" if "\n" in words else " " if words.endswith("?") else "; "
        return f"{words}{between}{self.seen}"

    def __str__(self) -> str:
        if self.result:
            return str(replace(self.result, verdict=self.verdict))
        return self.verdict


@dataclass
class _Request:
    """A request, and how far it has come.

    Attributes:
        at: the step that the child has begun; empty before it has heard of the request.
        outdated: whether its client has sent a newer request.
        ended: why its child was killed: "stopped", "overtaken" or "hang"; empty if it was not.
        seen: what the simulator saw in its text.
    """

    client: str
    job: str
    arguments: dict
    done: Callable[[Outcome], None]
    step: Callable[[str], None]
    at: str = ""
    outdated: bool = False
    ended: str = ""
    seen: Seen | None = None

    def problem(self, kind: str, problem: str) -> Outcome:
        return Outcome(self.arguments, problem=problem, kind=kind, seen=self.seen)


class Worker:
    """Runs jobs in a child process, started when first needed and again after a crash or a hang.

    One thread serves one request after the other. All that happens, here and in the child, reaches
    it as an event, and it alone changes anything.

    Attributes:
        limits: seconds for each step.
        child: the process; None before it is needed, and after its end.
    """

    def __init__(self) -> None:
        self.limits = dict(LIMITS)
        self.child: Child | None = None
        self._waiting: dict[str, _Request] = {}  # the newest of each client
        self._running: _Request | None = None
        self._deadline = math.inf  # when the child is killed
        self._events: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(target=self._serve, daemon=True).start()

    def submit(
        self,
        client: str,
        arguments: dict,
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
        request = _Request(client, job, arguments, done, step)
        self._events.put(lambda: self._take(request))

    def stop(self, client: str) -> None:
        """End the child that works for this client, or forget what waits; `done` hears of it."""
        self._events.put(lambda: self._stop(client))

    def warm(self) -> None:
        """Start the child before it is needed."""
        self._events.put(self._start)

    def limit(self, step: str, arguments: dict) -> float:
        """Seconds that a step may take.

        Some runtimes compile at the first launch, in whichever step that is. So a launch of a
        kernel's own text may take as long as compiling; a text of the reader's own may never end.
        """
        launches = step in ("predict", "check")
        return self.limits["compile" if launches and arguments.get("source") is None else step]

    # The thread

    def _serve(self) -> None:
        while True:
            left = self._deadline - time.monotonic()
            try:
                event = self._events.get(timeout=None if math.isinf(left) else max(0.0, left))
            except queue.Empty:
                event = self._late
            _guarded(event)
            if self._running is None and self._waiting:
                self._running = self._waiting.pop(next(iter(self._waiting)))
                _guarded(self._send, self._running)

    def _take(self, request: _Request) -> None:
        self._waiting[request.client] = request
        running = self._running
        if running and running.client == request.client and not running.outdated:
            running.outdated = True
            self._deadline = min(self._deadline, time.monotonic() + OVERTAKEN)

    def _stop(self, client: str) -> None:
        waiting, running = self._waiting.pop(client, None), self._running
        if running and running.client == client:
            self._kill("overtaken" if waiting else "stopped")
        if waiting:
            waiting.done(waiting.problem("stopped", "stopped before it ran, as you asked"))

    def _late(self) -> None:
        assert self._running
        self._kill("overtaken" if self._running.outdated else "hang")

    def _kill(self, why: str) -> None:
        assert self._running
        self._running.ended = self._running.ended or why
        self._deadline = math.inf
        if self.child:
            self.child.kill()

    def _start(self) -> None:
        if self.child is None:
            child = Child(lambda answer: self._events.put(lambda: self._heard(child, answer)))
            self.child = child

    def _send(self, request: _Request) -> None:
        try:
            self._start()
        except (OSError, RuntimeError) as error:  # or no thread
            words = f"no process can be started for the kernel: {error}"
            self._end(request.problem("crash", words))
            return
        assert self.child
        request.at = ""
        self._deadline = time.monotonic() + self.limit("start", request.arguments)
        self.child.begin((request.job, request.arguments))

    def _heard(self, child: Child, message: Any) -> None:
        """An answer of a child; None at its end."""
        request = self._running
        if message is None:
            self.child = None
            if request and child.answered and not request.at and not request.ended:
                self._send(request)  # it died while it had nothing to do
            elif request:
                self._end(self._obituary(child, request))
            child.close()
            return
        if not request or request.ended:
            return
        if isinstance(message, Seen):
            request.seen = message
        elif isinstance(message, str):
            request.at, child.answered = message, True
            if not request.outdated:
                self._deadline = time.monotonic() + self.limit(message, request.arguments)
                _guarded(request.step, message)
        else:
            self._end(Outcome(request.arguments, seen=request.seen, **message))

    def _end(self, outcome: Outcome) -> None:
        """The running request has its outcome."""
        request, self._running, self._deadline = self._running, None, math.inf
        if request and outcome.kind != "overtaken":
            request.done(outcome)

    def _obituary(self, child: Child, request: _Request) -> Outcome:
        """Why a child died, in words."""
        doing = DOING.get(request.at, "running")
        if request.ended in ("stopped", "overtaken"):
            return request.problem(request.ended, f"stopped while {doing}, as you asked")
        if request.ended:
            seconds = self.limit(request.at or "start", request.arguments)
            problem = f"stopped: {doing} took over {seconds:g} s."
            if doing == "running":
                problem += " Is there a loop that never ends, or a barrier that not all reach?"
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


@cache
def worker() -> Worker:
    """The worker that all widgets of this process share; its child ends with the process."""
    return Worker()


def trial(
    kernel: Key = 1, m: int = 256, n: int | None = None, k: int | None = None, **options: Any
) -> Outcome:
    """`gemmlab.measure` in the child process: a crash or a hang is an answer, and never raises (but
    KeyboardInterrupt).

    Args:
        kernel, m, n, k, options: as `gemmlab.measure` (params, device, repeats, source,
            most_seconds).
    """
    device = options.pop("device", None)
    device = device.index if isinstance(device, Device) else device
    arguments = {"kernel": kernel, "m": m, "n": n, "k": k, "device": device, **options}
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


def awaited(job: str, arguments: dict) -> Outcome:
    """The answer to a request of this thread."""
    outcomes: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
    client = f"{job} {threading.get_ident()}"
    worker().submit(client, arguments, outcomes.put, job=job)
    try:
        return outcomes.get()
    except KeyboardInterrupt:
        worker().stop(client)
        raise KeyboardInterrupt(f"the request to {job} was stopped") from None
