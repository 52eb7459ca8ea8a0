"""Runtimes, devices, compiling and launching."""

from .api import cl, cla

__all__ = ["cl", "cla"]
