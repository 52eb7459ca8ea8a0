"""The table of choices, ``results/choice.json``: what was measured, by kind of device.

An entry has up to three sections. "model" holds the constants of `cost` for kernels of the
catalog, and the fastest of them at common sizes. "kernels" holds a list of rows for each way to
treat edges: the fastest kernel at some size. "tiles" holds the constants of generated kernels, and
AutoGEMM's rules for chapter 14.
"""

from __future__ import annotations

import json
import math
from typing import Any

from ..caches import cached
from ..catalog import Key, catalog, sources
from ..opencl.devices import Device

Sizes = tuple[int, int, int]
#: A kernel's number or name, and all of its parameters as pairs: a key for caches.
Choice = tuple[Key, tuple[tuple[str, int], ...]]

#: The ways to treat edges, each with the kernel that runs where its list has no row.
EDGES: dict[str, Key] = {"pad": 3, "guard": 12, "shift": 13}
#: The parameters that a precision implies.
IMPLIED: dict[str, dict[str, int]] = {
    "float32": {},
    "tf32": {"PARTS": 1, "EVERY": 0, "TENSOR": 1},
    "tf32x3": {"PARTS": 2, "EVERY": 1, "TENSOR": 1},
}


def kind(device: Device) -> str:
    """The device's kind: a GPU's by its vendor, another device's by its runtime."""
    if device.kind == "GPU":
        return kind_of(device.platform)
    return "intel" if "intel" in device.platform.lower() else "pocl"


def kind_of(platform: str) -> str:
    """The kind of a platform's GPUs."""
    return "nvidia" if "nvidia" in platform.lower() else "gpu"


@cached(1)
def table() -> dict[str, Any]:
    """The whole file."""
    return json.loads((sources.folder("results") / "choice.json").read_text(encoding="utf-8"))


def section(kind: str, name: str) -> dict[str, Any]:
    """A section of a kind's entry; NVIDIA's for other GPUs, of which none was measured."""
    entries = table()
    found = entries.get(kind) or entries.get("nvidia" if kind == "gpu" else kind, {})
    return found.get(name, {})


def kernel_rows(kind: str, edges: str) -> list[dict[str, Any]]:
    """The rows for a way to treat edges: "size" (of a cube, or M, N and K of a column-major
    product), "kernel", all "params", and "gflops".
    """
    return [
        {**row, "params": catalog[row["kernel"]].complete(row["params"])}
        for row in section(kind, "kernels").get(edges, [])
    ]


def nearest(device: Device, sizes: Sizes, edges: str) -> Choice:
    """The kernel of the row whose size is nearest to M, N, K of a column-major product. Raises
    ValueError if the device supports no kernel for `edges` at these sizes.
    """

    def supports(number: Key, params: dict[str, int]) -> bool:
        spec = catalog[number]
        if spec.problems(params, device.limits):
            return False
        least = spec.minimum_sizes(params)
        return edges != "shift" or all(s >= t for s, t in zip(sizes, least, strict=True))

    known = kernel_rows(kind(device), edges)
    rows = [row for row in known if supports(row["kernel"], row["params"])]
    if rows:
        row = min(rows, key=lambda each: distance(each["size"], sizes))
        return row["kernel"], tuple(row["params"].items())
    spec = catalog[EDGES[edges]]
    params = spec.fit(device.limits, sizes if edges == "shift" else None)
    if supports(spec.number, params):
        return spec.number, tuple(params.items())
    if edges == "shift":
        raise ValueError(
            f"edges={edges!r} needs at least one tile, and no tile that {device} supports is as "
            f"small as {sizes[1]} rows of a and {sizes[0]} columns of b; edges='pad' and "
            "edges='guard' support any size"
        )
    raise ValueError(f"edges={edges!r}: no kernel for it fits the limits of {device}")


def implied(precision: str, kernel: Key) -> dict[str, int]:
    """The parameters that a precision implies, of those that this kernel has."""
    defaults = catalog[kernel].defaults
    return {name: value for name, value in IMPLIED[precision].items() if name in defaults}


def dimensions(size: Any) -> Sizes:
    """M, N, K of a row's size: a number for a cube, or the three."""
    if isinstance(size, int):
        return size, size, size
    m, n, k = size
    return m, n, k


def distance(size: Any, sizes: Sizes) -> float:
    """How far a row's size is from M, N, K, in doublings."""
    return sum(abs(math.log2(s / max(t, 1))) for s, t in zip(dimensions(size), sizes, strict=True))
