"""Everything that the package remembers between calls is remembered here: bounded, and cleared by
one call.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])
_clear: list[Callable[[], None]] = []


def cached(size: int) -> Callable[[_F], _F]:
    """A decorator: remember the results of the last `size` different calls (see
    `functools.lru_cache`).
    """

    def remember(function: _F) -> _F:
        cache = lru_cache(maxsize=size)(function)
        on_clear(cache.cache_clear)
        return cache  # type: ignore[return-value]

    return remember


def on_clear(action: Callable[[], None]) -> None:
    """Have `action` called by `clear_caches`."""
    _clear.append(action)


def clear_caches() -> None:
    """Forget everything that was remembered: compiled kernels, measured peaks, files read, pools of
    device memory.
    """
    for action in _clear:
        action()


class Notes:
    """Entries that the next session finds: a file of JSON in the user's cache folder, which
    `clear_caches` removes.

    Attributes:
        name: the file's name.
    """

    def __init__(self, name: str):
        self.name = name
        on_clear(self.forget)

    @property
    def file(self) -> Path:
        from platformdirs import user_cache_path  # here, so that the simulator needs NumPy alone

        return user_cache_path("gemmlab") / self.name

    def read(self) -> dict[str, Any]:
        """All entries; none if there is no file, or none that can be read."""
        with suppress(OSError, ValueError):
            found = json.loads(self.file.read_text(encoding="utf-8"))
            if isinstance(found, dict):
                return found
        return {}

    def write(self, key: str, entry: Any) -> None:
        """Add an entry. The file is replaced as a whole, so that nobody reads half of it; without a
        folder to write to, nothing is kept.
        """
        with suppress(OSError):
            self.file.parent.mkdir(parents=True, exist_ok=True)
            handle, made = tempfile.mkstemp(dir=self.file.parent, suffix=".json")
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as stream:
                    json.dump({**self.read(), key: entry}, stream, indent=1)
                os.replace(made, self.file)
            finally:
                Path(made).unlink(missing_ok=True)  # what a full disk, or an interrupt, left of it

    def forget(self) -> None:
        with suppress(OSError):
            self.file.unlink(missing_ok=True)
