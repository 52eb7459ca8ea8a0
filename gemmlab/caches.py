"""Everything that the package remembers between calls is remembered here: bounded, and cleared by one call."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])
_clear: list[Callable[[], None]] = []


def cached(size: int) -> Callable[[_F], _F]:
    """A decorator: remember the results of the last `size` different calls (see `functools.lru_cache`)."""

    def remember(function: _F) -> _F:
        cache = lru_cache(maxsize=size)(function)
        on_clear(cache.cache_clear)
        return cache  # type: ignore[return-value]

    return remember


def on_clear(action: Callable[[], None]) -> None:
    """Have `action` called by `clear_caches`."""
    _clear.append(action)


def clear_caches() -> None:
    """Forget everything that was remembered: compiled kernels, measured peaks, files read, pools of device memory."""
    for action in _clear:
        action()
