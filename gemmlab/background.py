"""Work beside a cell, see `clscope.background`."""

from clscope.background import Event, start, start_after

__all__ = ["Event", "start", "start_after"]
