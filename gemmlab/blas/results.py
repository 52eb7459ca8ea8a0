"""Results of calls that made no event."""

from __future__ import annotations

import pyopencl as cl
import pyopencl.array as cla


class Result(cla.Array):
    """A device array whose event is made when somebody asks for it: few do, and making it takes the device time.

    The queue runs in order, so that an event made later happens when the array is ready, or after that.
    """

    _launched: cl.CommandQueue | None = None
    _made: list[cl.Event]

    def launched(self, queue: cl.CommandQueue) -> None:
        """A launch that writes this array was enqueued, without an event."""
        self._launched, self._made = queue, []

    def is_ready_for(self, queue: cl.CommandQueue) -> bool:
        """Whether commands of this queue come after all that is done to the array, without waiting for an event."""
        return self._launched == queue

    @property
    def events(self) -> list[cl.Event]:
        """What to wait for before other queues, or the host, may use the array."""
        if self._launched is not None:
            self._made = [cl.enqueue_marker(self._launched)]
            self._launched = None
        return self._made

    @events.setter
    def events(self, events: list[cl.Event]) -> None:
        self._launched, self._made = None, events
