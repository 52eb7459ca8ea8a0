"""The worker process behind the widgets, seen from the notebook: newest request wins, a crash or a
hang is an answer.

Compilers abort on odd kernels, and kernels can hang or write where they must not. So nothing of
that happens in the notebook's own process: `child` does it in a child process (`process`), and this
module watches over the child. What nobody waits for is done by a second child (`idle`), which is
ended when somebody asks for something.
"""

from __future__ import annotations

import atexit
import base64
import itertools
import json
import pickle
import queue
import signal
import sys
import threading
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from numbers import Integral
from typing import Any

from ..catalog import Key
from ..measurement.comparison import Comparison, revive
from ..measurement.records import Result
from ..opencl.devices import Device
from ..simt import ProductRun
from .idle import Idle
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

#: Seconds that a step which nobody wants any more may still take, before the child is ended for a
#: newer request.
OVERTAKEN = 1.5


@dataclass(frozen=True)
class Outcome:
    """The answer to a request: a `result`, or a `problem` in words and its `kind` ("hang", "crash",
    "stopped", or the name of an error).

    `seen` is what the simulator found in a text of the reader's own, or why it could not look; None
    if all is well. `compared` holds the interval of a measured rate.
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
        said = self.result.verdict if self.result else self.problem
        return f"{said}{'' if said.endswith('?') else ';'} {self.seen}" if self.seen else said

    def __str__(self) -> str:
        if self.result:
            return str(replace(self.result, verdict=self.verdict))
        return self.verdict


@dataclass
class _Request:
    """A request, and how far it has come.

    Attributes:
        arguments: as its client gave them.
        message: what the child is sent.
        epitaph: of a text that hung or crashed: the answer, to which the simulator may add.
        started: whether the child has begun with it.
        outdated: whether its client has asked for something else since.
        ended: why its child was killed: "stopped", "overtaken" or "hang"; empty if it was not.
    """

    client: str
    arguments: dict
    message: dict[str, Any]
    done: Callable[[Outcome], None]
    step: Callable[[str], None]
    epitaph: Outcome | None = None
    started: bool = field(default=False, init=False)
    outdated: bool = field(default=False, init=False)
    ended: str = field(default="", init=False)

    def stopped(self, when: str) -> None:
        """Tell the client that its request was stopped."""
        problem = f"stopped {when}, as you asked"
        self.done(Outcome(self.arguments, problem=problem, kind="stopped"))


class Worker:
    """Runs measurements in a child process, started when first needed and again after a crash or a
    hang.

    A thread of its own serves one request after the other. It waits for events: a line of the
    child, the child's end, a change of what is wanted, or the end of a step's time.

    Args:
        limits: seconds for each step, over `LIMITS`.
        memory_bytes: how much memory the child may take; by default what the machine has free.

    Attributes:
        limits: seconds for each step.
        closed: whether its child has been ended for good.
        idle: what is done while nobody waits.
    """

    def __init__(self, limits: dict[str, float] | None = None, memory_bytes: int | None = None):
        self.limits = {**LIMITS, **(limits or {})}
        self.memory_bytes = memory_bytes
        self.closed = False
        self.idle = Idle(lambda: Worker(self.limits, memory_bytes))
        self._lock = threading.RLock()
        self._numbers = itertools.count(1)
        self._waiting: dict[str, _Request] = {}  # the newest of each client
        self._running: _Request | None = None
        self._child: Child | None = None
        self._step = "start"
        self._deadline: float | None = None  # of the step
        self._events: queue.SimpleQueue[tuple[Child | None, bytes | None]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

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

        What runs because nobody waited gives way too.

        Args:
            client: who asks.
            arguments: those of `timing.measure` (or what `job` takes), as JSON can hold them.
            done: called with the Outcome, from another thread.
            step: called with "compile", "predict", "check", "time", "look" as the job goes on,
                likewise.
            job: "measure"; "compare" (`comparison.compare`); "compile" (`timing.compile_ahead`);
                "peaks" of a `device`; "ceiling" (`explained.allowed`); "simulate" (`look.closely`);
                "look" (`look.look`, whose answer is in `seen`).

        Raises:
            TypeError: if another process cannot be sent the arguments.
        """
        sent = json.loads(json.dumps(arguments, default=_plain))
        with self._lock:
            if self.closed:
                raise RuntimeError("the worker has been closed")
            message = {"id": next(self._numbers), "job": job, "arguments": sent}
            self.idle.hold("request")
            self._waiting[client] = _Request(client, arguments, message, done, step)
            self._wake()

    def warm(self) -> None:
        """Start the child before it is needed."""
        with self._lock:
            if self._child is None and not self.closed:
                self._child = Child(self._events, self.memory_bytes)
                self._wake()

    def stop(self, client: str) -> None:
        """Interrupt what runs for a client by ending the child, or forget what waits; its `done`
        hears of it.
        """
        with self._lock:
            request = self._waiting.pop(client, None)
            running = self._running
            if running and running.client == client and not running.ended:
                running.ended = "overtaken" if request else "stopped"
                if self._child:
                    self._child.kill()
            self._rest()
        if request:
            request.stopped("before it ran")

    def limit(self, step: str, arguments: dict) -> float:
        """Seconds that a step may take.

        Some runtimes compile at the first launch, in whichever step that is. With a kernel's own
        text, which is known to end, it may take as long as compiling; a text of the reader's own
        may loop for ever.
        """
        launches = step in ("predict", "check")
        return self.limits["compile" if launches and arguments.get("source") is None else step]

    def close(self) -> None:
        """End the child."""
        with self._lock:
            self.closed = True
            self._waiting.clear()
            self.idle.close()
            if self._child is not None:
                self._child.kill()
            self._events.put((None, None))

    # The thread

    def _wake(self) -> None:
        self._events.put((None, None))
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, daemon=True)
            self._thread.start()

    def _serve(self) -> None:
        while not (self.closed and self._child is None):
            for tell in self._after_the_next_event():
                try:
                    tell()
                except Exception:  # of a widget: whoever asks next is served all the same
                    sys.excepthook(*sys.exc_info())

    def _after_the_next_event(self) -> list[Callable[[], None]]:
        """What to tell clients, once the lock is free."""
        with self._lock:
            left = None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
        try:
            child, line = self._events.get(timeout=left)
        except queue.Empty:
            self._too_late()
            return []
        tell = []
        with self._lock:
            if child is not None and child is self._child:
                tell.append(self._buried(child) if line is None else self._heard(child, line))
            tell.append(self._advance())
            self._rest()
        return [each for each in tell if each]

    def _advance(self) -> Callable[[], None] | None:
        """Begin the next request, or have the child give up one that is outdated."""
        running = self._running
        if running is None:
            return self._begin(next(iter(self._waiting.values()), None))
        if running.client in self._waiting and not running.outdated and self._child:
            running.outdated = True
            self._child.send({"give_up": running.message["id"]})
            self._deadline = min(self._deadline or 0.0, time.monotonic() + OVERTAKEN)
        return None

    def _begin(self, request: _Request | None) -> Callable[[], None] | None:
        if request is None or self.closed:
            return None
        self._waiting.pop(request.client, None)
        try:
            self._child = self._child or Child(self._events, self.memory_bytes)
        except OSError as error:
            problem = f"no process can be started for the kernel: {error}"
            outcome = request.epitaph or Outcome(request.arguments, problem=problem, kind="crash")
            return lambda: request.done(outcome)
        self._running = request
        self._child.send(request.message)
        self._enter("start", request)
        return None

    def _enter(self, step: str, request: _Request) -> None:
        self._step = step
        if not request.outdated:
            self._deadline = time.monotonic() + self.limit(step, request.arguments)

    def _too_late(self) -> None:
        with self._lock:
            self._deadline = None
            if self._running and not self._running.ended and self._child:
                self._running.ended = "overtaken" if self._running.outdated else "hang"
                self._child.kill()

    def _heard(self, child: Child, line: bytes) -> Callable[[], None] | None:
        request = self._running
        try:
            answer = json.loads(line)
        except ValueError:  # half a line: the child is dying, or writes where it must not
            child.kill()
            return None
        if request is None or answer["id"] != request.message["id"] or request.ended:
            return None
        if "step" in answer:
            step = answer["step"]
            if step == "start":
                request.started = True
                child.begin()
            self._enter(step, request)
            return None if request.outdated else lambda: request.step(step)
        self._running = self._deadline = None
        if answer.get("put_off"):
            return None
        outcome = _answered(request, answer)
        return lambda: request.done(outcome)

    def _rest(self) -> None:
        """Others may work while nobody waits."""
        if self._running is None and not self._waiting:
            self.idle.release("request")

    def _buried(self, child: Child) -> Callable[[], None] | None:
        """The child has ended, by itself or because it was killed."""
        request, self._running, self._child, self._deadline = self._running, None, None, None
        if request is None:
            child.close()
            return None
        outcome = self._obituary(child, request)
        child.close()
        if self.closed or request.ended == "overtaken":
            return None
        if request.ended == "stopped":
            return lambda: request.stopped(f"while {self._doing}")
        if request.epitaph:
            seen = Seen("that took too long, or too much memory", 0)
            explained = replace(request.epitaph, seen=seen)
            return lambda: request.done(explained)
        if not request.ended and not request.started and child.answered:
            # it died while it had nothing to do, and nobody had noticed
            self._waiting = {request.client: request, **self._waiting}
            return None
        if looked := _explained(request, outcome):
            return self._begin(looked)
        return lambda: request.done(outcome)

    def _obituary(self, child: Child, request: _Request) -> Outcome:
        """Why a child died, in words."""
        if request.ended == "hang":
            seconds = self.limit(self._step, request.arguments)
            problem = f"stopped: {self._doing} took over {seconds:g} s."
            if self._doing == "running":
                problem += " Is there a loop that never ends, or a barrier that not all reach?"
            return Outcome(request.arguments, problem=problem, kind="hang")
        code = child.process.returncode
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        words = child.last_words()
        said = "; its last words: " + " / ".join(words) if words else ""
        problem = f"the process that was {self._doing} the kernel died ({how}){said}"
        if request.arguments.get("source") is None:
            problem += "; `gemmlab.doctor()` says whether damaged caches are the reason"
        return Outcome(request.arguments, problem=problem, kind="crash")

    @property
    def _doing(self) -> str:
        return {"start": "starting", "compile": "compiling", "look": "looking at"}.get(
            self._step, "running"
        )


