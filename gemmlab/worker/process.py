"""A child process that may crash or hang: started, sent requests, listened to, and killed."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
from typing import IO, Any

from .. import environment

#: What Python runs in a child.
COMMAND = ("-m", "gemmlab.worker.child")

#: Seconds to wait for the last answers of a process that has ended.
DRAIN = 5.0


class Child:
    """A child process in a process group of its own.

    Two threads watch it. They put ``(child, line)`` into `events` for each line of its standard
    output, and then ``(child, None)`` once, when the process has ended.

    Args:
        events: where the threads report.
        memory_bytes: how much memory it may take; by default what the machine has free.

    Attributes:
        process: the process.
        answered: whether it has said anything yet.

    Raises:
        OSError: if no process can be started.
    """

    def __init__(self, events: queue.SimpleQueue, memory_bytes: int | None = None):
        self.answered = False
        self._before = 0  # bytes of stderr that belong to earlier jobs
        self.words: IO[bytes] | None = None
        with contextlib.suppress(OSError):  # without a temporary folder, last words are lost
            self.words = tempfile.TemporaryFile()  # noqa: SIM115 (see `close`)
        limit = [] if memory_bytes is None else [str(memory_bytes)]
        self.process = subprocess.Popen(
            [sys.executable, *COMMAND, *limit],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.words or subprocess.DEVNULL,
            env={**os.environ, **environment.pocl_variables(), "PYTHONSAFEPATH": "1"},
            start_new_session=True,  # interrupting a cell is no message to the child
        )
        reader = threading.Thread(target=self._read, args=(events,), daemon=True)
        reader.start()
        threading.Thread(target=self._watch, args=(events, reader), daemon=True).start()

    def send(self, message: dict[str, Any]) -> None:
        """Send a request; if the process has ended, `events` says so."""
        assert self.process.stdin
        with contextlib.suppress(OSError):
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()

    def begin(self) -> None:
        """A job begins: what was said before belongs to others."""
        self.answered = True
        self._before = os.fstat(self.words.fileno()).st_size if self.words else 0

    def last_words(self) -> list[str]:
        """The last lines of the present job, without a runtime's plea to report the reader's own
        mistake as a bug.
        """
        if not self.words:
            return []
        self.words.seek(max(self._before, self.words.seek(0, os.SEEK_END) - 2000))
        lines = self.words.read().decode(errors="replace").strip().splitlines()
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
        for stream in (self.process.stdin, self.process.stdout, self.words):
            with contextlib.suppress(OSError):  # a request that the dead child never took
                if stream:
                    stream.close()

    def _read(self, events: queue.SimpleQueue) -> None:
        assert self.process.stdout
        with contextlib.suppress(OSError, ValueError):  # closed while it was read
            for line in self.process.stdout:
                events.put((self, line))

    def _watch(self, events: queue.SimpleQueue, reader: threading.Thread) -> None:
        # The end of the process counts, not that of its output: a copy of it may keep that open.
        self.process.wait()
        self.kill()
        reader.join(DRAIN)
        events.put((self, None))
