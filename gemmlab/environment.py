"""What a machine may lack: packages, and folders in which OpenCL compilers can keep kernels.

A home may be missing, read-only, full, or open to others, and files may be damaged. Programs then
fail in other packages: PyOpenCL cannot import a module, and PoCL has no devices,
aborts, or loads libraries that somebody else put into ``/tmp/pocl``. Environment variables prevent
that. They are set only while those packages read them.
"""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import stat
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

#: Bytes that a folder for kernels must have room for: PoCL ends the process on a full disk.
ROOM = 16 * 2**20

#: Has PyOpenCL do without its database of launch code.
NO_DATABASE = {"PYOPENCL_NO_CACHE": "1"}


#: Held while variables are changed for a moment, and while a child's are copied.
_changing = threading.RLock()
if hasattr(os, "register_at_fork"):  # a copy of the process has no other thread to release it
    os.register_at_fork(
        before=_changing.acquire,
        after_in_parent=_changing.release,
        after_in_child=_changing.release,
    )


@contextmanager
def variables(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for the duration of the block."""
    with _changing:
        before = {name: os.environ.get(name) for name in values}
        os.environ.update(values)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


def of_child(**more: str) -> dict[str, str]:
    """The environment of a child process, without what another thread has set for a moment: the
    child would outlive the folder that such a variable names.
    """
    with _changing:
        return {**os.environ, **more}


@contextmanager
def for_pyopencl() -> Iterator[None]:
    """The environment in which to import PyOpenCL: without its database, if that cannot be used."""
    is_new = "pyopencl" not in sys.modules
    with variables(NO_DATABASE if is_new and bad_database() else {}):
        yield


def pocl_folder() -> Path | None:
    """PoCL's folder for kernels; None if it would be in /tmp, where any user can create it."""
    named = os.environ.get("POCL_CACHE_DIR")
    base = os.environ.get("XDG_CACHE_HOME")
    home = os.environ.get("HOME")
    if named:
        return Path(named)
    if base:
        return Path(base) / "pocl"
    return Path(home) / ".cache" / "pocl" if home else None


@cache
def bad_pocl_folder() -> str:
    """Why PoCL should not use its folder; an empty string if it should."""
    if os.name == "nt":
        return ""
    folder = pocl_folder()
    return "there is no HOME" if folder is None else bad_folder(folder)


@cache
def pocl_variables() -> dict[str, str]:
    """Variables that name a temporary folder for PoCL, where it should not use its own; none if
    that is fine, or if no temporary folder can be made.
    """
    if bad_pocl_folder():
        with suppress(OSError):
            folder = tempfile.mkdtemp(prefix="gemmlab-pocl-")
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            return {"POCL_CACHE_DIR": folder}
    return {}


@cache
def bad_database() -> str:
    """Why PyOpenCL should not use its database of launch code; an empty string if it should."""
    try:
        from platformdirs import user_cache_path

        folder = user_cache_path("pytools", "pytools")
    except (ImportError, RuntimeError) as error:  # the latter: this user has no home
        return str(error)
    if sys.platform == "darwin" and os.environ.get("XDG_CACHE_HOME"):  # as pytools does
        folder = Path(os.environ["XDG_CACHE_HOME"]) / "pytools"
    problem = bad_folder(folder)
    for file in [] if problem else folder.glob("pdict-*pyopencl-invoker*.sqlite"):
        problem = problem or _bad_sqlite(file)
    return problem


def _bad_sqlite(file: Path) -> str:
    """Why a database cannot be read, or written within a second; an empty string if it can."""
    import sqlite3

    try:
        connection = sqlite3.connect(file, timeout=1.0, isolation_level=None)
        try:
            connection.execute("BEGIN IMMEDIATE")
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        finally:
            connection.close()
    except sqlite3.Error as error:
        found = str(error)
    return "" if found == "ok" else f"{file}: {found}"


def bad_folder(folder: Path) -> str:
    """Why a folder, which need not exist, should not be used as a cache; an empty string if it
    should: it is writable, has `ROOM`, and nobody else may write to it, because programs execute
    what is in a cache.
    """
    try:
        nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
        with tempfile.TemporaryFile(dir=nearest):
            pass
        if shutil.disk_usage(nearest).free < ROOM:
            return f"{folder}: no space left"
        if os.name == "nt":
            return ""
        if folder.exists() and folder.stat().st_uid not in (os.geteuid(), 0):
            return f"{folder}: it belongs to another user"
        modes = [path.stat().st_mode for path in (nearest, nearest.resolve().parent)]
    except OSError as error:
        return f"{folder}: {error.strerror or error}"
    if any(mode & stat.S_IWOTH and not mode & stat.S_ISVTX for mode in modes):
        return f"{folder}: every user can write there"
    return ""


def is_installed(package: str) -> bool:
    """Whether this Python has a package, by its name on PyPI."""
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True


def install(*packages: str) -> str:
    """The command that installs packages for this Python; environments of uv have no pip."""
    python = shlex.quote(sys.executable)
    pip = f"{python} -m pip install" if find_spec("pip") else f"uv pip install --python {python}"
    return f"{pip} {' '.join(packages)}"
