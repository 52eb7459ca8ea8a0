"""The recorded ladders beside their ceilings: what each kernel reached, what it could, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .. import model
from ..caches import cached
from ..ladder import Key, find, in_order
from . import records

CHIPS = {"H200": model.H200, "K40m": model.K40M}
#: M = N = K of the recorded ladders.
SIZE = 4096

#: Settings of the published figures of the K40m where they are not our defaults (the record has
#: none).
PUBLISHED: dict[Key, dict[str, int]] = {
    4: {"WIDTH": 8},
    10: {"TSM": 160, "TSN": 160, "TSK": 16, "WPTM": 10, "WPTN": 10, "WIDTH": 2},
}


@dataclass(frozen=True)
class Allowed:
    """The lowest ceiling of a kernel: the GFLOPS that it allows, the resource that sets it, and all
    ceilings, the lowest first.
    """

    gflops: float
    resource: str
    ceilings: tuple[model.Ceiling, ...] = ()


def allowed(
    kernel: Key,
    params: Mapping[str, int],
    *,
    gflops: float | None = None,
    registers: int | None = None,
    source: str | None = None,
) -> Allowed:
    """What the model allows a kernel, or another text (`source`) in its place, on an H200.

    A rate above the ceiling, of so many `gflops`, shows that the compiler merged loads (see
    `model.explain`); without a rate that is assumed, since no text may be denied what it could
    reach. `registers` are those of a work-item, where they were recorded. Raises ValueError where
    `model.ceilings` does.
    """
    options: dict[str, Any] = {"registers": registers, "source": source}
    if gflops:
        ceilings = model.explain(kernel, params, model.H200, gflops, SIZE, **options).ceilings
    else:
        ceilings = tuple(model.ceilings(kernel, params, model.H200, SIZE, fewest=True, **options))
    return Allowed(ceilings[0].share * model.H200.gflops, ceilings[0].resource, ceilings)


def ladder(chip: str = "H200") -> list[model.Explanation]:
    """Every recorded float32 kernel of a chip, "H200" or "K40m", beside its ceilings; "warp_tiling"
    as "auto" chose it. Raises ValueError for another chip.
    """
    return [rung(number, chip) for number in in_order(_results(chip))]


def rates(chip: str = "H200") -> dict[Key, float]:
    """The recorded GFLOPS of the kernels of `ladder`, by their numbers; ValueError as there."""
    results = _results(chip)
    return {number: results[number]["gflops"] for number in in_order(results)}


@cached(64)
def rung(kernel: Key, chip: str = "H200") -> model.Explanation:
    """One of the `ladder`; ValueError as there, and for a kernel that is not recorded."""
    result = _results(chip).get(kernel)
    if result is None:
        raise ValueError(f"kernel {kernel} is not recorded for {chip}")
    params = result.get("params") or PUBLISHED.get(kernel)
    return model.explain(kernel, params, CHIPS[chip], result["gflops"], SIZE)


def _results(chip: str) -> dict[Key, dict[str, Any]]:
    """The first recorded result of each kernel at `SIZE`."""
    if chip not in CHIPS:
        raise ValueError(f"chip must be one of {', '.join(CHIPS)}, not {chip!r}")
    found: dict[Key, dict[str, Any]] = {}
    for file in records.recorded():
        for r in [*file["results"], *file.get("auto", [])] if chip in file["title"] else ():
            if (r["m"], r["n"], r["k"]) == (SIZE,) * 3 and not find(r["kernel"]).tensor:
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