def _answered(request: _Request, answer: dict[str, Any]) -> Outcome:
    """What the child says of a request."""
    seen = answer.get("seen")
    seen = Seen(**seen) if seen else None
    if request.epitaph:
        return replace(request.epitaph, seen=seen)
    if "result" in answer:
        compared = answer.get("compared")
        compared = revive(compared) if compared else None
        result = _revived(answer["result"])
        return Outcome(request.arguments, result, seen=seen, compared=compared)
    return Outcome(request.arguments, problem=answer["error"], kind=answer["kind"])


def _explained(request: _Request, outcome: Outcome) -> _Request | None:
    """The request for what the simulator, in the next child, sees in a text of the reader's own
    that hung or crashed.
    """
    names = ("kernel", "m", "n", "k", "params", "source")
    sent = request.message["arguments"]
    arguments = {name: sent[name] for name in names if name in sent}
    if request.message["job"] not in ("measure", "compare") or arguments.get("source") is None:
        return None
    message = {"id": request.message["id"], "job": "look", "arguments": arguments}
    return replace(request, message=message, epitaph=outcome)


def _revived(found: Any) -> Any:
    """What the child found, as it was there: a `Result`, or what other jobs find."""
    if not isinstance(found, dict) or "kernel_ms" not in found:
        return found
    return Result(**{**found, **{key: tuple(found[key]) for key in ("kernel_ms", "pipeline_ms")}})


