"""The child process that compiles and runs kernels for `client`. It reads requests, one JSON object
per line, from its standard input and answers on its standard output. It ends when its parent goes.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from dataclasses import asdict
from typing import IO, Any

from .mailbox import Mailbox

Request = dict[str, Any]


def _read(stream: IO[str], inbox: Mailbox[Request]) -> None:
    for line in stream:
        request = json.loads(line)
        inbox.put(request["client"], request)
    os._exit(0)  # the parent is gone; a kernel that hangs must not keep this process alive


def main() -> None:  # noqa: C901
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # whatever a compiler prints must not mix with the answers
    inbox: Mailbox[Request] = Mailbox()
    threading.Thread(target=_read, args=(sys.stdin, inbox), daemon=True).start()

    import pyopencl as cl

    from ..measurement import comparison, explained, peaks, timing
    from ..opencl.devices import find_device
    from .look import look

    def say(request: Request, **words: Any) -> None:
        answers.write(json.dumps({"id": request["id"], **words}) + "\n")

    # it was started before it was needed: the first launch of all loads the compiler
    if inbox.empty():
        with contextlib.suppress(Exception):
            timing.compile_ahead(1, 4, 4, 4, params={"TS": 4})
    while True:
        request = inbox.take()
        job, arguments = request["job"], request["arguments"]
        if job == "nothing":  # it took the place of a request that nobody wants any more
            continue

        def on_step(step: str, request: Request = request) -> None:
            if inbox.has(request["client"]):
                raise timing.Superseded
            say(request, step=step)

        try:
            say(request, step="start")
            compared: comparison.Comparison | None = None
            if job == "peaks":
                found = asdict(peaks.peaks(find_device(arguments["device"]), caches=True))
            elif job == "ceiling":
                found = asdict(explained.allowed(**arguments))
            elif job == "compile":
                found = {"seconds": timing.compile_ahead(**arguments, on_step=on_step)}
            elif job == "compare":
                measured, compared = comparison.compare(**arguments, on_step=on_step)
                found = asdict(measured)
            else:
                measured = timing.measure(**arguments, on_step=on_step)
                found = asdict(measured)
            seen = None
            if job in ("measure", "compare") and arguments.get("source") is not None:
                on_step("look")
                where = {key: found[key] for key in ("kernel", "m", "n", "k", "params")}
                seen = look(**where, source=arguments["source"])
                # a mistake between work-groups shows in several tiles only
                if seen is None and not measured.ok:
                    seen = look(**where, source=arguments["source"], tiles=2)
            more = {"seen": seen and asdict(seen), "compared": compared and asdict(compared)}
            say(request, result=found, **more)
        except timing.Superseded:
            say(request, put_off=True)
        except cl.Error as error:  # a context that has failed once may fail for ever: begin anew
            say(request, error=f"the device gave up while the kernel ran: {error}", kind="crash")
            os._exit(1)
        except Exception as error:  # every failure is an answer
            say(request, error=str(error), kind=type(error).__name__)


if __name__ == "__main__":
    main()
