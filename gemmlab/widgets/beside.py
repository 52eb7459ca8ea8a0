"""What an explorer compares a rate with. It is measured while nobody waits, and known to all
explorers of a process.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any

from ..catalog import Key, catalog
from ..measurement.explained import Allowed
from ..measurement.landscape import Landscape
from ..measurement.records import Result
from ..opencl.devices import Device
from ..worker.client import Outcome
from ..worker.idle import Job

_best: dict[tuple[str, Key], float] = {}  # the best GFLOPS of each kernel, by device and number
# the fields of `Peaks`, by device; None where they cannot be measured
_peaks: dict[str, dict[str, Any] | None] = {}
_originals: dict[tuple, Result] = {}  # of kernels' own texts, by device, kernel and settings
# by chip, kernel and settings; None where the model cannot tell
_allowed: dict[tuple, Allowed | None] = {}
_all: weakref.WeakSet[Beside] = weakref.WeakSet()  # those that hear of it


class Beside:
    """The rates of a device that stand beside those of an explorer.

    Args:
        device: the device.
        arrived: called when one more is known, from any thread.
    """

    def __init__(self, device: Device, arrived: Callable[[], None]):
        self._device, self._name, self._arrived = device, str(device), arrived
        _all.add(self)

    @property
    def peak(self) -> float | None:
        """The measured peak in GFLOPS, or None as long as it is not known."""
        found = _peaks.get(self._name)
        return found["gflops"] if found else None

    def best(self) -> dict[Key, float]:
        """The best GFLOPS of each kernel here so far, by its number."""
        return {number: _best[key] for number in catalog if (key := (self._name, number)) in _best}

    def note(self, kernel: Key, gflops: float) -> None:
        """A kernel has reached a rate, with a right result."""
        _best[self._name, kernel] = max(_best.get((self._name, kernel), 0.0), gflops)

    def original(self, kernel: Key, values: Mapping[str, int]) -> Result | None:
        """The result of a kernel's own text with these parameters and sizes, or None as long as it
        is not known.
        """
        return _originals.get((self._name, kernel, *values.items()))

    def measure_original(self, arguments: dict[str, Any], values: Mapping[str, int]) -> Job:
        """Measure a kernel's own text with these parameters and sizes."""
        key = (self._name, arguments["kernel"], *values.items())

        def done(outcome: Outcome) -> None:
            if outcome.ok:
                _originals[key] = outcome.result
                self.note(arguments["kernel"], outcome.result.gflops)
                self._tell()

        return Job("measure", {**arguments, "source": None}, done)

    def allowed(self, kernel: Key, values: Mapping[str, int]) -> Allowed | None:
        """What the model allows on this device with these parameters and sizes, or None as long as
        it is not known.
        """
        return _allowed.get((self._name, kernel, *values.items()))

    def allowed_on(
        self, found: Landscape, kernel: Key, params: Mapping[str, int]
    ) -> Allowed | None:
        """What it allows on a recorded device, likewise."""
        return _allowed.get((found.title, kernel, *params.items()))

    def work_out(
        self, arguments: dict[str, Any], values: Mapping[str, int], gflops: float
    ) -> list[Job]:
        """Work out what the model allows on this device, where a rate was measured."""
        options = {"device": self._device.index, "peaks": _peaks.get(self._name)}
        asked = {name: arguments[name] for name in ("kernel", "params", "m", "n", "k")}
        return self._ceiling(
            (self._name, asked["kernel"], *values.items()), {**asked, **options, "gflops": gflops}
        )

    def work_out_on(self, found: Landscape, kernel: Key, params: Mapping[str, int]) -> list[Job]:
        """Work out what it allows on a recorded device, where a rate was recorded."""
        record = found.rate(kernel, params)
        if record is None or record.problem:
            return []
        asked = {"kernel": kernel, "params": dict(params), **dict.fromkeys("mnk", found.size)}
        options = {"gflops": record.gflops, "registers": record.registers, "chip": found.title}
        return self._ceiling((found.title, kernel, *params.items()), asked | options)

    def _ceiling(self, key: tuple, arguments: dict[str, Any]) -> list[Job]:
        def done(outcome: Outcome) -> None:
            _allowed[key] = Allowed(**outcome.result) if outcome.result else None
            self._tell()

        return [] if key in _allowed else [Job("ceiling", arguments, done)]

    def measure_peaks(self) -> list[Job]:
        """Measure the peaks of the device, if they are not known."""
        return (
            [Job("peaks", {"device": self._device.index}, self._heard_peaks)]
            if self._name not in _peaks
            else []
        )

    def measure_others(self, sizes: Mapping[str, int], most_seconds: float) -> list[Job]:
        """Measure the other kernels, as far as they are not known, at sizes m, n and k."""
        jobs = []
        for number in catalog:
            if (self._name, number) not in _best:
                arguments = {
                    "kernel": number,
                    "device": self._device.index,
                    "most_seconds": most_seconds,
                    **sizes,
                }
                jobs.append(Job("measure", arguments, self._heard_other))
        return jobs

    def _heard_other(self, outcome: Outcome) -> None:
        if outcome.ok:
            self.note(outcome.result.kernel, outcome.result.gflops)
            self._tell()

    def _heard_peaks(self, outcome: Outcome) -> None:
        _peaks[self._name] = outcome.result
        self._tell()

    def _tell(self) -> None:
        """What has arrived is of use to every explorer on this device."""
        for other in list(_all):
            if other._name == self._name:
                other._arrived()
