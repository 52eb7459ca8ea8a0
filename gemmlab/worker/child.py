"""The child process that compiles and runs kernels for `client`. It reads requests, one JSON object per line,
from its standard input and answers on its standard output. It ends when its parent goes."""

from __future__ import annotations

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
        inbox.put(request["client"], request, request["background"])
    os._exit(0)  # the parent is gone; a kernel that hangs must not keep this process alive


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # whatever a compiler prints must not mix with the answers
    inbox: Mailbox[Request] = Mailbox()
    threading.Thread(target=_read, args=(sys.stdin, inbox), daemon=True).start()

    import pyopencl as cl

    from ..bench import peaks, timing
    from ..opencl.devices import find_device
    from .look import look

    def say(request: Request, **words: Any) -> None:
        answers.write(json.dumps({"id": request["id"], **words}) + "\n")

    while True:
        request = inbox.take()

        def on_step(step: str, request: Request = request) -> None:
            if inbox.has(request["client"]) or (request["background"] and inbox.is_urgent()):
                raise timing.Superseded
            say(request, step=step)

        try:
            say(request, step="start")
            if request["job"] == "peaks":
                found = asdict(peaks.peaks(find_device(request["arguments"]["device"])))
            else:
                found = asdict(timing.measure(**request["arguments"], on_step=on_step))
            seen = None
            if request["arguments"].get("source") is not None:
                on_step("look")
                seen = look(**{key: found[key] for key in ("kernel", "m", "n", "k", "params")},
                            source=request["arguments"]["source"])  # fmt: skip
            say(request, result=found, seen=seen and asdict(seen))
        except timing.Superseded:
            say(request, put_off=True)
            if request["background"]:
                inbox.put_back(request["client"], request)
        except cl.Error as error:  # a context that has failed once may fail for ever: begin anew
            say(request, error=f"the device gave up while the kernel ran: {error}", kind="crash")
            os._exit(1)
        except Exception as error:  # every failure is an answer
            say(request, error=str(error), kind=type(error).__name__)


if __name__ == "__main__":
    main()
