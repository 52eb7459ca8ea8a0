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

Step = Callable[[str], None]
#: What a job answers: the `result`, what the simulator has `seen`, and how a rate `compared`.
Answer = dict[str, Any]


def limit_memory(number: int) -> None:
    """Let this process and its copies take so many bytes each, where the system can enforce it.

    Only memory that is written counts: drivers of GPUs reserve far more addresses than they use.
    """
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource  # not on Windows

        if number:
            resource.setrlimit(resource.RLIMIT_DATA, (number, number))


def _read(stream: IO[bytes], requests: queue.SimpleQueue, unwanted: set[int]) -> None:
    with contextlib.suppress(EOFError, OSError):
        while True:
            message = pickle.load(stream)
            if isinstance(message, int):
                unwanted.add(message)
            else:
                requests.put(message)
    os._exit(0)  # the parent is gone; a kernel that hangs must not keep this process alive


def _peaks(arguments: dict[str, Any], on_step: Step) -> Answer:
    from ..measurement.peaks import peaks

    return {"result": peaks(arguments["device"])}


def _ceiling(arguments: dict[str, Any], on_step: Step) -> Answer:
    from ..measurement import explained

    return {"result": explained.allowed(**arguments)}


def _compile(arguments: dict[str, Any], on_step: Step) -> Answer:
    from ..measurement import timing

    timing.compile_ahead(**arguments, on_step=on_step)
    return {}


def _look(arguments: dict[str, Any], on_step: Step) -> Answer:
    from .look import look

    on_step("look")
    return {"seen": look(**arguments)}


def _simulate(arguments: dict[str, Any], on_step: Step) -> Answer:
    from .look import closely

    on_step("look")
    return {"result": closely(**arguments)}


def _measure(arguments: dict[str, Any], on_step: Step) -> Answer:
    """Measure; with a `budget` compare with the reference. Of a reader's text, what the simulator
    sees is added.
    """
    from ..measurement import comparison, timing
    from .look import look

    compared = seen = None
    if "budget" in arguments:
        result, compared = comparison.compare(**arguments, on_step=on_step)
    else:
        result = timing.measure(**arguments, on_step=on_step)
    source = arguments.get("source")
    if source is not None:
        on_step("look")
        where = {key: getattr(result, key) for key in ("kernel", "m", "n", "k", "params")}
        seen = look(**where, source=source)
        # a mistake between work-groups shows in several tiles only, and in a grid that is no square
        if seen is None and not result.ok:
            seen = look(**where, source=source, tiles=(2, 3))
    return {"result": result, "seen": seen, "compared": compared}


JOBS = {
    "measure": _measure,
    "compile": _compile,
    "peaks": _peaks,
    "ceiling": _ceiling,
    "look": _look,
    "simulate": _simulate,
}


def main() -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a compiler prints must not mix with the answers
    memory, niceness = (int(word) for word in sys.argv[1:3])
    limit_memory(memory)
    if niceness and hasattr(os, "nice"):
        os.nice(niceness)
    requests: queue.SimpleQueue[tuple[int, str, dict[str, Any]]] = queue.SimpleQueue()
    unwanted: set[int] = set()
    reader = threading.Thread(target=_read, args=(sys.stdin.buffer, requests, unwanted))
    reader.daemon = True
    reader.start()

    import pyopencl as cl

    from ..measurement.timing import Superseded, compile_ahead

    # it was started before it was needed: the first launch of all loads the compiler
    if requests.empty():
        with contextlib.suppress(Exception):
            compile_ahead(1, 4, 4, 4, params={"TS": 4})
    while True:
        number, job, arguments = requests.get()

        def say(answer: str | Answer | None, number: int = number) -> None:
            answers.write(pickle.dumps((number, answer)))
            answers.flush()

        def on_step(step: str, number: int = number, say: Callable[..., None] = say) -> None:
            if number in unwanted:
                raise Superseded
            say(step)

        try:
            on_step("start")
            say(JOBS[job](arguments, on_step))
        except Superseded:
            say(None)
        except cl.Error as error:  # a context that has failed once may fail for ever: begin anew
            problem = f"the device gave up while the kernel ran: {error}"
            say({"problem": problem, "kind": "crash"})
            os._exit(1)
        except Exception as error:  # every failure is an answer
            say({"problem": str(error), "kind": type(error).__name__})


if __name__ == "__main__":
    main()
