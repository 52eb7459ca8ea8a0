"""Landscapes: what a device reached with every setting that the explorers offer.

``tools/record_landscape.py`` writes them, one file per device: ``landscape_<device>.json`` in
``results/`` or, where the package is installed, in the user's own folder for data. A file has a
head (title, device, driver, date, size, peak, limits), and for each kernel a row of numbers per
setting.
"""

from __future__ import annotations

import hashlib
import math
import re
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from .. import files
from ..caches import cached
from ..ladder import Key, find, key, sources
from ..ladder.spec import Limits
from .explained import CHIPS

#: What a row holds after the values of the parameters.
MEASURED = ("gflops", "registers", "spilled", "occupancy")


@dataclass(frozen=True)
class Record:
    """What a device reached with one setting of a kernel."""

    kernel: Key
    params: dict[str, int]  # all of them
    size: int  # M = N = K of the product
    gflops: float  # of the bare kernel, with 4 significant digits; 0 if the setting does not count
    share: float  # the rate as a share of the device's peak
    # None where the compiler does not report registers:
    registers: int | None = None  # per work-item
    spilled: int | None = None  # bytes per work-item that did not fit into registers
    occupancy: int | None = None  # per cent of the work-items that a multiprocessor can hold
    problem: str = ""  # why the setting does not count


class Landscape:
    """The recorded rates of one device.

    `head` says what was measured where and when. `kernels` has for each kernel the fingerprint of
    its "text", "columns", "sizes" (GFLOPS of the defaults), "settings" (rows of `columns`), and
    "refused" (the parameters' values, and why).
    """

    def __init__(self, head: dict[str, Any], kernels: dict[Key, dict[str, Any]] | None = None):
        self.head, self.kernels = head, kernels or {}
        self._rows: dict[Key, dict[tuple[int, ...], list[Any]]] = {}

    @classmethod
    def load(cls, path: str | Path) -> Landscape:
        """Read a file, perhaps from another machine; ValueError if it contains anything else."""
        head = files.load_json(path, dict)
        try:
            _check(head)
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from None
        return cls(head, {key(text): found for text, found in head.pop("kernels").items()})

    @property
    def title(self) -> str:
        return self.head["title"]

    @property
    def size(self) -> int:
        """M = N = K of the recorded products."""
        return self.head["size"]

    @property
    def peak(self) -> float:
        """The device's peak in GFLOPS: the chip's if the model has it, else the measured one."""
        chip = next((chip for part, chip in CHIPS.items() if part in self.title), None)
        return chip.gflops if chip else self.head["peak"]

    @cached_property
    def limits(self) -> Limits:
        """What the device allows."""
        fields = self.head["limits"]
        return Limits(**{**fields, "per_dimension": tuple(fields["per_dimension"])})

    def current(self, kernel: Key) -> bool:
        """Whether the text that was recorded is the kernel's present one."""
        found, spec = self.kernels.get(kernel, {}), find(kernel)
        columns = [*spec.defaults, *MEASURED]
        return found.get("text") == fingerprint(spec.file) and found["columns"] == columns

    def rate(self, kernel: Key, values: Mapping[str, int]) -> Record | None:
        """What was recorded for a setting, or None; names in `values` that are no parameters, such
        as M, N and K, are ignored.
        """
        names = tuple(find(kernel).defaults)
        row = self.rows(kernel).get(tuple(values.get(name, -1) for name in names))
        if row is None:
            return None
        params = {name: values[name] for name in names}
        if isinstance(row[0], str):
            return Record(kernel, params, self.size, 0.0, 0.0, problem=row[0])
        return Record(kernel, params, self.size, row[0], row[0] / self.peak, *row[1:])

    def rows(self, kernel: Key) -> dict[tuple[int, ...], list[Any]]:
        """By the values of the parameters: `MEASURED`, or why the setting does not count; none of a
        text that has changed since.
        """
        if kernel not in self._rows:
            count, rows = len(find(kernel).defaults), []
            if self.current(kernel):
                rows = [*self.kernels[kernel]["settings"], *self.kernels[kernel]["refused"]]
            self._rows[kernel] = {tuple(row[:count]): row[count:] for row in rows}
        return self._rows[kernel]

    def best(self, kernel: Key) -> Record | None:
        """The fastest recorded setting of a kernel."""
        right = [
            (row[0], key) for key, row in self.rows(kernel).items() if not isinstance(row[0], str)
        ]
        if not right:
            return None
        return self.rate(kernel, dict(zip(find(kernel).defaults, max(right)[1], strict=True)))

    def over_sizes(self, kernel: Key) -> dict[int, float]:
        """GFLOPS of the kernel's defaults by M = N = K."""
        sizes = self.kernels.get(kernel, {}).get("sizes", {})
        return {int(size): gflops for size, gflops in sizes.items()}


