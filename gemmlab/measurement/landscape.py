"""Landscapes: what a device reached with every setting that the explorers offer.

``tools/record.py landscape`` writes them, one file per device: ``landscape_<device>.json`` in
``results/`` or, where the package is installed, in the user's own folder for data. A file has a
head (title, device, driver, date, size, peak, limits), and for each kernel a row of numbers per
setting.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice, product
from pathlib import Path
from typing import Any

from .. import files
from ..caches import cached
from ..catalog import KernelSpec, Key, find, in_order, key, sources
from ..catalog.spec import Limits
from .explained import CHIPS

#: What a row holds behind the values of the parameters.
MEASURED = ("gflops", "registers", "spilled", "occupancy")
#: A kernel with more legal settings than this is recorded at `SOME` of them.
MOST, SOME = 3000, 500


@dataclass(frozen=True)
class Record:
    """What a device reached with one setting of a kernel.

    Attributes:
        kernel, params: the kernel, and all its parameters.
        size: M = N = K of the product.
        gflops: the rate of the bare kernel with 4 significant digits; 0 if the setting does not
            count (see `problem`).
        share: the rate as a share of the device's peak.
        registers: per work-item; None where the compiler does not tell.
        spilled: bytes per work-item that did not fit into registers; None likewise.
        occupancy: work-items that a multiprocessor holds at once, in per cent of the most that it
            can; None likewise.
        current: whether the kernel's text is still the recorded one.
        problem: why the setting does not count, in words.
    """

    kernel: Key
    params: dict[str, int]
    size: int
    gflops: float
    share: float
    registers: int | None = None
    spilled: int | None = None
    occupancy: int | None = None
    current: bool = True
    problem: str = ""

    @property
    def local_memory(self) -> int:
        """Bytes of local memory per work-group."""
        return find(self.kernel).local_memory(self.params)


class Landscape:
    """The recorded rates of one device.

    Args:
        head: what was measured where and when: "title", "device", "size", "peak" (GFLOPS),
            "limits", and the origin.
        kernels: by the number of the kernel "text" (the fingerprint of the text that ran),
            "columns", "sizes" (GFLOPS of the defaults by size), "settings" (rows of `columns`), and
            "refused" (values of the parameters, and why).
    """

    def __init__(self, head: dict[str, Any], kernels: dict[Key, dict[str, Any]] | None = None):
        self.head, self.kernels = head, kernels or {}
        self._rows: dict[Key, dict[tuple[int, ...], list]] = {}

    @classmethod
    def load(cls, path: str | Path) -> Landscape:
        """Read a file that `save` wrote, perhaps on another machine.

        Raises:
            ValueError: if the file holds anything else.
        """
        head = files.load_json(path, dict)
        try:
            _check(head)
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from None
        return cls(head, {key(text): found for text, found in head.pop("kernels").items()})

    def save(self, path: str | Path) -> None:
        """Write the landscape, one setting per line, so that two versions can be compared.

        The file is replaced only when the new one is complete: an interrupt loses nothing.
        """
        kernels = ",\n".join(
            f'  "{name}": {_kernel_text(self.kernels[name])}' for name in in_order(self.kernels)
        )
        head = json.dumps(self.head, indent=1).removesuffix("\n}")
        files.replace(path, f'{head},\n "kernels": {{\n{kernels}\n }}\n}}\n')

    @property
    def title(self) -> str:
        return self.head["title"]

    @property
    def size(self) -> int:
        """M = N = K of the recorded products."""
        return self.head["size"]

    @property
    def peak(self) -> float:
        """The peak of the device in GFLOPS: of a chip that the model knows the stated one, as in
        all charts of it.

        Of another device it is the one that was measured.
        """
        chip = next((chip for part, chip in CHIPS.items() if part in self.title), None)
        return chip.gflops if chip else self.head["peak"]

    @cached_property
    def limits(self) -> Limits:
        """What the device allows."""
        fields = self.head["limits"]
        return Limits(**{**fields, "per_dimension": tuple(fields["per_dimension"])})

    def current(self, kernel: Key) -> bool:
        """Whether the text that was recorded is the kernel's present one."""
        return self.kernels.get(kernel, {}).get("text") == fingerprint(find(kernel).file)

    def rate(self, kernel: Key, values: Mapping[str, int]) -> Record | None:
        """What was recorded for a setting; None if it was not recorded.

        Args:
            kernel: its number.
            values: its parameters; other names, such as M, N and K, are left aside.
        """
        names = tuple(find(kernel).defaults)
        row = self.rows(kernel).get(tuple(values.get(name, -1) for name in names))
        if row is None:
            return None
        params = {name: values[name] for name in names}
        if isinstance(row[0], str):
            return Record(
                kernel, params, self.size, 0.0, 0.0, current=self.current(kernel), problem=row[0]
            )
        gflops, registers, spilled, occupancy = row
        share = gflops / self.peak
        return Record(
            kernel,
            params,
            self.size,
            gflops,
            share,
            registers,
            spilled,
            occupancy,
            self.current(kernel),
        )

    def rows(self, kernel: Key) -> dict[tuple[int, ...], list]:
        """By the values of the parameters, what is in `MEASURED`, or the reason why the setting
        does not count.
        """
        if kernel not in self._rows:
            names, found = list(find(kernel).defaults), self.kernels.get(kernel)
            known = found is not None and found["columns"] == [*names, *MEASURED]
            rows = [*found["settings"], *found["refused"]] if found and known else []
            self._rows[kernel] = {tuple(row[: len(names)]): row[len(names) :] for row in rows}
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
        return {
            int(size): gflops
            for size, gflops in self.kernels.get(kernel, {}).get("sizes", {}).items()
        }

    def add(self, kernel: Key, params: Mapping[str, int], measured: Iterable) -> None:
        """Add a setting: the values of `MEASURED`, or a list with one sentence that says why it
        does not count.
        """
        spec, row = find(kernel), list(measured)
        self.rows(kernel)[tuple(params.values())] = row
        part = "refused" if isinstance(row[0], str) else "settings"
        self._of(spec)[part].append([*params.values(), *row])

    def add_size(self, kernel: Key, size: int, gflops: float) -> None:
        """Add the rate of a kernel's defaults at a size; 0 if there is none."""
        self._of(find(kernel))["sizes"][str(size)] = gflops

    def forget_old(self) -> list[Key]:
        """Drop the kernels whose text has changed since; return their numbers."""
        old = [kernel for kernel in self.kernels if not self.current(kernel)]
        for kernel in old:
            del self.kernels[kernel]
            self._rows.pop(kernel, None)
        return old

    def _of(self, spec: KernelSpec) -> dict[str, Any]:
        head = {"text": fingerprint(spec.file), "columns": [*spec.defaults, *MEASURED]}
        return self.kernels.setdefault(
            spec.number, {**head, "sizes": {}, "settings": [], "refused": []}
        )


