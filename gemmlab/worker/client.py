"""The worker process behind the widgets, seen from the notebook: newest request wins, a crash or a hang is an answer.

Compilers abort on odd kernels, and kernels can hang or write where they must not. So nothing of that happens
in the notebook's own process: `worker` does it in a child, and this module watches over the child.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from ..bench.records import Result
from ..opencl.devices import Device

#: Seconds that each step of a job may take before the child is stopped (PoCL compiles once more at the first launch).
LIMITS = {"start": 60.0, "compile": 60.0, "predict": 20.0, "check": 20.0, "time": 10.0}


@dataclass(frozen=True)
class Outcome:
    """The answer to a request: a `result`, or a `problem` in words and its `kind` ("hang", "crash", an error)."""

    arguments: dict
    result: Result | None = None
    problem: str = ""
    kind: str = ""

    @property
    def ok(self) -> bool:
        return self.result is not None and self.result.ok

    @property
    def verdict(self) -> str:
        """The verdict on the result, or the problem."""
        return self.result.verdict if self.result else self.problem

    def __str__(self) -> str:
        return str(self.result) if self.result else self.problem


@dataclass
class _Request:
    id: int
    client: str
    message: str
    arguments: dict
    done: Callable[[Outcome], None]
    step: Callable[[str], None]


class Worker:
    """Runs measurements in a child process, started when first needed and again after a crash or a hang.

    Args:
        limits: seconds for each step, over `LIMITS`.
    """

    def __init__(self, limits: dict[str, float] | None = None):
        self.limits = {**LIMITS, **(limits or {})}
        self._lock = threading.RLock()
        self._numbers = itertools.count(1)
        self._waiting: dict[str, _Request] = {}  # the newest of each client that has no answer yet
        self._running: _Request | None = None
        self._step, self._deadline, self._late = "start", None, False
        self._child: subprocess.Popen | None = None
        self._closed = False

    def submit(self, client: str, arguments: dict, done, step=lambda step: None, job: str = "measure") -> None:
        """Ask for a measurement; an older request of the same client that has not run yet is forgotten.

        Args:
            client: who asks.
            arguments: those of `bench.measure`, as JSON can hold them.
            done: called with the Outcome, from another thread.
            step: called with "compile", "predict", "check", "time" as the job goes on, likewise.
        """
        with self._lock:
            if self._closed:
                raise RuntimeError("the worker has been closed")
            number = next(self._numbers)
            message = json.dumps({"id": number, "client": client, "job": job, "arguments": arguments})
            self._waiting[client] = _Request(number, client, message, arguments, done, step)
            if self._child is None:
                self._start()
            else:
                self._send(message)

    def close(self) -> None:
        """End the child."""
        with self._lock:
            self._closed = True
            self._waiting.clear()
            if self._child is not None:
                self._child.kill()

    def _start(self) -> None:
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 (closed when the child has ended)
        self._child = subprocess.Popen(
            [sys.executable, "-m", "gemmlab.worker.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            env={**os.environ, "PYTHONSAFEPATH": "1"},
        )
        self._enter("start")
        for request in self._waiting.values():
            self._send(request.message)
        threading.Thread(target=self._listen, args=(self._child,), daemon=True).start()
        threading.Thread(target=self._watch, args=(self._child,), daemon=True).start()

    def _send(self, message: str) -> None:
        try:
            self._child.stdin.write(message.encode() + b"\n")
            self._child.stdin.flush()
        except OSError:
            pass  # the child has died; `_listen` finds out, starts a new one and sends again

    def _enter(self, step: str) -> None:
        self._step, self._deadline = step, time.monotonic() + self.limits[step]

    def _watch(self, child: subprocess.Popen) -> None:
        while child.poll() is None:
            time.sleep(0.05)
            with self._lock:
                if child is self._child and self._deadline is not None and time.monotonic() > self._deadline:
                    self._late = True
                    child.kill()
                    return

    def _listen(self, child: subprocess.Popen) -> None:
        for line in child.stdout:
            self._heard(json.loads(line))
        child.wait()
        with self._lock:
            starting = self._step == "start" and self._deadline is not None  # it has not even answered once
            request, self._running, self._child, self._deadline = self._running, None, None, None
            if request is None and starting:
                request = next(iter(self._waiting.values()), None)
            outcome = self._obituary(request, child.returncode) if request else None
            self._late = False
            self._words.close()
            for stream in (child.stdin, child.stdout):
                with contextlib.suppress(OSError):  # a request that the dead child never took
                    stream.close()
            if request and self._waiting.get(request.client) is request:
                del self._waiting[request.client]
            if self._waiting and not self._closed:
                self._start()
        if outcome and not self._closed:
            request.done(outcome)

    def _heard(self, answer: dict) -> None:
        with self._lock:
            if self._running is None or self._running.id != answer["id"]:
                self._running = next((r for r in self._waiting.values() if r.id == answer["id"]), None)
                if self._running is None:
                    # an older request than the newest of its client: the child will give it up by itself
                    self._running = _Request(answer["id"], "", "", {}, lambda outcome: None, lambda step: None)
            request = self._running
            if "step" in answer:
                self._enter(answer["step"])
            else:
                self._running, self._deadline = None, None
                if self._waiting.get(request.client) is request:
                    del self._waiting[request.client]
        if "step" in answer:
            request.step(answer["step"])
        elif "result" in answer:
            request.done(Outcome(request.arguments, _revive(answer["result"])))
        elif "error" in answer:
            request.done(Outcome(request.arguments, problem=answer["error"], kind=answer["kind"]))

    def _obituary(self, request: _Request, code: int) -> Outcome:
        doing = {"start": "starting", "compile": "compiling"}.get(self._step, "running")
        if self._late:
            seconds = self.limits[self._step]
            cause = "" if doing != "running" else " Is there a loop that never ends, or a barrier that not all reach?"
            return Outcome(request.arguments, problem=f"stopped: {doing} took over {seconds:g} s.{cause}", kind="hang")
        self._words.seek(max(0, self._words.seek(0, os.SEEK_END) - 2000))
        words = self._words.read().decode(errors="replace").strip().splitlines()[-6:]
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        said = "; its last words: " + " / ".join(words) if words else ""
        problem = f"the process that was {doing} the kernel died ({how}){said}"
        return Outcome(request.arguments, problem=problem, kind="crash")


def _revive(found: dict):
    if "kernel_ms" not in found:
        return found
    return Result(**{**found, **{key: tuple(found[key]) for key in ("kernel_ms", "pipeline_ms")}})


@cache
def worker() -> Worker:
    """The worker that all widgets of this process share."""
    shared = Worker()
    atexit.register(shared.close)
    return shared


def trial(kernel: int = 1, m: int = 256, n: int | None = None, k: int | None = None, **options) -> Outcome:
    """`gemmlab.measure` in the child process: a crash or a hang is an answer, and never raises.

    Args:
        kernel, m, n, k, options: as `gemmlab.measure` (params, device, repeats, source, most_seconds).
    """
    outcomes, arrived = [], threading.Event()

    def done(outcome: Outcome) -> None:
        outcomes.append(outcome)
        arrived.set()

    device = options.pop("device", None)
    device = device.index if isinstance(device, Device) else device
    arguments = {"kernel": kernel, "m": m, "n": n, "k": k, "device": device, **options}
    worker().submit(f"trial {threading.get_ident()}", arguments, done)
    arrived.wait()
    return outcomes[0]
