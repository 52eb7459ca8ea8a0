"""Everything that the package remembers between calls is remembered here: bounded, and cleared by
one call.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from . import files

_F = TypeVar("_F", bound=Callable[..., Any])
_clear: list[Callable[[], None]] = []


def cached(size: int) -> Callable[[_F], _F]:
    """A decorator: remember the results of the last `size` different calls."""

    def remember(function: _F) -> _F:
        cache = lru_cache(maxsize=size)(function)
        on_clear(cache.cache_clear)
        return cache  # type: ignore[return-value]

    return remember


def on_clear(action: Callable[[], None]) -> None:
    """Have `action` called by `clear_caches`."""
    _clear.append(action)


def clear_caches() -> None:
    """Forget all: compiled kernels, plans, peaks, files, pools of device memory."""
    for action in _clear:
        action()


#: A file is missing or damaged, or there is no home folder (platformdirs raises RuntimeError).
_NO_FILE = (OSError, ValueError, RuntimeError)


class Notes:
    """Entries for the next session, as JSON in the user's cache folder."""

    def __init__(self, name: str):
        self.name = name
        on_clear(self.forget)

    @property
    def file(self) -> Path:
        from platformdirs import user_cache_path  # here, so that the simulator needs NumPy alone

        return user_cache_path("gemmlab") / self.name

    def read(self) -> dict[str, Any]:
        """All entries; none if there is no file, or none that can be read."""
        with suppress(*_NO_FILE):
            return files.load_json(self.file, dict)
        return {}

    def write(self, key: str, entry: Any) -> None:
        """Add an entry; without a folder to write to, nothing is kept."""
        with suppress(*_NO_FILE):
            files.change_json(self.file, dict, lambda entries: {**entries, key: entry})

    def forget(self) -> None:
        with suppress(*_NO_FILE):
            self.file.unlink(missing_ok=True)