def _kernel_text(found: dict[str, Any]) -> str:
    """A kernel's part of a file: JSON, with a line for each row."""
    found = {**found, "sizes": dict(sorted(found["sizes"].items(), key=lambda item: int(item[0])))}
    parts = [f'"{name}": {json.dumps(found[name])}' for name in ("text", "columns", "sizes")]
    for name in ("settings", "refused"):
        rows = ",\n".join("    " + json.dumps(row, separators=(",", ":")) for row in found[name])
        parts.append(f'"{name}": [\n{rows}\n   ]' if rows else f'"{name}": []')
    return "{\n   " + ",\n   ".join(parts) + "}"


@cached(64)
def fingerprint(file: str) -> str:
    """Twelve digits that change with the code of a kernel's file, but not with its comments or its
    layout.

    Lines that begin with ``//@`` are instructions (see `opencl.build.HIDDEN`) and count.
    """
    code = re.sub(r"//(?!@ ).*", "", sources.read(file))
    return hashlib.sha256(" ".join(code.split()).encode()).hexdigest()[:12]


def choice(spec: KernelSpec, limits: Limits | None = None) -> list[dict[str, int]]:
    """The settings of a kernel to record on a device with `limits`, without repetition, the
    defaults first.

    These are all legal combinations of the values that an explorer offers. Where there are more
    than `MOST`, they are those in which at most two parameters differ from the defaults, so that
    every picture over two parameters is whole around the defaults, and others drawn at random with
    a fixed seed, up to `SOME`.
    """
    settings = [*_near(spec, limits, 0)]
    every = list(islice(spec.search_space(limits), MOST + 1))
    if len(every) <= MOST:
        settings += every
    else:
        settings += [*_near(spec, limits, 1), *_near(spec, limits, 2)]
        settings += spec.sample(limits, max(0, SOME - len(settings)))
    return list({tuple(setting.values()): setting for setting in settings}.values())


