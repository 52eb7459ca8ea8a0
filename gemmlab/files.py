"""Files that matter: replaced as a whole, changed by one process at a time, and never assumed to be
intact.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

#: Seconds to wait for another process that changes the same file.
PATIENCE = 10.0


class DamagedError(ValueError):
    """A file does not contain what it should."""


def replace(path: str | Path, text: str) -> None:
    """Write a file in one step: after an interrupt, an OSError or on a full disk, the old file is
    complete.
    """
    path = _regular(path)
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with open(new, "x", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        if path.exists():
            shutil.copymode(path, new)
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)


def check_writable(path: str | Path) -> None:
    """Raise OSError for a file that cannot be written, before its contents are computed."""
    path = _regular(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: there is no folder {path.parent}")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise type(error)(f"{path} cannot be written: {error.strerror}") from None


def _regular(path: str | Path) -> Path:
    """The file itself, if a link leads to it. Devices such as /dev/null must not be replaced."""
    path = Path(path).resolve()
    if path.exists() and not path.is_file():
        raise OSError(f"{path} cannot be written: it is not a regular file")
    return path


def load_json(path: str | Path, kind: type) -> Any:
    """The contents of a JSON file; an empty `kind`, dict or list, if there is no file. Raises
    DamagedError if it contains anything else, OSError if it cannot be read.
    """
    try:
        value = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return kind()
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{path} is damaged: {error}") from None
    if not isinstance(value, kind):
        raise DamagedError(f"{path} is damaged: it contains no {kind.__name__}")
    return value


def change_json(path: str | Path, kind: type, change: Callable[[Any], Any]) -> None:
    """Replace the value in a JSON file by ``change(value)``; meanwhile other processes wait.

    A damaged file is renamed to ``NAME.damaged``, with a warning, and counts as empty.

    Raises:
        OSError: if that is impossible; the old file is still there.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path):
        try:
            value = load_json(path, kind)
        except DamagedError as error:
            damaged = path.with_name(f"{path.name}.damaged")
            os.replace(path, damaged)
            warnings.warn(f"{error}; it was renamed to {damaged.name}", stacklevel=3)
            value = kind()
        replace(path, json.dumps(change(value), indent=1, ensure_ascii=False) + "\n")


@contextmanager
def locked(path: str | Path) -> Iterator[None]:
    """Hold the lock of a file: ``.NAME.lock`` in the same folder.

    The system releases it if the process dies. A file system without locks is not an error.
    Raises TimeoutError if another process holds it for longer than `PATIENCE`.
    """
    path = Path(path)
    with open(path.with_name(f".{path.name}.lock"), "a+b") as stream:
        end = time.monotonic() + PATIENCE
        while not _try_lock(stream):
            if time.monotonic() > end:
                raise TimeoutError(f"another process holds the lock of {path}")
            time.sleep(0.01)
        yield  # closing the file releases the lock


def _try_lock(stream: IO[bytes]) -> bool:
    """Lock a file, if the file system has locks; whether no other process holds the lock."""
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        else:
            import fcntl

            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # the latter on Windows
        return False
    except (OSError, ImportError, AttributeError):  # a browser's Python has no locks
        return True
    return True
