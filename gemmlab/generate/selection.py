"""Which kernel `kernel="auto"` takes: a small table by kind of device and size."""

from __future__ import annotations

import json
import math
from itertools import chain

from ..caches import cached
from ..catalog import Key, catalog, sources
from ..opencl.devices import Device

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
    """The device's kind in the table: "nvidia", "gpu" (others); a CPU's by its runtime, and whether
    it is AMD's.
    """
    platform = device.platform.lower()
    if device.kind == "GPU":
        return kind_of(device.platform)
    if "PoCL 3.0" in device.version:
        return "pocl 3.0"
    runtime = "intel" if "intel" in platform else "pocl" if "portable" in platform else "cpu"
    return f"{runtime} on AMD" if "amd" in device.name.lower() and runtime != "cpu" else runtime


def kind_of(platform: str) -> str:
    """The kind of the GPUs of a platform."""
    return "nvidia" if "nvidia" in platform.lower() else "gpu"


#: The ways to treat sizes that are not whole tiles, and the list of the table's rows for each.
#: "auto" has a separate list, found at such sizes among all kernels. Where the sizes suit the
#: kernel as they are, "auto" takes the rows found at such sizes among all kernels, `WHOLE`, or if
#: there are none those for "pad".
EDGES = {"pad": "pad", "guard": "guard", "shift": "shift", "auto": "ragged"}
WHOLE = "whole"

#: What `precision` may be, and the parameters that it means. Each but float32 has a list of rows of
#: its own.
PRECISIONS: dict[str, dict[str, int]] = {
    "float32": {},
    "tf32": {"PARTS": 1, "EVERY": 0, "TENSOR": 1},
    "tf32x3": {"PARTS": 2, "EVERY": 1, "TENSOR": 1},
}

#: What serves where the table has nothing: kernel 3 by padding, 12 by guards, 13 by shifts, tensor
#: cores in TF32.
_OTHERWISE: dict[str, Key] = {
    "pad": 3,
    "guard": 12,
    "shift": 13,
    "tf32": "tensor_cores",
    "tf32x3": "tensor_cores",
}

#: A kernel's number or name, and its parameters as pairs, which can be a key.
Choice = tuple[Key, tuple[tuple[str, int], ...]]


def implied(precision: str, kernel: Key) -> dict[str, int]:
    """The parameters that a precision means, of those that this kernel has."""
    return {
        name: value
        for name, value in PRECISIONS[precision].items()
        if name in catalog[kernel].defaults
    }


@cached(1)
def table() -> dict[str, dict[str, list[dict]]]:
    """``results/auto.json``: by kind and list, rows with "size", "kernel", all "params", and the
    "gflops" once seen.

    A size is that of a cube, or M, N and K of the column-major product. "units" are the compute
    units of the device that a row was found on, where it says so.
    """
    found = json.loads((sources.folder("results") / "auto.json").read_text(encoding="utf-8"))
    lists = (
        WHOLE,
        *EDGES.values(),
        *(name for name, parameters in PRECISIONS.items() if parameters),
    )
    rows = {kind: {name: entry.get(name, []) for name in lists} for kind, entry in found.items()}
    for row in (row for lists in rows.values() for known in lists.values() for row in known):
        # with parameters that came later
        row["params"] = catalog[row["kernel"]].complete(row["params"])
    return rows


def choose(
    device: Device, sizes: tuple[int, int, int], edges: str = "auto", precision: str = "float32"
) -> Choice:
    """The kernel number and parameters for M, N, K of the column-major product: the nearest row
    (see `distance`).

    Raises:
        ValueError: if no kernel of that strategy serves these sizes; the message names one that
            does.
    """
    if precision != "float32":
        chosen = _nearest(device, precision, sizes)
        if chosen is None:
            raise ValueError(
                f"precision={precision!r}: {device} takes no kernel for it; precision='float32' "
                "runs"
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
            f"edges={edges!r} needs at least one tile, and no tile that {device} can take is as "
            f"small as {sizes[1]} rows of a and {sizes[0]} columns of b; edges='pad' and "
            "edges='guard' serve any size"
        )
    if chosen is None:
        raise ValueError(f"edges={edges!r}: no kernel for it fits the limits of {device}")
    return chosen


@cached(4096)
def _nearest(device: Device, name: str, sizes: tuple[int, int, int]) -> Choice | None:
    known = table()
    lists = known.get(kind(device)) or known.get(FALLBACK[kind(device)]) or {}

    def serves(number: Key, params: dict[str, int]) -> bool:
        spec = catalog[number]
        if spec.problems(params, device.limits):
            return False
        return spec.edges != "shift" or all(
            s >= t for s, t in zip(sizes, spec.minimum_sizes(params), strict=True)
        )

    rows = [r for r in lists.get(name, []) if serves(r["kernel"], r["params"])]
    if rows:
        row = min(rows, key=lambda r: distance(r["size"], sizes))
        return row["kernel"], tuple(_scaled(row, device.units).items())
    if name not in _OTHERWISE:
        return None
    spec = catalog[_OTHERWISE[name]]
    for offered in chain([spec.fit(device.limits)], spec.search_space(device.limits)):
        params = {**offered, **PRECISIONS.get(name, {})}
        if serves(spec.number, params):
            return spec.number, tuple(params.items())
    return None


def _scaled(row: dict, units: int) -> dict[str, int]:
    """Scale GROUPS to `units` compute units, keeping the number of work-groups per unit."""
    params, known = row["params"], row.get("units")
    if not known or not params.get("GROUPS"):
        return params
    return {**params, "GROUPS": max(1, round(params["GROUPS"] * units / known))}


def dimensions(size) -> tuple[int, int, int]:
    """M, N, K of a size in the table: a number for a cube, or the three."""
    if isinstance(size, int):
        return size, size, size
    m, n, k = size
    return m, n, k


def distance(size, sizes: tuple[int, int, int]) -> float:
    """How far a row's size is from M, N, K: the doublings of each of the three that lie between,
    added up.
    """
    return sum(abs(math.log2(s / max(t, 1))) for s, t in zip(dimensions(size), sizes, strict=True))
