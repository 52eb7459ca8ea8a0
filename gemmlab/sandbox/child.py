"""The child process that compiles and runs kernels for `client`. It reads pickled messages from its
standard input and answers on its standard output. It ends when its parent goes.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import sys
import threading
from collections.abc import Callable
from typing import IO, Any

from ..measurement import comparison, explained, peaks, timing
from ..opencl import cl
from ..opencl.devices import find_device
from . import look

#: Takes the step that begins, or what the simulator has seen in a kernel.
OnStep = Callable[[str | look.Seen | None], None]
#: What a job answers: the `result`, and how a rate `compared`.
Answer = dict[str, Any]


def limit_memory(size_bytes: int) -> None:
    """Let this process and its copies take so many bytes each, where the system can enforce it.

    Only memory that is written counts: drivers of GPUs reserve far more addresses than they use.
    """
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource  # not on Windows

        if size_bytes:
            resource.setrlimit(resource.RLIMIT_DATA, (size_bytes, size_bytes))


def _read(stream: IO[bytes], requests: queue.SimpleQueue[Any]) -> None:
    with contextlib.suppress(EOFError, OSError):
        while True:
            requests.put(pickle.load(stream))
    os._exit(0)  # the parent is gone; a kernel that hangs must not keep this process alive


def _measure(arguments: dict[str, Any], on_step: OnStep) -> Answer:
    """Measure, or compare with a `budget`; simulate an edited kernel first, since it may end this
    process, or never end.
    """
    compared = seen = edited = None
    if look.is_edited(arguments["kernel"], arguments.get("source")):
        on_step("look")
        about: dict[str, Any] = {name: arguments.get(name) for name in look.ARGUMENTS}
        edited = look.Case.of(**about)
        limits = find_device(arguments.get("device")).limits
        seen = look.look(edited, local_memory=limits.local_memory)
        if seen and seen.endless:
            raise look.Refused(seen.why)
        on_step(seen)
    if "budget" in arguments:
        result, compared = comparison.compare(**arguments, on_step=on_step)
    else:
        result = timing.measure(**arguments, on_step=on_step)
    if edited and not result.ok:
        on_step("look")
        on_step(look.explain(edited, seen))
    return {"result": result, "compared": compared}


def _context(arguments: dict[str, Any], on_step: OnStep) -> Answer:
    """Find what a rate is compared with: the peak of the device, if there is one, and what the
    model allows some kernels on an H200; None for what fails, since a rate can be shown without it.
    """
    peak = None
    ceilings: list[Any] = [None] * len(arguments["texts"])
    on_step("compile")
    if arguments["device"] is not None:
        with contextlib.suppress(Exception):
            peak = peaks.peaks(device=arguments["device"]).gflops
    on_step("look")
    for i, text in enumerate(arguments["texts"]):
        with contextlib.suppress(Exception):
            ceilings[i] = explained.allowed(**text)
    return {"result": (peak, ceilings)}


def _look(arguments: dict[str, Any], on_step: OnStep) -> Answer:
    on_step("look")
    on_step(look.look(look.Case.of(**arguments)))
    return {}


def _simulate(arguments: dict[str, Any], on_step: OnStep) -> Answer:
    on_step("look")
    return {"result": look.simulate_small(**arguments)}


JOBS = {"measure": _measure, "context": _context, "look": _look, "simulate": _simulate}


def main() -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a compiler prints must not mix with the answers
    limit_memory(int(sys.argv[1]))
    requests: queue.SimpleQueue[tuple[str, dict[str, Any]]] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(sys.stdin.buffer, requests), daemon=True).start()

    def send(answer: str | look.Seen | Answer | None) -> None:
        if answer is not None:
            answers.write(pickle.dumps(answer))
            answers.flush()

    # it was started before it was needed: the first launch of all loads the compiler
    if requests.empty():
        with contextlib.suppress(Exception):
            timing.measure(1, 4, params={"TS": 4}, repeats=1)
    while True:
        job, arguments = requests.get()
        try:
            send("start")
            send(JOBS[job](arguments, send))
        except cl.Error as error:  # a context that has failed once may fail for ever: begin anew
            problem = f"the device gave up while the kernel ran: {error}"
            send({"problem": problem, "kind": "crash"})
            os._exit(1)
        except Exception as error:  # every failure is an answer
            send({"problem": str(error), "kind": type(error).__name__})


if __name__ == "__main__":
    main()
