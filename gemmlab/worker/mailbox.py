"""Requests that wait: only the newest of each client, what a person asked for before what runs in the background."""

from __future__ import annotations

import threading
from typing import Generic, TypeVar

T = TypeVar("T")


class Mailbox(Generic[T]):
    """A queue in which a newer request of a client takes the place of its older one."""

    def __init__(self) -> None:
        self._newest: dict[str, tuple[T, bool]] = {}
        self._arrived = threading.Condition()

    def put(self, client: str, request: T, background: bool = False) -> None:
        """Leave a request; an older one of the same client is forgotten."""
        with self._arrived:
            self._newest[client] = request, background
            self._arrived.notify()

    def put_back(self, client: str, request: T) -> None:
        """Leave a background request again that was taken too early, unless there is a newer one of its client."""
        with self._arrived:
            self._newest.setdefault(client, (request, True))
            self._arrived.notify()

    def take(self) -> T:
        """Wait for a request and take it out, the first that is not in the background if there is one."""
        with self._arrived:
            self._arrived.wait_for(lambda: self._newest)
            client = next((c for c, (_, background) in self._newest.items() if not background), None)
            return self._newest.pop(client or next(iter(self._newest)))[0]

    def has(self, client: str) -> bool:
        """Whether a request of this client waits."""
        with self._arrived:
            return client in self._newest

    def is_urgent(self) -> bool:
        """Whether a request waits that is not in the background."""
        with self._arrived:
            return any(not background for _, background in self._newest.values())
