"""Files that matter: replaced as a whole, changed by one process at a time, and never trusted to be
intact.
"""

from __future__ import annotations

import json
import os
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
    """A file that is not what it should be."""


def replace(path: str | Path, text: str) -> None:
    """Write a file in one step: readers, an interrupt, and a full disk find the old one or the new
    one, whole.

    Raises:
        OSError: if it cannot be written; the old file is still there.
    """
    path = Path(path)
    handle, made = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(made, _mode(path))
        os.replace(made, path)
    finally:
        Path(made).unlink(missing_ok=True)  # what a full disk, or an interrupt, left of it


def _mode(path: Path) -> int:
    """Of the old file, or of any new file of this user."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def writable(path: str | Path) -> None:
    """Make sure that a file can be written, before hours of work go into its contents.

    Raises:
        OSError: naming the file, if it cannot.
    """
    path = Path(path)
    try:
        if path.is_dir():
            raise IsADirectoryError(f"{path} is a folder; name a file")
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{path} cannot be written: there is no folder {path.parent}"
        ) from None
    except PermissionError as error:
        raise PermissionError(f"{path} cannot be written: {error.strerror}") from None


def load_json(path: str | Path, kind: type) -> Any:
    """The value in a file of JSON, which is of this type; an empty one if there is no file.

    Raises:
        DamagedError: if the file holds something else.
        OSError: if it cannot be read.
    """
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return kind()
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{path} is damaged: {error}") from None
    if not isinstance(found, kind):
        raise DamagedError(f"{path} is damaged: it holds no {kind.__name__}")
    return found


def change_json(path: str | Path, kind: type, change: Callable[[Any], Any]) -> None:
    """Read a file of JSON, and replace it with what `change` makes of its value, while no other
    process does.

    A damaged file is renamed to ``NAME.damaged``, which a warning says, and taken for an empty one.

    Raises:
        OSError: if that is impossible; the old file is still there.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path):
        try:
            found = load_json(path, kind)
        except DamagedError as error:
            kept = path.with_name(f"{path.name}.damaged")
            os.replace(path, kept)
            warnings.warn(f"{error}. It is now {kept.name}, and a new one begins", stacklevel=3)
            found = kind()
        replace(path, json.dumps(change(found), indent=1, ensure_ascii=False) + "\n")


@contextmanager
def locked(path: str | Path) -> Iterator[None]:
    """Hold a file's lock, ``.NAME.lock`` beside it, which the system releases if the process dies.

    Where the file system knows no locks there is none.

    Raises:
        TimeoutError: if another process holds it for longer than `PATIENCE`.
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
    """Whether the lock is ours now, or there are none here."""
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        else:
            import fcntl

            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return True
    return True
