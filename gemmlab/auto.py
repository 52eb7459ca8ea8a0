"""Which kernel `kernel="auto"` takes: a small table by kind of device and size."""

from __future__ import annotations

import json
import math
from functools import cache, lru_cache

from . import sources
from .catalog import catalog
from .device import Device

#: Kinds of devices with rows of their own in the table, and where the others look.
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


def kind(device: Device) -> str:
    """The device's kind in the table: "nvidia", "gpu" (others); a CPU's by its runtime, and whether it is AMD's."""
    platform = device.platform.lower()
    if device.kind == "GPU":
        return "nvidia" if "nvidia" in platform else "gpu"
    if "PoCL 3.0" in device.version:
        return "pocl 3.0"
    runtime = "intel" if "intel" in platform else "pocl" if "portable" in platform else "cpu"
    return f"{runtime} on AMD" if "amd" in device.name.lower() and runtime != "cpu" else runtime


#: The ways to treat sizes that are no whole tiles, and the list of the table's rows for each. For "auto" a list of
#: its own, found at such sizes among all kernels. Where the sizes suit the kernel as they are, "auto" takes the rows
#: found at such sizes among all kernels, `WHOLE`, or if there are none those for "pad".
EDGES = {"pad": "rows", "guard": "guard", "shift": "shift", "auto": "awkward"}
WHOLE = "whole"

#: What `precision` may be, and the parameters that it means. Each but float32 has a list of rows of its own.
PRECISIONS = {
    "float32": {},
    "tf32": {"PARTS": 1, "EVERY": 0, "TENSOR": 1},
    "tf32x3": {"PARTS": 2, "EVERY": 1, "TENSOR": 1},
}


def fixed(precision: str, kernel: int) -> dict[str, int]:
    """The parameters that a precision means, of those that this kernel has."""
    return {name: value for name, value in PRECISIONS[precision].items() if name in catalog[kernel].defaults}


@cache
def table() -> dict[str, dict[str, list[dict]]]:
    """``results/auto.json``: by kind and list, rows with "size", "kernel", all "params", and the "gflops" once seen.

    A size is that of a cube, or M, N and K of the column-major product. "units" are the compute units of the device
    that a row was found on, where it says so.
    """
    found = json.loads((sources.folder("results") / "auto.json").read_text(encoding="utf-8"))
    lists = (WHOLE, *EDGES.values(), *(name for name, fixed in PRECISIONS.items() if fixed))
    rows = {kind: {name: entry.get(name, []) for name in lists} for kind, entry in found.items()}
    for row in (row for lists in rows.values() for known in lists.values() for row in known):
        row["params"] = catalog[row["kernel"]].complete(row["params"])  # with parameters that came later
    return rows


def choose(
    device: Device, sizes: tuple[int, int, int], edges: str = "auto", precision: str = "float32"
) -> tuple[int, tuple]:
    """The kernel number and parameters for M, N, K of the column-major product: the nearest row (see `distance`).

    Raises:
        ValueError: if no kernel of that strategy serves these sizes; the message names one that does.
    """
    if precision != "float32":
        return _nearest(device, precision, sizes)
    if edges == "auto":
        number, settings = _nearest(device, WHOLE, sizes) or _nearest(device, "rows", sizes)
        whole = catalog[number].suits(*sizes, dict(settings))
        return (number, settings) if whole else _nearest(device, "awkward", sizes) or (number, settings)
    chosen = _nearest(device, EDGES[edges], sizes)
    if chosen is None:
        raise ValueError(
            f"edges={edges!r} needs at least one tile, and no tile that {device} can take is as small as "
            f"{sizes[1]} rows of a and {sizes[0]} columns of b; edges='pad' and edges='guard' serve any size"
        )
    return chosen


#: What serves where the table has nothing: kernel 3 by padding, 12 by guards, 13 by shifts, 16 in TF32.
_OTHERWISE = {"rows": 3, "guard": 12, "shift": 13, "tf32": 16, "tf32x3": 16}


@lru_cache(maxsize=4096)
def _nearest(device: Device, name: str, sizes: tuple[int, int, int]) -> tuple[int, tuple] | None:
    known = table()
    lists = known.get(kind(device)) or known.get(FALLBACK[kind(device)]) or {}

    def serves(number: int, params: dict[str, int]) -> bool:
        spec = catalog[number]
        if spec.problems(params, device.limits):
            return False
        return spec.edges != "shift" or all(s >= t for s, t in zip(sizes, spec.least(params), strict=True))

    rows = [r for r in lists.get(name, []) if serves(r["kernel"], r["params"])]
    if rows:
        row = min(rows, key=lambda r: distance(r["size"], sizes))
        return row["kernel"], tuple(_scaled(row, device.units).items())
    if name not in _OTHERWISE:
        return None
    spec = catalog[_OTHERWISE[name]]
    for params in (spec.fit(device.limits), *spec.offered(device.limits)):
        params = {**params, **PRECISIONS.get(name, {})}
        if serves(spec.number, params):
            return spec.number, tuple(params.items())
    return None


def _scaled(row: dict, units: int) -> dict[str, int]:
    """A row's parameters for a device of so many compute units: work-groups that share all tiles are as many each."""
    params, known = row["params"], row.get("units")
    if not known or not params.get("GROUPS"):
        return params
    return {**params, "GROUPS": max(1, round(params["GROUPS"] * units / known))}


def dimensions(size) -> tuple[int, int, int]:
    """M, N, K of a size in the table: a number for a cube, or the three."""
    return (size,) * 3 if isinstance(size, int) else tuple(size)


def distance(size, sizes: tuple[int, int, int]) -> float:
    """How far a row's size is from M, N, K: the doublings of each of the three that lie between, added up."""
    return sum(abs(math.log2(s / max(t, 1))) for s, t in zip(dimensions(size), sizes, strict=True))
