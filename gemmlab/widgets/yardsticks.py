"""What an explorer compares a rate with; it is worked out while nobody waits, once per process."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any

from ..catalog import KernelSpec
from ..measurement.explained import Allowed
from ..measurement.landscape import Landscape
from ..opencl.devices import Device
from ..worker.client import Outcome
from ..worker.idle import Job
from .browser import Browser

#: The chip whose ceilings every panel shows.
CHIP = "NVIDIA H200"

_peaks: dict[str, float | None] = {}  # GFLOPS by device; None where they cannot be measured
_allowed: dict[tuple, Allowed | None] = {}  # None where the model cannot tell
_all: weakref.WeakSet[Yardsticks] = weakref.WeakSet()


class Yardsticks:
    """The peak of a device, and what the model allows on an H200.

    Args:
        device: the reader's device; a page measures no peak.
        arrived: called when more is known, from any thread.
    """

    def __init__(self, device: Device | Browser, arrived: Callable[[], None]):
        self._device, self._name, self._arrived = device, str(device), arrived
        _all.add(self)

    @property
    def peak(self) -> float | None:
        """The measured peak in GFLOPS, None as long as it is not known."""
        return _peaks.get(self._name)

    def measure_peak(self) -> list[Job]:
        """The job for it, if it is needed."""

        def done(outcome: Outcome) -> None:
            _peaks[self._name] = outcome.result["gflops"] if outcome.result else None
            self._tell()

        if self._name in _peaks or self._device.index is None:
            return []
        return [Job("peaks", {"device": self._device.index}, done)]

    def allowed(self, spec: KernelSpec, params: Mapping[str, int], source=None) -> Allowed | None:
        """What the model allows on the chip, None as long as it is not known."""
        return _allowed.get((spec.number, *params.items(), source))

    def work_out(
        self,
        spec: KernelSpec,
        params: Mapping[str, int],
        source: str | None = None,
        found: Landscape | None = None,
    ) -> list[Job]:
        """The job for it, if it is needed; `found` has the rate that was recorded."""
        key = (spec.number, *params.items(), source)
        if spec.tensor or key in _allowed:
            return []
        arguments: dict[str, Any] = {"kernel": spec.number, "params": dict(params)}
        record = found.rate(spec.number, params) if found and source is None else None
        if record and not record.problem:
            arguments |= {"gflops": record.gflops, "registers": record.registers}
        if source is not None:
            arguments["source"] = source

        def done(outcome: Outcome) -> None:
            _allowed[key] = Allowed(**outcome.result) if outcome.result else None
            self._tell()

        return [Job("ceiling", arguments, done)]

    def _tell(self) -> None:
        """What has arrived is of use to every explorer."""
        for other in list(_all):
            other._arrived()
