"""Check what a machine may lack: packages, and folders in which OpenCL compilers can keep kernels.

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


def child_variables(**more: str) -> dict[str, str]:
    """Return the environment of a child process, without what another thread has set for a moment:
    the child would outlive the folder that such a variable names.
    """
    with _changing:
        return {**os.environ, **more}


@contextmanager
def for_pyopencl() -> Iterator[None]:
    """Let PyOpenCL be imported in this block, without its database if that cannot be used."""
    is_new = "pyopencl" not in sys.modules
    with variables(NO_DATABASE if is_new and database_problem() else {}):
        yield


def pocl_folder() -> Path | None:
    """Return PoCL's folder for kernels; None if that is in /tmp, where any user can create it."""
    if folder := os.environ.get("POCL_CACHE_DIR"):
        return Path(folder)
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "pocl"
    home = os.environ.get("HOME")
    return Path(home) / ".cache" / "pocl" if home else None


@cache
def pocl_folder_problem() -> str:
    """Return why PoCL should not use its folder; an empty string if it should."""
    if os.name == "nt":
        return ""
    folder = pocl_folder()
    return "there is no HOME" if folder is None else folder_problem(folder)


@cache
def pocl_variables() -> dict[str, str]:
    """Return variables that name a temporary folder for PoCL; none if its usual folder is fine, or
    if no temporary folder can be created.
    """
    if pocl_folder_problem():
        with suppress(OSError):
            folder = tempfile.mkdtemp(prefix="gemmlab-pocl-")
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            return {"POCL_CACHE_DIR": folder}
    return {}


@cache
def database_problem() -> str:
    """Return why PyOpenCL should not use its database of launch code; empty if it should."""
    try:
        from platformdirs import user_cache_path

        folder = user_cache_path("pytools", "pytools")
    except (ImportError, RuntimeError) as error:  # the latter: this user has no home
        return str(error)
    if sys.platform == "darwin" and os.environ.get("XDG_CACHE_HOME"):  # as pytools does
        folder = Path(os.environ["XDG_CACHE_HOME"]) / "pytools"
    problem = folder_problem(folder)
    for file in [] if problem else folder.glob("pdict-*pyopencl-invoker*.sqlite"):
        problem = problem or _sqlite_problem(file)
    return problem


def _sqlite_problem(file: Path) -> str:
    """Return why a database cannot be read, or written within a second; empty if it can."""
    import sqlite3

    try:
        connection = sqlite3.connect(file, timeout=1.0, isolation_level=None)
        try:
            connection.execute("BEGIN IMMEDIATE")
            (status,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        finally:
            connection.close()
    except sqlite3.Error as error:
        status = str(error)
    return "" if status == "ok" else f"{file}: {status}"


def folder_problem(folder: Path) -> str:
    """Return why a folder should not be used as a cache; an empty string if it should: it, or the
    nearest folder above it that exists, is writable, has `ROOM`, and nobody else may write to it,
    because programs execute what is in a cache.
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


def install_command(*packages: str) -> str:
    """Return the command that installs packages for this Python; environments of uv lack pip."""
    python = shlex.quote(sys.executable)
    pip = f"{python} -m pip install" if find_spec("pip") else f"uv pip install --python {python}"
    return f"{pip} {' '.join(packages)}"
