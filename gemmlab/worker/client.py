"""The worker process behind the widgets, seen from the notebook: newest request wins, a crash or a
hang is an answer.

Compilers abort on odd kernels, and kernels can hang or write where they must not. So nothing of
that happens in the notebook's own process: `child` does it in a child process (`process`), and this
module watches over the child.
"""

from __future__ import annotations

import atexit
import itertools
import math
import pickle
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
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
    def ok(self) -> bool:
        """Whether the result is right, and not by luck as far as the simulator could look (see
        `Seen.unread`).
        """
        return (
            self.result is not None and self.result.ok and (self.seen is None or self.seen.unread)
        )

    @property
    def by_luck(self) -> bool:
        """Whether the device's result is right although the text is not."""
        return self.result is not None and self.result.ok and not self.ok

    @property
    def verdict(self) -> str:
        """The verdict on the result, or the problem, and what the simulator saw."""
        if self.by_luck:
            return f"right here, by luck: {self.seen}"
        words = self.result.verdict if self.result else self.problem
        return f"{words}{'' if words.endswith('?') else ';'} {self.seen}" if self.seen else words

    def __str__(self) -> str:
        if self.result:
            return str(replace(self.result, verdict=self.verdict))
        return self.verdict


@dataclass
class _Request:
    """A request, and how far it has come.

    Attributes:
        number: of the message to the child.
        at: the step that the child has begun; empty before it has heard of the request.
        outdated: when its client has sent a newer request.
        ended: why its child was killed: "stopped", "overtaken" or "hang"; empty if it was not.
    """

    client: str
    number: int
    job: str
    arguments: dict
    done: Callable[[Outcome], None]
    step: Callable[[str], None]
    at: str = field(default="", init=False)
    outdated: float = field(default=math.inf, init=False)
    ended: str = field(default="", init=False)

    @property
    def own_text(self) -> bool:
        """Whether it runs a text of the reader's own, which may never end."""
        return self.arguments.get("source") is not None

    def failed(self, kind: str, problem: str) -> Outcome:
        return Outcome(self.arguments, problem=problem, kind=kind)

    def stopped(self, when: str) -> Outcome:
        return self.failed("stopped", f"stopped {when}, as you asked")


