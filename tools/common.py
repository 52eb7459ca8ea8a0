"""What the tools share: options, provenance, tables, and child processes."""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyopencl as cl

from gemmlab import files
from gemmlab.measurement import records
from gemmlab.opencl.devices import Device

#: Seconds between two writes of a long record.
SAVE_EVERY = 15.0


def lesson(name: str) -> Any:
    """A module of ``notebooks/lessons``."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "notebooks"))
    return importlib.import_module(f"lessons.{name}")


# Options and commands


def run(main: Callable[[], int | None]) -> None:
    """Run a tool; print refusals as one sentence instead of a traceback."""
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted; what was measured is in the file, and the same command continues")
    except ModuleNotFoundError as error:
        sys.exit(f"this needs {error.name}, which is not installed: pip install {error.name}")
    except (
        ImportError,
        ValueError,
        TypeError,
        MemoryError,
        RuntimeError,
        OSError,
        cl.Error,
    ) as error:
        sys.exit(f"{Path(sys.argv[0]).name}: {error}")


def command() -> str:
    """The command line, as a record states it; of paths only the file names."""
    words = [Path(word).name if "/" in word else word for word in sys.argv[1:]]
    return " ".join([f"python tools/{Path(sys.argv[0]).name}", *words])


def add_device(parser: argparse.ArgumentParser) -> None:
    words = "an index or part of a name (default: the preferred device)"
    parser.add_argument("--device", help=words)


def head(device: Device, title: str | None = None) -> dict[str, Any]:
    """The first entries of a record: title, command, date, versions, and device."""
    origin = records.origin(command())
    return {"title": title or device.name, **origin, "device": device.facts()}


def load_table(path: Path) -> dict[str, Any]:
    """The table of choices, empty without a file; ValueError for anything else."""
    return files.load_json(path, dict)


# Processes


def parallel(
    function: Callable[[Any], Any], jobs: Iterable[Any], seconds: float | None = None
) -> Iterator[tuple[Any, Any]]:
    """Jobs with their results as they finish, from one spawned process per core.

    Compilers of GPUs use one core each. What they make stays in the driver's cache on disk.

    Args:
        function: of an importable module.
        jobs: its arguments.
        seconds: stop after this time; jobs that have not finished are left out.
    """
    pool = ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn"))
    try:
        pending = {pool.submit(function, job): job for job in jobs}
        end = None if seconds is None else time.monotonic() + seconds
        while pending:
            left = None if end is None else max(0.0, end - time.monotonic())
            done, _ = wait(pending, left, FIRST_COMPLETED)
            if not done:
                break
            for future in done:
                yield pending.pop(future), future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


class Child:
    """A spawned process that answers one request at a time; a crash or a hang is an answer.

    Args:
        make: called in the process with `arguments`; the methods of what it returns answer requests
            with a dict.
    """

    def __init__(self, make: Callable[..., Any], *arguments: Any):
        self._make, self._arguments, self._closed = make, arguments, False
        self._process: Any = None
        self._connection: Any = None

    def ask(self, step: str, seconds: float, **arguments: Any) -> dict[str, Any]:
        """The answer of the method `step`; {"problem": ...} if it fails, crashes or takes longer.

        Raises:
            RuntimeError: if the process does not start, or was closed.
        """
        if self._process is None or not self._process.is_alive():
            self._start()
        self._connection.send((step, arguments))
        return self._answer(step, seconds)

    def _start(self) -> None:
        context = get_context("spawn")
        self._connection, theirs = context.Pipe()
        arguments = (theirs, self._make, self._arguments)
        self._process = context.Process(target=_serve, args=arguments, daemon=True)
        self._process.start()
        theirs.close()
        if self._closed:
            self._process.kill()
        answer = self._answer("start", 120.0)
        if "problem" in answer:
            raise RuntimeError(f"a child process does not start: {answer['problem']}")

    def _answer(self, step: str, seconds: float) -> dict[str, Any]:
        if self._connection.poll(seconds):
            with suppress(EOFError, OSError):
                answer = self._connection.recv()
                if answer.get("ends"):
                    self._process.join()
                return answer
            self._process.join()
            code = self._process.exitcode
            return {"problem": f"the step {step!r} ended its process with code {code}"}
        self._process.kill()
        self._process.join()
        return {"problem": f"the step {step!r} took over {seconds:g} s"}

    def close(self) -> None:
        """Kill the process."""
        self._closed = True
        if self._process is not None:
            self._process.kill()


def _serve(connection: Any, make: Callable[..., Any], arguments: tuple) -> None:
    """Answer requests in a child process until the parent closes the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent stops its children itself
    served = make(*arguments)
    connection.send({})
    with suppress(EOFError):
        while True:
            step, given = connection.recv()
            try:
                answer = getattr(served, step)(**given)
            except Exception as error:
                answer = {"problem": f"{type(error).__name__}: {error}"}
                # an OpenCL context that has failed once may fail for ever
                answer["ends"] = isinstance(error, cl.Error)
            connection.send(answer)
            if answer.get("ends"):
                break
