"""Jobs that may crash or hang, run in a child process: `trial`, and what the widgets request.

The newest request of a client wins, and a crash or a hang is an answer. Widgets and cells share a
`Sandbox`, which starts the child, watches over it, and replaces it.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from ..ladder import Key
from ..measurement.comparison import BUDGET
from ..opencl.devices import Device
from ..simulation import ProductRun
from .inline import Inline
from .look import Seen
from .outcome import Outcome
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
OUTDATED = 1.5
#: What a child is doing to a kernel in each step; in the others it runs it.
ACTIVITIES = {"": "starting", "start": "starting", "compile": "compiling", "look": "simulating"}


@dataclass
class _Request:
    """A request, and how far it has come.

    Attributes:
        step: the one that the child has begun; empty before the child has the request.
        seen: what the simulator saw in its source code.
        repeated: whether a child died, perhaps while it was idle, before it began.
    """

    client: str
    job: str
    arguments: dict[str, Any]
    done: Callable[[Outcome], None]
    on_step: Callable[[str | Seen], None]
    step: str = ""
    seen: Seen | None = None
    repeated: bool = False

    @property
    def activity(self) -> str:
        """What the child is doing to a kernel."""
        return ACTIVITIES.get(self.step, "running")


class Sandbox:
    """Runs jobs in a child process, started when first needed and again after a crash or a hang.

    One thread handles one message after another: requests, calls of `stop`, answers of the child,
    and its end. It alone reads and changes the attributes below; only `limits` is for others.

    Attributes:
        limits: seconds for each step.
        child: the process; None before it is needed, and after its end.
    """

    def __init__(self) -> None:
        self.limits = dict(LIMITS)
        self.child: Child | None = None
        self._messages: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self._waiting: dict[str, _Request] = {}  # the newest of each client
        self._running: _Request | None = None
        self._deadline: float | None = None  # of what runs, by time.monotonic()
        threading.Thread(target=self._serve, daemon=True).start()

    def submit(
        self,
        client: str,
        arguments: dict[str, Any],
        done: Callable[[Outcome], None],
        step: Callable[[str | Seen], None] = lambda step: None,
        job: str = "measure",
    ) -> None:
        """Request a job, one of `child.JOBS`; an older request of the same client is forgotten, or
        ended soon if it runs already.

        `done` is called with the Outcome, `step` with each of `LIMITS` that begins and with what
        the simulator has seen, both from another thread. Arguments that cannot be sent to another
        process raise TypeError.
        """
        try:
            pickle.dumps(arguments)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise TypeError(f"the arguments cannot be sent to another process: {error}") from None
        self._post(self._accept, _Request(client, job, arguments, done, step))

    def stop(self, client: str) -> None:
        """End the child that works for this client, or forget what waits; `done` hears of it."""
        self._post(self._stop, client)

    def warm(self) -> None:
        """Start the child before it is needed."""
        self._post(self._ensure_child)

    def limit(self, step: str, arguments: dict[str, Any]) -> float:
        """Return the seconds that a step may take.

        Some runtimes compile at the first launch, in whichever step that is. So a launch of a
        kernel's own code may take as long as compiling; a reader's code may never end.
        """
        launches = step in ("predict", "check")
        return self.limits["compile" if launches and arguments.get("source") is None else step]

    # The thread

    def _post(self, handle: Callable[..., object], *message: Any) -> None:
        self._messages.put(partial(handle, *message))

    def _serve(self) -> None:
        while True:
            try:
                if self._waiting and self._running is None:
                    self._start()
                self._next_message()()
            except Exception as error:  # the next request still gets an answer
                self._give_up("crash", f"no process can run the kernel: {error}")

    def _next_message(self) -> Callable[[], object]:
        """Wait for a message, or for the deadline."""
        if self._deadline is None:
            return self._messages.get()
        try:
            return self._messages.get(timeout=max(0.0, self._deadline - time.monotonic()))
        except queue.Empty:
            return self._expire

    def _allow(self, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds

    def _accept(self, request: _Request) -> None:
        running = self._running
        if running and running.client == request.client and request.client not in self._waiting:
            self._allow(OUTDATED)
        self._waiting[request.client] = request

    def _start(self) -> None:
        """Send a request to the child: the one that waits longest, but the model's after others."""
        first = min(self._waiting.values(), key=lambda request: request.job == "context")
        request = self._running = self._waiting.pop(first.client)
        self._ensure_child().send((request.job, request.arguments))
        self._allow(self.limits["start"])

    def _ensure_child(self) -> Child:
        if self.child is None:
            self.child = Child()
            threading.Thread(target=self._listen, args=(self.child,), daemon=True).start()
        return self.child

    def _listen(self, child: Child) -> None:
        """Post what a child answers, and its end. This is another thread."""
        for answer in child.answers():
            self._post(self._receive, child, answer)
        self._post(self._bury, child)

    def _receive(self, child: Child, answer: Any) -> None:
        request = self._running
        if child is not self.child or request is None:
            return
        if isinstance(answer, dict):
            self._finish(Outcome(request.arguments, seen=request.seen, **answer))
        elif isinstance(answer, Seen):
            request.seen = answer
            _call(request.on_step, answer)
        else:
            request.step = answer
            if request.client not in self._waiting:  # otherwise it is outdated, and ends soon
                self._allow(self.limit(answer, request.arguments))
                _call(request.on_step, answer)

    def _bury(self, child: Child) -> None:
        """Close a child that has ended; if it was not killed, report how it died, or repeat the
        request if it had not begun with it.
        """
        if child is self.child:
            self.child, request = None, self._running
            if request and not request.step and not request.repeated:
                request.repeated = True
                self._running = self._deadline = None
                self._waiting = {request.client: request, **self._waiting}
            elif request:
                code = child.process.returncode
                how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
                lines = child.last_lines()
                last = "; its last words: " + " / ".join(lines) if lines else ""
                problem = f"the process that was {request.activity} the kernel died ({how}){last}"
                if request.arguments.get("source") is None:
                    problem += "; `gemmlab.doctor()` says whether damaged caches are the reason"
                self._give_up("crash", problem)
        child.close()

    def _expire(self) -> None:
        """End what has reached its deadline."""
        request = self._running
        assert request
        limit = self.limit(request.step or "start", request.arguments)
        problem = f"stopped: {request.activity} took over {limit:g} s"
        if request.activity == "running" and request.step != "time":  # the check has ended
            problem += ". Is there a loop that never ends, or a barrier that not all reach?"
        self._give_up("hang", problem)

    def _stop(self, client: str) -> None:
        if self._running and self._running.client == client:
            self._give_up("stopped", f"stopped while {self._running.activity}, as requested")
        if waiting := self._waiting.pop(client, None):
            problem = "stopped before it ran, as requested"
            _call(waiting.done, Outcome(waiting.arguments, problem=problem, kind="stopped"))

    def _give_up(self, kind: str, problem: str) -> None:
        """Kill the child, and report why its request has no result."""
        if self.child:
            self.child.kill()
            self.child = None
        if request := self._running:
            self._finish(Outcome(request.arguments, problem=problem, kind=kind, seen=request.seen))

    def _finish(self, outcome: Outcome) -> None:
        """Report an outcome, unless it is a problem and the client waits for a newer one."""
        request, self._running, self._deadline = self._running, None, None
        if request and (outcome.result is not None or request.client not in self._waiting):
            _call(request.done, outcome)


