"""The worker process behind the widgets, seen from the notebook: newest request wins, a crash or a
hang is an answer.

Compilers abort on odd kernels, and kernels can hang or write where they must not. So nothing of
that happens in the notebook's own process: `child` does it in a child process, and this module
watches over the child. What nobody waits for is done by a second child (`idle`), which is ended
when somebody asks for something.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from numbers import Integral
from typing import IO, Any

from ..catalog import Key
from ..measurement.comparison import Comparison, revive
from ..measurement.records import Result
from ..opencl.devices import Device
from .idle import Idle
from .look import Seen, look

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
    id: int
    client: str
    message: str
    arguments: dict
    done: Callable[[Outcome], None]
    step: Callable[[str], None]


@dataclass
class _Child:
    """A running child process, and the file that its last words go to.

    Attributes:
        answered: whether it has said anything yet.
        before: bytes of words that earlier jobs left in the file.
    """

    process: subprocess.Popen
    requests: IO[bytes]
    answers: IO[bytes]
    words: IO[bytes]
    answered: bool = False
    before: int = 0

    def begin(self) -> None:
        """A job begins: what was said before belongs to others."""
        self.answered, self.before = True, os.fstat(self.words.fileno()).st_size

    def last_words(self) -> list[str]:
        """The last lines of the present job, without a runtime's plea to report the reader's own
        mistake as a bug.
        """
        self.words.seek(max(self.before, self.words.seek(0, os.SEEK_END) - 2000))
        lines = self.words.read().decode(errors="replace").strip().splitlines()
        return [line for line in lines if not re.search(r"\bbug\b", line, re.IGNORECASE)][-6:]

    def close(self) -> None:
        for stream in (self.requests, self.answers, self.words):
            with contextlib.suppress(OSError):  # a request that the dead child never took
                stream.close()


class Worker:
    """Runs measurements in a child process, started when first needed and again after a crash or a
    hang.

    Args:
        limits: seconds for each step, over `LIMITS`.

    Attributes:
        limits: seconds for each step.
        closed: whether its child has been ended for good.
        idle: what is done while nobody waits.
    """

    def __init__(self, limits: dict[str, float] | None = None):
        self.limits = {**LIMITS, **(limits or {})}
        self.closed = False
        self.idle = Idle(lambda: Worker(self.limits))
        self._lock = threading.RLock()
        self._numbers = itertools.count(1)
        self._waiting: dict[str, _Request] = {}  # the newest of each client that has no answer yet
        self._running: _Request | None = None
        self._step = "start"
        self._alarm: threading.Timer | None = None  # rings when the step takes too long
        self._late = False
        self._overtaken = False  # whether its child ends because of a newer request
        # one that its client does not want any more, while its child ends
        self._stopped: _Request | None = None
        self._child: _Child | None = None

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
                "peaks" of a `device`; "ceiling" (`explained.allowed`).
        """
        with self._lock:
            if self.closed:
                raise RuntimeError("the worker has been closed")
            number = next(self._numbers)
            message = json.dumps(
                {"id": number, "client": client, "job": job, "arguments": arguments}, default=_plain
            )
            self.idle.hold("request")
            self._waiting[client] = _Request(number, client, message, arguments, done, step)
            if self._child is None:
                self._start()
            else:
                if self._running and self._running.client == client:
                    timer = threading.Timer(OVERTAKEN, self._overtake, (self._child, self._running))
                    timer.daemon = True
                    timer.start()
                # it was started before it was needed
                if not self._child.answered and self._alarm is None:
                    self._enter("start")
                self._send(self._child, message)

    def warm(self) -> None:
        """Start the child before it is needed."""
        with self._lock:
            if self._child is None and not self.closed:
                self._start()

    def stop(self, client: str) -> None:
        """Interrupt what runs for a client by ending the child, or forget what waits; its `done`
        hears of it.
        """
        with self._lock:
            request = self._waiting.pop(client, None)
            if request is None:
                return
            if self._child and self._running and self._running.client == client:
                self._stopped = request
                self._child.process.kill()  # `_listen` finds out
                return
            if self._child:
                self._send(
                    self._child,
                    json.dumps({"id": 0, "client": client, "job": "nothing", "arguments": {}}),
                )
            if not self._waiting:
                self._rest()
        request.done(
            Outcome(
                request.arguments, problem="stopped before it ran, as you asked", kind="stopped"
            )
        )

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
                self._child.process.kill()

    def _overtake(self, child: _Child, request: _Request) -> None:
        with self._lock:
            if child is self._child and self._running is request:
                self._overtaken = True
                child.process.kill()

    def _rest(self) -> None:
        """Nobody waits for anything any more."""
        self._enter(None)
        self.idle.release("request")

    def _start(self) -> None:
        words = tempfile.TemporaryFile()  # noqa: SIM115 (closed when the child has ended)
        process = subprocess.Popen(
            [sys.executable, "-m", "gemmlab.worker.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=words,
            env={**os.environ, "PYTHONSAFEPATH": "1"},
            start_new_session=True,  # interrupting a cell is no message to the child
        )
        assert process.stdin and process.stdout
        child = self._child = _Child(process, process.stdin, process.stdout, words)
        if self._waiting:
            self._enter("start")
        for request in self._waiting.values():
            self._send(child, request.message)
        threading.Thread(target=self._listen, args=(child,), daemon=True).start()

    def _send(self, child: _Child, message: str) -> None:
        try:
            child.requests.write(message.encode() + b"\n")
            child.requests.flush()
        except OSError:
            pass  # the child has died; `_listen` finds out, starts a new one and sends again

    def _enter(self, step: str | None) -> None:
        """A step begins, with its time limit; None: the child has nothing to do."""
        if self._alarm:
            self._alarm.cancel()
            self._alarm = None
        if step and self._child:
            self._step = step
            seconds = self.limit(step, self._running.arguments if self._running else {})
            self._alarm = threading.Timer(seconds, self._ring, (self._child, step))
            self._alarm.daemon = True
            self._alarm.start()

    def _ring(self, child: _Child, step: str) -> None:
        with self._lock:
            if child is self._child and self._alarm and step == self._step:
                self._late = True
                child.process.kill()

    def _listen(self, child: _Child) -> None:
        for line in child.answers:
            self._heard(json.loads(line))
        child.process.wait()
        with self._lock:
            # it has not even answered once
            starting = self._step == "start" and self._alarm is not None
            self._enter(None)
            request, self._running, self._child = self._running, None, None
            if request is None and starting:
                request = next(iter(self._waiting.values()), None)
            if self._overtaken:
                request, self._overtaken = None, False  # those that wait are sent to the next child
            outcome = None
            if self._stopped:
                request, self._stopped = self._stopped, None
                problem = f"stopped while {self._doing}, as you asked"
                outcome = Outcome(request.arguments, problem=problem, kind="stopped")
            elif request:
                outcome = self._obituary(child, request)
            self._late = False
            child.close()
            if request and self._waiting.get(request.client) is request:
                del self._waiting[request.client]
            if self._waiting and not self.closed:
                self._start()
            elif not self.closed:
                self._rest()
        if request and outcome and not self.closed:
            request.done(outcome if outcome.kind == "stopped" else _explained(outcome))

    def _heard(self, answer: dict) -> None:
        with self._lock:
            if self._running is None or self._running.id != answer["id"]:
                self._running = next(
                    (r for r in self._waiting.values() if r.id == answer["id"]), None
                )
                if self._running is None:
                    # an older request than the newest of its client: the child will give it up by
                    # itself
                    self._running = _Request(
                        answer["id"], "", "", {}, lambda outcome: None, lambda step: None
                    )
            request = self._running
            if "step" in answer:
                if answer["step"] == "start" and self._child:
                    self._child.begin()
                self._enter(answer["step"])
            else:
                self._running = None
                self._enter(None)
                if self._waiting.get(request.client) is request:
                    del self._waiting[request.client]
                if not self._waiting:
                    self._rest()
                if self._stopped and self._stopped.client == request.client:
                    # it has ended in the last moment; `_listen` tells its client that it was
                    # stopped
                    return
        if "step" in answer:
            request.step(answer["step"])
        elif "result" in answer:
            seen = answer["seen"] and Seen(**answer["seen"])
            compared = answer["compared"] and revive(answer["compared"])
            result = _revive(answer["result"])
            request.done(Outcome(request.arguments, result, seen=seen, compared=compared))
        elif "error" in answer:
            request.done(Outcome(request.arguments, problem=answer["error"], kind=answer["kind"]))

    @property
    def _doing(self) -> str:
        return {"start": "starting", "compile": "compiling"}.get(self._step, "running")

    def _obituary(self, child: _Child, request: _Request) -> Outcome:
        doing = self._doing
        if self._late:
            seconds = self.limit(self._step, request.arguments)
            cause = (
                ""
                if doing != "running"
                else " Is there a loop that never ends, or a barrier that not all reach?"
            )
            return Outcome(
                request.arguments,
                problem=f"stopped: {doing} took over {seconds:g} s.{cause}",
                kind="hang",
            )
        code, words = child.process.returncode, child.last_words()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        said = "; its last words: " + " / ".join(words) if words else ""
        problem = f"the process that was {doing} the kernel died ({how}){said}"
        return Outcome(request.arguments, problem=problem, kind="crash")


def _explained(outcome: Outcome) -> Outcome:
    """A hang or a crash of a text of the reader's own, with what the simulator sees in it."""
    names = ("kernel", "m", "n", "k", "params", "source")
    arguments = {name: outcome.arguments[name] for name in names if name in outcome.arguments}
    return (
        replace(outcome, seen=look(**arguments)) if arguments.get("source") is not None else outcome
    )


def _revive(found: dict) -> Any:
    """What the child found, as it was there: a `Result`, or what other jobs find as a dict."""
    if "kernel_ms" not in found:
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
    outcomes: list[Outcome] = []
    arrived = threading.Event()

    def done(outcome: Outcome) -> None:
        outcomes.append(outcome)
        arrived.set()

    device = options.pop("device", None)
    device = device.index if isinstance(device, Device) else device
    arguments = {"kernel": kernel, "m": m, "n": n, "k": k, "device": device, **options}
    client = f"trial {threading.get_ident()}"
    worker().submit(client, arguments, done)
    try:
        arrived.wait()
    except KeyboardInterrupt:
        worker().stop(client)
        raise KeyboardInterrupt("the measurement was stopped") from None
    return outcomes[0]
