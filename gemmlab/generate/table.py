"""The table of choices, ``results/choice.json``: what was measured, by kind of device.

An entry has up to three sections. "model" holds the constants of `cost` for kernels of the
catalog, and the fastest of them at common sizes. "kernels" holds lists of rows, one for each way to
treat edges and each precision: the fastest kernel at some size. "tiles" holds the constants of
generated kernels, and the rules of `split`.
"""

from __future__ import annotations

import json
import math
from itertools import chain
from typing import Any

from ..caches import cached
from ..catalog import Key, catalog, sources
from ..opencl.devices import Device

Sizes = tuple[int, int, int]
#: A kernel's number or name, and all of its parameters as pairs: a key for caches.
Choice = tuple[Key, tuple[tuple[str, int], ...]]

#: Which kind of device to look up where a kind has no entry.
FALLBACK = {
    "nvidia": "gpu",
    "gpu": "nvidia",
    "intel on AMD": "intel",
    "pocl on AMD": "pocl",
    "pocl 3.0": "pocl",
    "intel": "cpu",
    "pocl": "cpu",
    "cpu": "pocl",
}
#: The list of rows for each value of `edges`; that of "auto" is for sizes that need edges.
EDGES = {"pad": "pad", "guard": "guard", "shift": "shift", "auto": "ragged"}
#: The list of rows for sizes that the kernel multiplies without any edges.
WHOLE = "whole"
#: The parameters that a precision implies. All but float32 have a list of rows.
PRECISIONS: dict[str, dict[str, int]] = {
    "float32": {},
    "tf32": {"PARTS": 1, "EVERY": 0, "TENSOR": 1},
    "tf32x3": {"PARTS": 2, "EVERY": 1, "TENSOR": 1},
}
#: The kernel for a list without rows.
DEFAULTS: dict[str, Key] = {
    "pad": 3,
    "guard": 12,
    "shift": 13,
    "tf32": "tensor_cores",
    "tf32x3": "tensor_cores",
}


def kind(device: Device) -> str:
    """The device's kind: a GPU's by its vendor, a CPU's by its runtime and whether it is AMD's."""
    platform = device.platform.lower()
    if device.kind == "GPU":
        return kind_of(platform)
    if "PoCL 3.0" in device.version:
        return "pocl 3.0"
    runtime = "intel" if "intel" in platform else "pocl" if "portable" in platform else "cpu"
    return f"{runtime} on AMD" if "amd" in device.name.lower() and runtime != "cpu" else runtime


def kind_of(platform: str) -> str:
    """The kind of a platform's GPUs."""
    return "nvidia" if "nvidia" in platform.lower() else "gpu"


@cached(1)
def table() -> dict[str, Any]:
    """The whole file; {} without it."""
    file = sources.folder("results") / "choice.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


@cached(64)
def kernel_rows(kind: str, name: str) -> list[dict[str, Any]]:
    """A list of rows for kernels of the catalog, or of the kind to look up instead.

    A row has "size", "kernel", all "params", "gflops", and perhaps the "units" of its device. A
    size is that of a cube, or M, N and K of a column-major product.
    """
    entries = table()
    found = entries.get(kind) or entries.get(FALLBACK[kind]) or {}
    return [
        {**row, "params": catalog[row["kernel"]].complete(row["params"])}
        for row in found.get("kernels", {}).get(name, [])
    ]


def nearest(
    device: Device, sizes: Sizes, edges: str = "auto", precision: str = "float32"
) -> Choice:
    """The kernel of the row whose size is nearest to M, N, K of a column-major product.

    Raises:
        ValueError: if the device supports no kernel for `edges` or `precision` at these sizes.
    """
    if precision != "float32":
        chosen = _nearest(device, precision, sizes)
        if chosen is None:
            raise ValueError(
                f"precision={precision!r}: {device} supports no kernel for it; "
                "precision='float32' runs"
            )
        return chosen
    if edges == "auto":
        whole = _nearest(device, WHOLE, sizes) or _nearest(device, "pad", sizes)
        if whole and catalog[whole[0]].runs_unpadded(*sizes, dict(whole[1])):
            return whole
        chosen = _nearest(device, "ragged", sizes) or whole
    else:
        chosen = _nearest(device, EDGES[edges], sizes)
    if chosen is None and edges == "shift":
        raise ValueError(
            f"edges={edges!r} needs at least one tile, and no tile that {device} supports is as "
            f"small as {sizes[1]} rows of a and {sizes[0]} columns of b; edges='pad' and "
            "edges='guard' support any size"
        )
    if chosen is None:
        raise ValueError(f"edges={edges!r}: no kernel for it fits the limits of {device}")
    return chosen


@cached(4096)
def _nearest(device: Device, name: str, sizes: Sizes) -> Choice | None:
    def supports(number: Key, params: dict[str, int]) -> bool:
        spec = catalog[number]
        if spec.problems(params, device.limits):
            return False
        least = spec.minimum_sizes(params)
        return spec.edges != "shift" or all(s >= t for s, t in zip(sizes, least, strict=True))

    known = kernel_rows(kind(device), name)
    rows = [row for row in known if supports(row["kernel"], row["params"])]
    if rows:
        row = min(rows, key=lambda each: distance(each["size"], sizes))
        params = row["params"]
        if params.get("GROUPS") and row.get("units"):  # as many work-groups per compute unit
            groups = round(params["GROUPS"] * device.units / row["units"])
            params = {**params, "GROUPS": max(1, groups)}
        return row["kernel"], tuple(params.items())
    if name not in DEFAULTS:
        return None
    spec = catalog[DEFAULTS[name]]
    for offered in chain([spec.fit(device.limits)], spec.search_space(device.limits)):
        params = {**offered, **PRECISIONS.get(name, {})}
        if supports(spec.number, params):
            return spec.number, tuple(params.items())
    return None


def implied(precision: str, kernel: Key) -> dict[str, int]:
    """The parameters that a precision implies, of those that this kernel has."""
    defaults = catalog[kernel].defaults
    return {name: value for name, value in PRECISIONS[precision].items() if name in defaults}


def dimensions(size: Any) -> Sizes:
    """M, N, K of a row's size: a number for a cube, or the three."""
    if isinstance(size, int):
        return size, size, size
    m, n, k = size
    return m, n, k


def distance(size: Any, sizes: Sizes) -> float:
    """How far a row's size is from M, N, K, in doublings."""
    return sum(abs(math.log2(s / max(t, 1))) for s, t in zip(dimensions(size), sizes, strict=True))
