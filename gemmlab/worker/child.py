"""The child process that compiles and runs kernels for `client`. It reads messages, one JSON object
per line, from its standard input and answers on its standard output. It ends when its parent goes.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import pickle
import queue
import sys
import threading
import zlib
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

Step = Callable[[str], None]
#: What a job answers: "result"; "seen" by the simulator; "compared", the interval of the rate.
Answer = dict[str, Any]

#: Bytes that the child gets even where hardly any memory is free.
LEAST_MEMORY = 2**30


def free_memory() -> int | None:
    """Bytes that this process may take without hurting others; None if the system does not tell."""
    found = []
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        found += [int(line.split()[1]) * 1024 for line in lines if "MemAvailable" in line]
    with contextlib.suppress(OSError, ValueError):  # a container's limit
        group = Path("/sys/fs/cgroup")
        limit, used = (int((group / f"memory.{name}").read_text()) for name in ("max", "current"))
        found.append(limit - used)
    return max(LEAST_MEMORY, min(found)) if found else None


def limit_memory(number: int | None) -> None:
    """Let this process and its copies take so many bytes each, where the system can enforce it.

    Only memory that is written counts: drivers of GPUs reserve far more addresses than they use.
    """
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource  # not on Windows

        if number is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (number, number))


def _read(stream: IO[str], requests: queue.SimpleQueue, unwanted: set[int]) -> None:
    for line in stream:
        message = json.loads(line)
        if "give_up" in message:
            unwanted.add(message["give_up"])
        else:
            requests.put(message)
    os._exit(0)  # the parent is gone; a kernel that hangs must not keep this process alive


def _peaks(arguments: dict[str, Any], on_step: Step) -> Answer:
    from ..measurement.peaks import peaks
    from ..opencl.devices import find_device

    return {"result": asdict(peaks(find_device(arguments["device"]), caches=True))}


def _ceiling(arguments: dict[str, Any], on_step: Step) -> Answer:
    from ..measurement import explained

    return {"result": asdict(explained.allowed(**arguments))}


def _compile(arguments: dict[str, Any], on_step: Step) -> Answer:
    from ..measurement import timing

    timing.compile_ahead(**arguments, on_step=on_step)
    return {"result": None}


def _look(arguments: dict[str, Any], on_step: Step) -> Answer:
    from .look import look

    on_step("look")
    seen = look(**arguments)
    return {"result": None, "seen": seen and asdict(seen)}


def _simulate(arguments: dict[str, Any], on_step: Step) -> Answer:
    from .look import closely

    on_step("look")
    run = zlib.compress(pickle.dumps(closely(**arguments)), level=1)
    return {"result": base64.b64encode(run).decode("ascii")}


def _measure(arguments: dict[str, Any], on_step: Step) -> Answer:
    from ..measurement import timing

    measured = timing.measure(**arguments, on_step=on_step)
    return {"result": asdict(measured), "seen": _seen(arguments, measured, on_step)}


def _compare(arguments: dict[str, Any], on_step: Step) -> Answer:
    from ..measurement import comparison

    measured, compared = comparison.compare(**arguments, on_step=on_step)
    seen = _seen(arguments, measured, on_step)
    return {"result": asdict(measured), "seen": seen, "compared": asdict(compared)}


def _seen(arguments: dict[str, Any], measured: Any, on_step: Step) -> dict[str, Any] | None:
    """What the simulator sees in a reader's text."""
    from .look import look

    source = arguments.get("source")
    seen = None
    if source is not None:
        on_step("look")
        where = {key: getattr(measured, key) for key in ("kernel", "m", "n", "k", "params")}
        seen = look(**where, source=source)
        # a mistake between work-groups shows in several tiles only, and in a grid that is no square
        if seen is None and not measured.ok:
            seen = look(**where, source=source, tiles=(2, 3))
    return asdict(seen) if seen else None


JOBS = {
    "measure": _measure,
    "compare": _compare,
    "compile": _compile,
    "peaks": _peaks,
    "ceiling": _ceiling,
    "look": _look,
    "simulate": _simulate,
}


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # whatever a compiler prints must not mix with the answers
    limit_memory(int(sys.argv[1]) if len(sys.argv) > 1 else free_memory())
    requests: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    unwanted: set[int] = set()
    threading.Thread(target=_read, args=(sys.stdin, requests, unwanted), daemon=True).start()

    import pyopencl as cl

    from ..measurement.timing import Superseded, compile_ahead

    # it was started before it was needed: the first launch of all loads the compiler
    if requests.empty():
        with contextlib.suppress(Exception):
            compile_ahead(1, 4, 4, 4, params={"TS": 4})
    while True:
        request = requests.get()
        number = request["id"]

        def say(number: int = number, **words: Any) -> None:
            answers.write(json.dumps({"id": number, **words}) + "\n")

        def on_step(step: str, number: int = number, say: Callable[..., None] = say) -> None:
            if number in unwanted:
                raise Superseded
            say(step=step)

        try:
            on_step("start")
            say(**JOBS[request["job"]](request["arguments"], on_step))
        except Superseded:
            say(put_off=True)
        except cl.Error as error:  # a context that has failed once may fail for ever: begin anew
            say(error=f"the device gave up while the kernel ran: {error}", kind="crash")
            os._exit(1)
        except Exception as error:  # every failure is an answer
            say(error=str(error), kind=type(error).__name__)


if __name__ == "__main__":
    main()
