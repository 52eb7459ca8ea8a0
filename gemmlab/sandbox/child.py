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
from typing import IO, Any

from ..measurement import timing
from ..opencl import cl
from .jobs import JOBS, Answer
from .look import Seen


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


def main() -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a compiler prints must not mix with the answers
    limit_memory(int(sys.argv[1]))
    requests: queue.SimpleQueue[tuple[str, dict[str, Any]]] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(sys.stdin.buffer, requests), daemon=True).start()

    def send(answer: str | Seen | Answer | None) -> None:
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
