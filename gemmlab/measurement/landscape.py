"""Landscapes: what a device reached with every setting that the explorers offer.

``tools/record_landscape.py`` writes them, one record per device: ``landscape_<device>.json`` in
``results/`` or, where the package is installed, in the user's own folder for data. Its rows are of
the series "landscape", and "sizes" for the defaults at several sizes.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from .. import model
from ..caches import cached
from ..ladder import Key, find, sources
from ..ladder.spec import Limits
from . import records
from .records import Row

#: The chips of the model, by a part of the names of devices.
CHIPS = {"H200": model.H200, "K40m": model.K40M}

Settings = tuple[int, ...]


class Landscape:
    """The recorded rates of one device, from the rows of its record.

    Attributes:
        origin: the row of the measured peak, which says where and when.
        limits: what the device allows.
        settings: by kernel, and by the values of its parameters, what was recorded.
        sizes: by kernel, and by M = N = K, what was recorded with the defaults.
    """

    def __init__(self, rows: Iterable[Row]):
        rows = [*rows]
        (origin,) = (row for row in rows if row.metric == "peak GFLOPS")
        self.origin: Row = origin
        self.limits: Limits = _limits(origin.head["limits"])
        self.settings: dict[Key, dict[Settings, Row]] = {}
        self.sizes: dict[Key, dict[int, Row]] = {}
        for row in rows:
            spec = find(row.kernel) if row.kernel else None
            if spec is None or row.code != fingerprint(spec.file):  # recorded of an older text
                continue
            if row.series == "sizes":
                self.sizes.setdefault(row.kernel, {})[row.m] = row
            elif row.params.keys() == spec.defaults.keys():
                values = tuple(row.params[name] for name in spec.defaults)
                self.settings.setdefault(row.kernel, {})[values] = row

    @property
    def title(self) -> str:
        return self.origin.title

    @property
    def size(self) -> int:
        """M = N = K of the recorded products."""
        return self.origin.size

    @property
    def peak(self) -> float:
        """The device's peak in GFLOPS: the chip's if the model has it, else the measured one."""
        chip = chip_of(self.title)
        return chip.gflops if chip else self.origin.median

    def rate(self, kernel: Key, values: Mapping[str, int]) -> Row | None:
        """What was recorded with a setting: GFLOPS, or why it was "refused"; None without a record.
        Names in `values` that are not parameters, such as M, N and K, are ignored.
        """
        names = find(kernel).defaults
        return self.rows(kernel).get(tuple(values.get(name, -1) for name in names))

    def rows(self, kernel: Key) -> dict[Settings, Row]:
        """The rows of a kernel's settings, by the values of the parameters."""
        return self.settings.get(find(kernel).number, {})

    def best(self, kernel: Key) -> Row | None:
        """The fastest recorded setting of a kernel."""
        rated = [row for row in self.rows(kernel).values() if row.metric == "GFLOPS"]
        return max(rated, key=lambda row: row.median, default=None)

    def over_sizes(self, kernel: Key) -> dict[int, Row]:
        """The rows of the kernel's defaults by M = N = K."""
        return self.sizes.get(find(kernel).number, {})


def _limits(fields: Mapping[str, Any]) -> Limits:
    """What the device allows. Raises ValueError for values of other types."""
    dimensions = tuple(fields["per_dimension"])
    others = [value for name, value in fields.items() if name not in ("name", "per_dimension")]
    if not all(isinstance(value, int) for value in (*dimensions, *others)):
        raise ValueError(f"limits={dict(fields)} must be whole numbers")
    return Limits(**{**fields, "per_dimension": dimensions})


def chip_of(device: str) -> model.Chip | None:
    """The chip of a device that the model knows."""
    return next((chip for name, chip in CHIPS.items() if name in device), None)


def occupancy(row: Row) -> int | None:
    """Per cent of the work-items that a multiprocessor holds with the settings of a row; None if
    its registers or the chip are unknown.
    """
    chip, spec = chip_of(row.device), find(row.kernel)
    if chip is None or row.registers is None:
        return None
    across, down = spec.local_size(row.params)
    memory = spec.local_memory(row.params)
    limits = model.occupancy(chip, across * down, row.registers, memory)
    return round(100 * min(limits.values()) * across * down / chip.work_items)


@cached(64)
def fingerprint(file: str) -> str:
    """Return twelve digits that change with a kernel's code, also behind ``//@`` (see
    `opencl.build.HIDDEN`), but not with its header, its rules, comments or white space.
    """
    return fingerprint_of(sources.code(sources.read(file)))


def fingerprint_of(text: str) -> str:
    """Return twelve digits that change with a text, but not with its comments or white space."""
    code = re.sub(r"//(?!@ ).*", "", text)
    return hashlib.sha256(" ".join(code.split()).encode()).hexdigest()[:12]


@cached(1)
def landscapes() -> tuple[Landscape, ...]:
    """All recorded landscapes, the fastest device first. A broken one causes a warning."""
    found = []
    for head in records.rows(series="landscape", metric="peak GFLOPS"):
        try:
            found.append(Landscape(records.rows(record=head.record)))
        except (ValueError, TypeError, KeyError) as error:  # an explorer works without it
            message = f"{head.record}.json is not a landscape: {type(error).__name__}: {error}"
            warnings.warn(message, stacklevel=2)
    return tuple(sorted(found, key=lambda landscape: -landscape.peak))


def find_landscape(device: str = "H200") -> Landscape | None:
    """The recorded landscape whose title contains `device`, None if there is none."""
    return next((one for one in landscapes() if device.lower() in one.title.lower()), None)


def rate(kernel: Key, values: Mapping[str, int], device: str = "H200") -> Row | None:
    """`Landscape.rate` of the landscape whose title contains `device`; None without one."""
    landscape = find_landscape(device)
    return landscape.rate(kernel, values) if landscape else None
