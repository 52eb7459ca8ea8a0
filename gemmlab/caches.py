"""What the package remembers between calls.

In memory: what is slow to compute again, or depends on a device or a file. `cached` bounds each of
these caches, and `clear_caches` empties all of them. On disk: `Notes`, which only `forget` deletes.

Not emptied, because it is the same for as long as the process runs: the devices with their contexts
and queues, the folders that compilers use, the child process of the widgets, and pure functions of
short texts and types.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypeVar, cast

from . import files

_P = ParamSpec("_P")
_R_co = TypeVar("_R_co", covariant=True)


class Cached(Protocol[_P, _R_co]):
    """A function that remembers its results."""

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R_co: ...

    def cache_clear(self) -> None:
        """Forget the results."""


_caches: list[Cached[..., Any]] = []


def cached(size: int) -> Callable[[Callable[_P, _R_co]], Cached[_P, _R_co]]:
    """Return a decorator that remembers the results of the last `size` different calls."""

    def remember(function: Callable[_P, _R_co]) -> Cached[_P, _R_co]:
        cache = cast(Cached[_P, _R_co], lru_cache(maxsize=size)(function))
        _caches.append(cache)
        return cache

    return remember


def clear_caches() -> None:
    """Forget what this process remembers: compiled kernels, plans, rates that it measured, contents
    of files, pools of device memory. Files stay: see `python -m gemmlab forget`.
    """
    for cache in _caches:
        cache.cache_clear()


#: A file is missing or damaged, or there is no home folder (platformdirs raises RuntimeError).
_NO_FILE = (OSError, ValueError, RuntimeError)


def folder() -> Path:
    """Return the folder of all `Notes`, in the user's cache folder. Raise RuntimeError without a
    home.
    """
    from platformdirs import user_cache_path  # here, so that the simulator needs NumPy alone

    return user_cache_path("gemmlab")


def forget() -> None:
    """Delete all `Notes`. Raise OSError if that is impossible, RuntimeError without a home."""
    with suppress(FileNotFoundError):
        shutil.rmtree(folder())


class Notes:
    """Entries for the next session, as JSON in the user's cache folder."""

    def __init__(self, name: str):
        self.name = name

    @property
    def file(self) -> Path:
        return folder() / self.name

    def read(self) -> dict[str, Any]:
        """Return all entries; none if there is no file, or none that can be read."""
        with suppress(*_NO_FILE):
            return files.load_json(self.file, dict)
        return {}

    def write(self, key: str, entry: Any) -> None:
        """Add an entry; without a folder to write to, nothing is kept."""
        with suppress(*_NO_FILE):
            files.change_json(self.file, dict, lambda entries: {**entries, key: entry})
