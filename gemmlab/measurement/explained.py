"""The recorded ladders beside their ceilings: what each kernel reached, what it could, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import model
from ..caches import cached
from ..catalog import Key, find, in_order
from . import records

CHIPS = {"H200": model.H200, "K40m": model.K40M}

#: Settings of the published figures of the K40m where they are not our defaults (the record has
#: none).
PUBLISHED: dict[Key, dict[str, int]] = {
    4: {"WIDTH": 8},
    10: {"TSM": 160, "TSN": 160, "TSK": 16, "WPTM": 10, "WPTN": 10, "WIDTH": 2},
}


@dataclass(frozen=True)
class Allowed:
    """The lowest ceiling of a kernel: the GFLOPS that it allows, and the resource that sets it."""

    gflops: float
    resource: str


def allowed(
    kernel: Key,
    params: Mapping[str, int],
    *,
    chip: str = "H200",
    size: int = 4096,
    gflops: float | None = None,
    registers: int | None = None,
    source: str | None = None,
) -> Allowed:
    """What the model allows a kernel, or a text in its place, on a chip.

    Args:
        kernel, params: which kernel, with which parameters.
        chip: the title of a recorded device.
        size: M = N = K.
        gflops: how fast it was there. A rate above the ceiling shows that the compiler merged
            loads (see `model.explain`); without a rate it is assumed, since no text may be denied
            what it could reach.
        registers: that the compiler gave each work-item, where that was recorded.
        source: another text to count in the kernel's place.

    Raises:
        ValueError: if the model knows no chip of this title, and where `model.ceilings` raises it.
    """
    described = next((known for part, known in CHIPS.items() if part in chip), None)
    if described is None:
        raise ValueError(
            f"chip must be the title of a device with {' or '.join(CHIPS)} in it, not {chip!r}"
        )
    options: dict[str, Any] = {"registers": registers, "source": source}
    if gflops:
        roof = model.explain(kernel, params, described, gflops, size, **options).roof
    else:
        roof = model.ceilings(kernel, params, described, size, fewest=True, **options)[0]
    return Allowed(roof.share * described.gflops, roof.resource)


def ladder(chip: str = "H200", size: int = 4096) -> list[model.Explanation]:
    """Every recorded float32 kernel of a chip beside its ceilings; "warp_tiling" as "auto" chose
    it.

    Args:
        chip: "H200" or "K40m".
        size: M = N = K of the record.

    Raises:
        ValueError: for another chip, or if nothing is recorded at this size.
    """
    rungs = [rung(number, chip, size) for number in in_order(_results(chip, size))]
    if not rungs:
        raise ValueError(f"nothing is recorded for {chip} at size {size}")
    return rungs


def rates(chip: str = "H200", size: int = 4096) -> dict[Key, float]:
    """The recorded GFLOPS of the kernels of `ladder`, by their numbers; empty if nothing is
    recorded at this size.

    Raises:
        ValueError: for another chip.
    """
    results = _results(chip, size)
    return {number: results[number]["gflops"] for number in in_order(results)}


def lifted(before: model.Explanation, after: model.Explanation) -> model.Ceiling | None:
    """The lowest ceiling of a kernel if it is higher for the kernel after it: the roof that this
    step lifted.

    Returns:
        The ceiling of the same resource for `after`, or None if it is not higher.
    """
    now = next((c for c in after.ceilings if c.resource == before.roof.resource), None)
    return now if now and now.share > 1.02 * before.roof.share else None


@cached(64)
def rung(kernel: Key, chip: str = "H200", size: int = 4096) -> model.Explanation:
    """One of the `ladder`.

    Raises:
        ValueError: as there, or if this kernel is not recorded.
    """
    result = _results(chip, size).get(kernel)
    if result is None:
        raise ValueError(f"kernel {kernel} is not recorded for {chip} at size {size}")
    params = result.get("params") or PUBLISHED.get(kernel)
    return model.explain(kernel, params, CHIPS[chip], result["gflops"], size)


def roofline(
    kernels: Sequence[Key], chip: str = "H200", size: int = 4096
) -> tuple[model.Peaks, dict[str, tuple[float, float]], str]:
    """What `draw.plot.roofline` draws of recorded kernels: the chip's peaks, the kernels below
    them, and a title.

    The peaks are those of the data sheet; a kernel has (operations per byte that it asks for,
    GFLOPS).

    Args:
        kernels: at least one.
        chip: "H200" or "K40m".
        size: M = N = K of the record.

    Raises:
        ValueError: as `rung`.
    """
    points = {}
    for kernel in kernels:
        found = rung(kernel, chip, size)
        asked = model.requested_bytes(kernel, size, size, size, dict(found.params or {}))
        points[f"kernel {kernel}"] = (
            model.intensity(model.flops(size, size, size), asked),
            found.measured,
        )
    known = CHIPS[chip]
    return known.peaks, points, f"{known.name}, recorded at {size} x {size} x {size}"


def parts(kernel: int) -> dict[str, float]:
    """GFLOPS on an H200 of texts that do only a part of a kernel's work, and so are wrong.

    Returns:
        "as it is"; "loaded once", where all steps compute with the first tiles (barriers stay);
        "computed twice", with each tile; and from how much longer that takes, "computing alone".

    Raises:
        KeyError: if this kernel is not among those recorded, 3, 4, 6 and 7.
    """
    return records.read("nvidia_h200_experiments")["parts of a kernel: GFLOPS"][f"kernel {kernel}"]


def merged_loads() -> dict[str, float]:
    """GFLOPS of kernel 3 on an H200 where its compiler could merge loads of neighbours, and where
    it could not.
    """
    record = records.read("nvidia_h200_ceilings")
    opencl, cuda = record["kernel 3 in OpenCL"], record["through CUDA"]
    return {
        "OpenCL, as it is": opencl["as it is"]["gflops"],
        "OpenCL, tiles declared as aligned(16)": opencl["aligned(16)"]["gflops"],
        "CUDA, as it is": cuda["kernel 3"]["gflops"],
        "CUDA, loop of k not unrolled": cuda["kernel 3, unroll 1"]["gflops"],
    }


def _results(chip: str, size: int) -> dict[Key, dict]:
    """The first recorded result of each kernel."""
    if chip not in CHIPS:
        raise ValueError(f"chip must be one of {', '.join(CHIPS)}, not {chip!r}")
    found: dict[Key, dict] = {}
    for file in records.recorded():
        for r in [*file["results"], *file.get("auto", [])] if chip in file["title"] else ():
            if (r["m"], r["n"], r["k"]) == (size,) * 3 and not find(r["kernel"]).tensor:
                found.setdefault(r["kernel"], r)
    return found


def table(rungs: list[model.Explanation]) -> str:
    """Ceiling, measured, gap as a table in Markdown, and below it what is known of the gaps."""
    rows = [
        f"| kernel | lowest ceiling on {rungs[0].chip.name} | allows | the next one | measured | "
        "gap | note |",
        "|---:|---|---:|---|---:|---:|---|",
    ]
    notes: dict[str, str] = {}  # each once, with its letter
    for r in rungs:
        second = r.ceilings[1]
        further = f"{second.resource} {model.percent(second.share)}"
        letters = [notes.setdefault(why, chr(ord("a") + len(notes))) for why in r.why]
        rows.append(
            f"| {r.kernel} | {r.roof.resource} | {model.percent(r.roof.share)} | "
            f"{further if second.share < 0.995 else 'none below 100 %'} | "
            f"{model.percent(r.share)} | {100 * r.gap:.0f} % | {', '.join(letters)} |"
        )
    listed = [f"- ({letter}) {why}" for why, letter in notes.items()]
    return "\n".join([*rows, "", *listed]).rstrip()
