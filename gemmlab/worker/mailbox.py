"""Requests that wait: only the newest of each client."""

from __future__ import annotations

import threading
from typing import Generic, TypeVar

T = TypeVar("T")


class Mailbox(Generic[T]):
    """A queue in which a newer request of a client takes the place of its older one."""

    def __init__(self) -> None:
        self._newest: dict[str, T] = {}
        self._arrived = threading.Condition()

    def put(self, client: str, request: T) -> None:
        """Leave a request; an older one of the same client is forgotten."""
        with self._arrived:
            self._newest[client] = request
            self._arrived.notify()

    def take(self) -> T:
        """Wait for a request and take out the first."""
        with self._arrived:
            self._arrived.wait_for(lambda: self._newest)
            return self._newest.pop(next(iter(self._newest)))

    def empty(self) -> bool:
        """Whether nothing waits."""
        with self._arrived:
            return not self._newest

    def has(self, client: str) -> bool:
        """Whether a request of this client waits."""
        with self._arrived:
            return client in self._newest