class Worker:
    """Runs jobs in a child process, started when first needed and again after a crash or a hang.

    A separate thread serves one request after the other.

    Attributes:
        limits: seconds for each step.
        closed: whether its child has been ended for good.
    """

    def __init__(self) -> None:
        self.limits = dict(LIMITS)
        self.closed = False
        self._numbers = itertools.count(1)
        self._changed = threading.Condition(threading.RLock())  # guards all that follows
        self._waiting: dict[str, _Request] = {}  # the newest of each client
        self._running: _Request | None = None
        self._child: Child | None = None
        self._thread: threading.Thread | None = None
        #: answers of children, their ends (None), and a nudge when a request has become outdated
        self._events: queue.SimpleQueue[tuple[Child | None, Any]] = queue.SimpleQueue()

    def submit(
        self,
        client: str,
        arguments: dict,
        done: Callable[[Outcome], None],
        step: Callable[[str], None] = lambda step: None,
        job: str = "measure",
    ) -> None:
        """Ask for a measurement; an older request of the same client is forgotten, or given up if
        it runs already.

        Args:
            client: who asks.
            arguments: those of `timing.measure` (or what `job` takes).
            done: called with the Outcome, from another thread.
            step: called with "compile", "predict", "check", "time", "look" as the job goes on,
                likewise.
            job: one of `child.JOBS`.

        Raises:
            TypeError: if another process cannot be sent the arguments.
        """
        try:
            pickle.dumps(arguments)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise TypeError(f"the arguments cannot be sent to another process: {error}") from None
        with self._changed:
            if self.closed:
                raise RuntimeError("the worker has been closed")
            request = _Request(client, next(self._numbers), job, arguments, done, step)
            self._waiting[client] = request
            running = self._running
            if running and running.client == client:
                running.outdated = min(running.outdated, time.monotonic())
                if self._child:
                    self._child.send(running.number)  # it is to give up
                self._events.put((None, None))
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, daemon=True)
                self._thread.start()
            self._changed.notify()

    def warm(self) -> None:
        """Start the child before it is needed."""
        with self._changed:
            if self._child is None and not self.closed:
                self._child = Child(self._events)

    def stop(self, client: str) -> None:
        """Interrupt what runs for a client by ending the child, or forget what waits; its `done`
        hears of it.
        """
        with self._changed:
            request, running = self._waiting.pop(client, None), self._running
            if running and running.client == client and not running.ended:
                running.ended = "overtaken" if request else "stopped"
                if self._child:
                    self._child.kill()
        if request:
            request.done(request.stopped("before it ran"))

    def limit(self, step: str, arguments: dict) -> float:
        """Seconds that a step may take.

        Some runtimes compile at the first launch, in whichever step that is. So a launch of a
        kernel's own text may take as long as compiling; a text of the reader's own may never end.
        """
        launches = step in ("predict", "check")
        return self.limits["compile" if launches and arguments.get("source") is None else step]

    def close(self) -> None:
        """End the child."""
        with self._changed:
            self.closed = True
            self._waiting.clear()
            if self._child is not None:
                self._child.kill()
            self._changed.notify()

    # The thread

    def _serve(self) -> None:
        while (request := self._next()) is not None:
            outcome = self._outcome(request)
            with self._changed:
                self._running = None
            if outcome is not None:
                _tell(request.done, outcome)

    def _next(self) -> _Request | None:
        with self._changed:
            self._changed.wait_for(lambda: self.closed or self._waiting)
            if self.closed:
                return None
            self._running = self._waiting.pop(next(iter(self._waiting)))
            return self._running

    def _outcome(self, request: _Request) -> Outcome | None:
        """The answer to a request; None if nobody waits for it any more."""
        outcome = self._asked(request)
        if outcome is None or outcome.kind not in ("crash", "hang"):
            return outcome
        if request.job != "measure" or not request.own_text:
            return outcome
        # what the simulator, in the next child, sees in a text that hung or crashed
        names = ("kernel", "m", "n", "k", "params", "source")
        arguments = {name: request.arguments[name] for name in names if name in request.arguments}
        look = replace(request, number=next(self._numbers), job="look", arguments=arguments)
        with self._changed:
            self._running = look
        seen = self._asked(look)
        if seen is None or seen.kind == "stopped":
            return seen and replace(seen, arguments=request.arguments)
        unread = Seen("that took too long, or too much memory", 0)
        return replace(outcome, seen=unread if seen.problem else seen.seen)

    def _asked(self, request: _Request) -> Outcome | None:
        """What a child answers, or why it has ended."""
        with self._changed:
            if self._child and self._child.process.poll() is not None:  # it died while idle
                self._child.close()
                self._child = None
        try:
            self.warm()
        except OSError as error:
            problem = f"no process can be started for the kernel: {error}"
            return request.failed("crash", problem)
        child = self._child
        if child is None:
            return None
        child.begin((request.number, request.job, request.arguments))
        ended, answer = self._answer(child, request)
        if not ended:
            return None if answer is None else Outcome(request.arguments, **answer)
        with self._changed:
            self._child = None
        outcome = self._obituary(child, request)
        child.close()
        return None if self.closed or request.ended == "overtaken" else outcome

    def _answer(self, child: Child, request: _Request) -> tuple[bool, dict[str, Any] | None]:
        """Whether the child has ended, and otherwise its answer; None if it has given up."""
        deadline = time.monotonic() + self.limit("start", request.arguments)
        while True:
            late = min(deadline, request.outdated + OVERTAKEN)
            left = None if request.ended else max(0.0, late - time.monotonic())
            try:
                sender, said = self._events.get(timeout=left)
            except queue.Empty:
                with self._changed:
                    why = "hang" if math.isinf(request.outdated) else "overtaken"
                    request.ended = request.ended or why
                child.kill()
                continue
            if sender is not child:
                continue
            if said is None:
                return True, None
            number, answer = said
            if number != request.number or request.ended:
                continue
            if not isinstance(answer, str):
                return False, answer
            request.at = answer
            if math.isinf(request.outdated):
                deadline = time.monotonic() + self.limit(answer, request.arguments)
                _tell(request.step, answer)

    def _obituary(self, child: Child, request: _Request) -> Outcome:
        """Why a child died, in words."""
        doing = DOING.get(request.at, "running")
        if request.ended == "stopped":
            return request.stopped(f"while {doing}")
        if request.ended:
            seconds = self.limit(request.at or "start", request.arguments)
            problem = f"stopped: {doing} took over {seconds:g} s."
            if doing == "running":
                problem += " Is there a loop that never ends, or a barrier that not all reach?"
            return request.failed("hang", problem)
        code = child.process.returncode
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        words = child.last_words()
        last = "; its last words: " + " / ".join(words) if words else ""
        problem = f"the process that was {doing} the kernel died ({how}){last}"
        if not request.own_text:
            problem += "; `gemmlab.doctor()` says whether damaged caches are the reason"
        return request.failed("crash", problem)


def _tell(function: Callable[[Any], None], what: Any) -> None:
    """Call a function of a widget; if it fails, whoever asks next is served all the same."""
    try:
        function(what)
    except Exception:
        sys.excepthook(*sys.exc_info())


@cache
def worker() -> Worker:
    """The worker that all widgets of this process share."""
    shared = Worker()
    atexit.register(shared.close)
    return shared


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
