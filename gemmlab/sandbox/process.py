"""A child process that may crash or hang, seen from its parent."""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from .. import environment

#: What Python runs in a child.
COMMAND = ("-m", "gemmlab.sandbox.child")
#: Bytes that a child gets even where hardly any memory is free.
LEAST_MEMORY = 2**30


def free_memory() -> int:
    """Return the bytes that a child may take without hurting others; 0 if that is unknown."""
    free = []
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        free += [int(line.split()[1]) * 1024 for line in lines if "MemAvailable" in line]
    with contextlib.suppress(OSError, ValueError):  # a container's limit
        group = Path("/sys/fs/cgroup")
        limit, used = (int((group / f"memory.{name}").read_text()) for name in ("max", "current"))
        free.append(limit - used)
    return max(LEAST_MEMORY, min(free)) if free else 0


class Child:
    """A child process in a separate process group: pickled messages go to its standard input, and
    answers come from its standard output. Raises OSError if none can be started.
    """

    def __init__(self) -> None:
        self._stderr: IO[bytes] | None = None
        self._begin = 0  # of the current job's bytes in stderr
        with contextlib.suppress(OSError):  # without a temporary folder, stderr is lost
            self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (see `close`)
        try:
            self.process = subprocess.Popen(
                [sys.executable, *COMMAND, str(free_memory())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr or subprocess.DEVNULL,
                env=environment.of_child(**environment.pocl_variables(), PYTHONSAFEPATH="1"),
                start_new_session=True,  # interrupting a cell is no message to the child
            )
        except OSError:
            if self._stderr:
                self._stderr.close()
            raise

    def send(self, message: Any) -> None:
        """Send a message; a process that has ended does not take it, which ends `answers`."""
        self._begin = os.fstat(self._stderr.fileno()).st_size if self._stderr else 0
        assert self.process.stdin
        with contextlib.suppress(OSError):
            self.process.stdin.write(pickle.dumps(message))
            self.process.stdin.flush()

    def answers(self) -> Iterator[Any]:
        """Iterate over the answers of the process, until it has ended."""
        assert self.process.stdout
        # a broken answer comes from a process that dies, or that writes where it must not
        with contextlib.suppress(Exception):
            while True:
                yield pickle.load(self.process.stdout)
        self.kill()
        self.process.wait()

    def last_lines(self) -> list[str]:
        """Return the last lines of the current job, without a runtime's plea to report a bug."""
        if not self._stderr:
            return []
        self._stderr.seek(max(self._begin, self._stderr.seek(0, os.SEEK_END) - 2000))
        lines = self._stderr.read().decode(errors="replace").strip().splitlines()
        return [line for line in lines if not re.search(r"\bbug\b", line, re.IGNORECASE)][-6:]

    def kill(self) -> None:
        """End the process, and the copies that a kernel may have made of it."""
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, signal.SIGKILL)
            else:
                self.process.kill()

    def close(self) -> None:
        """Close the files of a process that has ended."""
        for stream in (self.process.stdin, self.process.stdout, self._stderr):
            with contextlib.suppress(OSError):  # a request that the dead child never took
                if stream:
                    stream.close()