@cache
def worker() -> Worker:
    """The worker that all widgets of this process share."""
    shared = Worker()
    atexit.register(shared.close)
    return shared


def _plain(value: object) -> int:
    """A whole number of another type, such as NumPy's, as JSON can hold it."""
    if isinstance(value, Integral):
        return int(value)
    raise TypeError(f"{value!r} cannot be sent to another process")


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
        return _awaited("measure", arguments)
    except TypeError as error:
        return Outcome(arguments, problem=str(error), kind="TypeError")


def simulated(kernel: Key, params: dict[str, int], source: str | None = None) -> ProductRun:
    """`look.closely` in the child process, where a text has limits of time and memory.

    Raises RuntimeError with the reason if there is no run.
    """
    outcome = _awaited("simulate", {"kernel": kernel, "params": params, "source": source})
    if outcome.result is None:
        raise RuntimeError(outcome.problem)
    return pickle.loads(zlib.decompress(base64.b64decode(outcome.result)))


def _awaited(job: str, arguments: dict) -> Outcome:
    """The answer to a request of this thread."""
    outcomes: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
    client = f"{job} {threading.get_ident()}"
    worker().submit(client, arguments, outcomes.put, job=job)
    try:
        return outcomes.get()
    except KeyboardInterrupt:
        worker().stop(client)
        raise KeyboardInterrupt(f"the request to {job} was stopped") from None