@cached(64)
def fingerprint(file: str) -> str:
    """Twelve digits that change with a kernel's code, also after ``//@`` (see
    `opencl.build.HIDDEN`), but not with its comments or white space.
    """
    return fingerprint_of(sources.read(file))


def fingerprint_of(text: str) -> str:
    """The same of a text."""
    code = re.sub(r"//(?!@ ).*", "", text)
    return hashlib.sha256(" ".join(code.split()).encode()).hexdigest()[:12]


def _check(head: dict[str, Any]) -> None:
    """Raise an error unless all entries have their types: a file might hold HTML."""
    if not isinstance(head["title"], str):
        raise TypeError(f"title={head['title']!r:.60} must be a text")
    if not (head["size"] > 0 and 0 < head["peak"] < math.inf):
        raise ValueError(f"size={head['size']!r} and peak={head['peak']!r} must be positive")
    limits = {name: value for name, value in head["limits"].items() if name != "name"}
    _check_numbers("limits", [*limits.pop("per_dimension"), *limits.values()])
    Limits(**head["limits"])
    for name, kernel in head["kernels"].items():
        columns = len(kernel["columns"])
        _check_numbers(name, [*map(int, kernel["sizes"]), *kernel["sizes"].values()])
        for row in kernel["settings"]:
            _check_numbers(name, row, columns)
        for *values, why in kernel["refused"]:
            _check_numbers(name, values, columns - len(MEASURED))
            if not isinstance(why, str):
                raise TypeError(f"kernel {name} has a refused setting without a reason: {why!r}")


def _check_numbers(name: str, row: list[Any], length: int | None = None) -> None:
    numbers = (isinstance(x, (int, float)) and 0 <= x < math.inf for x in row if x is not None)
    if not all(numbers) or len(row) != (len(row) if length is None else length):
        raise ValueError(f"{name}: {row!r:.200} must be {length or 'a list of'} numbers")


@cached(1)
def recorded() -> tuple[Landscape, ...]:
    """All recorded landscapes, the fastest device first. An unreadable file causes a warning."""
    folders = {sources.folder("results"): None}
    with suppress(OSError):  # a user without a home
        folders[sources.own_folder()] = None
    found = []
    for path in (path for folder in folders for path in sorted(folder.glob("landscape_*.json"))):
        try:
            found.append(Landscape.load(path))
        except (OSError, ValueError) as error:  # an explorer works without it
            warnings.warn(f"{path} is no landscape: {type(error).__name__}: {error}", stacklevel=2)
    return tuple(sorted(found, key=lambda landscape: -landscape.peak))


def find_landscape(device: str = "H200") -> Landscape | None:
    """The recorded landscape whose title contains `device`, None if there is none."""
    return next((found for found in recorded() if device.lower() in found.title.lower()), None)


def rate(kernel: Key, values: Mapping[str, int], device: str = "H200") -> Record | None:
    """`Landscape.rate` of the landscape whose title contains `device`; None without one."""
    landscape = find_landscape(device)
    return landscape.rate(kernel, values) if landscape else None