def _call(function: Callable[..., None], *arguments: Any) -> None:
    """Call a client's function; its failure is shown, and hurts nobody else."""
    try:
        function(*arguments)
    except Exception:
        sys.excepthook(*sys.exc_info())


def shared_sandbox() -> Sandbox | Inline:
    """Return the sandbox that this process shares; its child ends with the process."""
    return _sandbox_of(os.getpid())


@cache
def _sandbox_of(process: int) -> Sandbox | Inline:
    """Return the sandbox of a process: a forked one has no threads of its parent's."""
    return Inline() if sys.platform == "emscripten" else Sandbox()


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
    """Call `gemmlab.measure` in a child process, where a crash or a hang costs nothing.

    Args:
        kernel, m, n, k, params, device, repeats, source, most_seconds: as in `gemmlab.measure`.
        reference: the kernel, m, n, k, params and source of a product to compare with: the runs of
            both alternate (see `comparison.compare`), and the outcome's `compared` says what they
            show. There are no `repeats` then.
        budget: seconds for these runs; also without a reference, for an interval of the rate.

    Returns:
        An Outcome with a `Result`, or with a problem; nothing is raised but KeyboardInterrupt.
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
        return run_job("measure", arguments)
    except TypeError as error:
        return Outcome(arguments, problem=str(error), kind="TypeError")


def simulate_small(kernel: Key, params: Mapping[str, int], source: str | None = None) -> ProductRun:
    """Call `look.simulate_small` in the child process, where it has limits of time and memory.

    Raises RuntimeError with the reason if there is no run.
    """
    outcome = run_job("simulate", {"kernel": kernel, "params": params, "source": source})
    if outcome.result is None:
        raise RuntimeError(outcome.problem)
    return outcome.result


def run_job(job: str, arguments: dict[str, Any]) -> Outcome:
    """Request a job for this thread, and wait for the answer."""
    client = f"{job} {threading.get_ident()}"
    sandbox = shared_sandbox()
    if isinstance(sandbox, Inline):
        return sandbox.run(client, arguments, job)
    outcomes: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
    sandbox.submit(client, arguments, outcomes.put, job=job)
    try:
        return outcomes.get()
    except KeyboardInterrupt:
        sandbox.stop(client)
        raise KeyboardInterrupt(f"the request to {job} was stopped") from None
