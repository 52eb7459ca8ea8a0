"""The child process that compiles and runs kernels for `live`. It reads requests, one JSON object a line,
from its standard input and answers on its standard output. It ends when its parent goes."""

from __future__ import annotations

import json
import os
import sys
import threading
from dataclasses import asdict


class Inbox:
    """Requests as they come, only the newest of each client."""

    def __init__(self, stream):
        self._newest: dict[str, dict] = {}
        self._arrived = threading.Condition()
        threading.Thread(target=self._read, args=(stream,), daemon=True).start()

    def _read(self, stream) -> None:
        for line in stream:
            request = json.loads(line)
            with self._arrived:
                self._newest[request["client"]] = request
                self._arrived.notify()
        os._exit(0)  # the parent is gone; a kernel that hangs must not keep this process alive

    def take(self) -> dict:
        with self._arrived:
            self._arrived.wait_for(lambda: self._newest)
            return self._newest.pop(next(iter(self._newest)))

    def has(self, client: str) -> bool:
        return client in self._newest


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # whatever a compiler prints must not mix with the answers
    inbox = Inbox(sys.stdin)

    import pyopencl as cl

    from ..bench import peaks, timing
    from ..opencl.devices import find_device

    def say(request: dict, **words) -> None:
        answers.write(json.dumps({"id": request["id"], **words}) + "\n")

    while True:
        request = inbox.take()

        def on_step(step: str, request=request) -> None:
            if inbox.has(request["client"]):
                raise timing.Superseded
            say(request, step=step)

        try:
            say(request, step="start")
            if request["job"] == "peaks":
                found = asdict(peaks.peaks(find_device(request["arguments"]["device"])))
            else:
                found = asdict(timing.measure(**request["arguments"], on_step=on_step))
            say(request, result=found)
        except timing.Superseded:
            say(request, superseded=True)
        except cl.Error as error:  # a context that has failed once may fail for ever: begin anew
            say(request, error=f"the device gave up while the kernel ran: {error}", kind="crash")
            os._exit(1)
        except Exception as error:  # every failure is an answer
            say(request, error=str(error), kind=type(error).__name__)


if __name__ == "__main__":
    main()