def _near(spec: KernelSpec, limits: Limits | None, moved: int) -> Iterator[dict[str, int]]:
    """The legal settings in which exactly `moved` parameters differ from the defaults that fit."""
    start = spec.fit(limits) if limits else spec.defaults
    for params in combinations(spec.params, moved):
        for values in product(*([v for v in p.choices if v != start[p.name]] for p in params)):
            setting = {**start, **{p.name: value for p, value in zip(params, values, strict=True)}}
            if not spec.problems(setting, limits):
                yield setting


def _check(found: dict[str, Any]) -> None:
    """Refuse a file whose entries are not of the types that `Landscape` documents: whoever reads it
    need not doubt it.
    """
    kinds: dict[str, Any] = {"title": str, "size": int, "peak": (int, float)}
    kinds |= {"limits": dict, "kernels": dict}
    for name, kind in kinds.items():
        if not isinstance(found.get(name), kind):
            raise ValueError(f"it has no valid {name!r}, but {found.get(name)!r:.60}")
    if not (found["size"] > 0 and 0 < found["peak"] < math.inf):
        raise ValueError(f"a size of {found['size']!r} or a peak of {found['peak']!r} cannot be")
    Limits(**found["limits"])
    for name, kernel in found["kernels"].items():
        columns = len(kernel["columns"])
        parameters = columns - len(MEASURED)
        for row in [*kernel["settings"], [*map(int, kernel["sizes"]), *kernel["sizes"].values()]]:
            if not all(entry is None or _is_number(entry) for entry in row):
                raise ValueError(f"kernel {name} has a setting that is no list of numbers: {row!r}")
        if not all(len(row) == columns for row in kernel["settings"]):
            raise ValueError(f"kernel {name} has settings that are not {columns} numbers long")
        for *values, why in kernel["refused"]:
            if len(values) != parameters or not isinstance(why, str):
                raise ValueError(f"kernel {name} has a refused setting without a reason: {why!r}")


def _is_number(entry: Any) -> bool:
    return isinstance(entry, (int, float)) and math.isfinite(entry)


def home() -> Path:
    """Where a new landscape goes: ``results/`` in a checkout, `sources.own_folder` if the package
    is installed.
    """
    results = sources.folder("results")
    installed = (results.parent / "__init__.py").exists()
    return sources.own_folder() if installed or not os.access(results, os.W_OK) else results


def file_of(device: str) -> Path:
    """The file for a device's landscape: "NVIDIA H200" has ``landscape_nvidia_h200.json``."""
    return home() / f"landscape_{re.sub('[^a-z0-9]+', '_', device.lower()).strip('_')}.json"


@cached(1)
def recorded() -> tuple[Landscape, ...]:
    """All recorded landscapes, those of the fastest devices first; a file that cannot be read is
    named in a warning.
    """
    folders = dict.fromkeys((sources.folder("results"), sources.own_folder()))
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
    """What a recorded device reached with exactly these settings; None if that was not recorded.

    Args:
        kernel: its number.
        values: all its parameters; other names, such as M, N and K, are left aside.
        device: part of the title of a recorded landscape.
    """
    landscape = find_landscape(device)
    return landscape.rate(kernel, values) if landscape else None
