"""The recorded ladder: what each kernel reached, what it could have reached, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .. import model
from ..caches import cached
from ..ladder import Key, find, in_order
from . import records
from .landscape import CHIPS
from .records import Row

#: M = N = K of the recorded ladders.
SIZE = 4096


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


def rungs(chip: str = "H200") -> list[model.Explanation]:
    """Every recorded float32 kernel of a chip, "H200" or "K40m", beside its ceilings; "warp_tiling"
    as "auto" chose it. Raises ValueError for another chip.
    """
    return [rung(kernel, chip) for kernel in in_order(rates(chip))]


def rates(chip: str = "H200") -> dict[Key, float]:
    """The recorded GFLOPS of the kernels of `rungs`. Raises ValueError for another chip."""
    rows = _first_rows(chip)
    return {kernel: rows[kernel].gflops for kernel in in_order(rows)}


@cached(64)
def rung(kernel: Key, chip: str = "H200") -> model.Explanation:
    """A recorded kernel beside its ceilings. Raises ValueError for another chip, and for a kernel
    that is not recorded.
    """
    row = _first_rows(chip).get(kernel)
    if row is None:
        raise ValueError(f"kernel {kernel} is not recorded for {chip}")
    reasons = records.rows(metric="reason", kernel=kernel, device=row.device)
    why = tuple(row.note for row in reasons)
    return model.explain(kernel, row.params, CHIPS[chip], row.gflops, SIZE, reasons=why)


def _first_rows(chip: str) -> dict[Key, Row]:
    """The first recorded rate of each kernel at `SIZE`."""
    if chip not in CHIPS:
        raise ValueError(f"chip must be one of {', '.join(CHIPS)}, not {chip!r}")
    where = {"metric": "GFLOPS", "size": SIZE}
    rows = *records.rows(series="ladder", **where), *records.rows(series="auto", **where)
    found = [row for row in rows if chip in row.device and not find(row.kernel).tensor]
    return {row.kernel: row for row in reversed(found)}


def yardsticks(title: str = "", size: int = SIZE) -> dict[str, float]:
    """Recorded GFLOPS of other libraries by name, measured in the same run as ours, at M = N = K =
    size; `title` is part of the title of the record.
    """
    rows = records.rows(series="side by side", size=size, metric="GFLOPS")
    return {
        str(row.kernel): row.gflops
        for row in rows
        if title in row.title and str(row.kernel).endswith("SGEMM")
    }


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
