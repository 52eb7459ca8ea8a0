"""What an H200 reached with each idea and without it, and the whole ladder in one picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from gemmlab import catalog, model
from gemmlab.draw.picture import (
    GREEN,
    INK,
    MAGENTA,
    ORANGE,
    Picture,
    faint,
    label_rows,
    legend_above,
)
from gemmlab.ladder import Key, find, in_order, sources
from gemmlab.measurement import landscape, records
from gemmlab.measurement import rungs as measured
from gemmlab.measurement.records import Row

from . import cycles


def variants(record: str = "waterfall", **where: Any) -> dict[str, Row]:
    """The recorded rates of variants of kernels, and of libraries, by title.

    Args:
        record: "waterfall" for the steps from kernel 10 on, "warpgroups" for kernels 18 and 19 with
            parts switched off, "beyond" for kernels 15 to 17.
        where: series="warps", "copies", "shares" or "order" of "beyond".
    """
    return records.variants(record=f"nvidia_h200_{record}", metric="GFLOPS", **where)


def errors(variant: str) -> dict[int, float]:
    """Errors relative to the product, by K, of a variant of "warpgroups"."""
    where = {"record": "nvidia_h200_warpgroups", "variant": variant, "metric": "relative error"}
    return {row.k: row.median for row in records.rows(**where)}


def alone() -> dict[str, float]:
    """The best GFLOPS of tensor cores' instructions alone: "mma.sync" and "wgmma"."""
    loops = variants("warpgroups", series="loops")
    return {
        name: max(row.gflops for title, row in loops.items() if title.startswith(name))
        for name in ("mma.sync", "wgmma")
    }


def by_kernel() -> dict[Key, list[Row]]:
    """The variants of each kernel, the one with its idea first; the others lack it or a part."""
    listed: dict[Key, list[Row]] = {}
    for row in variants().values():
        if row.kernel in catalog:
            listed.setdefault(row.kernel, []).append(row)
    return {kernel: listed[kernel] for kernel in in_order(listed)}


class Rung(NamedTuple):
    """A kernel of the ladder as recorded at 4096; those on tensor cores are not `explained`."""

    kernel: Key
    params: Mapping[str, int]
    gflops: float
    registers: int | None
    explained: model.Explanation | None = None  # with ceilings as the chip counted them

    @property
    def name(self) -> str:
        return find(self.kernel).name

    @property
    def lines(self) -> int:
        """Lines of code."""
        return sources.code_lines(sources.read(find(self.kernel).file))

    @property
    def local_memory(self) -> int:
        """Bytes per work-group."""
        return find(self.kernel).local_memory(self.params)

    def lifted(self, before: Rung | None) -> str:
        """The lowest ceiling of the rung before, if it is more than a tenth higher here, in words;
        else "".
        """
        if before is None or before.explained is None or self.explained is None:
            return ""
        roof = before.explained.roof
        shares = {ceiling.resource: ceiling.share for ceiling in self.explained.ceilings}
        now = shares.get(roof.resource, 0.0)
        if now <= 1.1 * roof.share:
            return ""
        return f"{roof.resource}: {model.percent(roof.share)} to {model.percent(now)}"


def rungs() -> dict[Key, Rung]:
    """Every numbered kernel by its number."""
    rungs: dict[Key, Rung] = {}
    with_idea = {kernel: row for kernel, (row, *_) in by_kernel().items()}
    for rung in measured.rungs("H200"):
        if isinstance(rung.kernel, int):
            params = find(rung.kernel).complete(rung.params)
            compiled = with_idea.get(rung.kernel) or landscape.rate(rung.kernel, params)
            registers = compiled and compiled.registers or _counted_registers(rung.kernel)
            explained = cycles.counted(rung)
            rungs[rung.kernel] = Rung(rung.kernel, params, rung.measured, registers, explained)
    for kernel, row in with_idea.items():
        registers = row.registers or _counted_registers(kernel)
        rungs.setdefault(kernel, Rung(kernel, row.params, row.gflops, registers))
    return rungs


def _counted_registers(kernel: Key) -> int | None:
    """Registers of a work-item as the chip's counters say, if they were recorded."""
    try:
        return round(cycles.counts(kernel).totals["registers"])
    except KeyError:
        return None


def draw(
    rates: Mapping[str, float],
    words: Mapping[str, str],
    yardsticks: Mapping[str, float],
    starts: Mapping[str, float],
) -> Picture:
    """TFLOPS as steps, each from the rung that it starts from, with the ceiling that was
    lifted in `words`.
    """
    summary = "; ".join(
        f"{name}: {rate / 1000:.1f}, {words.get(name, '')}".rstrip(", ")
        for name, rate in rates.items()
    )
    picture = Picture(
        8, 1.2 + 0.3 * len(rates), f"TFLOPS of each rung on {model.H200.name}. {summary}"
    )
    ax = picture.axes_plain()
    right = ax.get_yaxis_transform()  # x in shares of the axes, y in rows
    for row, (name, now) in enumerate(rates.items()):
        before = starts.get(name, 0.0)
        low, high = sorted((before / 1000, now / 1000))
        colour = GREEN if now >= before else MAGENTA
        ax.barh(-row, high - low, 0.7, left=low, color=faint(colour, 0.8))
        ax.text(high + 1, -row, f"{now / 1000:.1f}", va="center", color=INK, fontsize=9)
        lifted = words.get(name, "")
        ax.text(1.02, -row, lifted, transform=right, va="center", color=INK, fontsize=9)
    limits = {f"float32 peak of {model.H200.name}": model.H200.gflops, **yardsticks}
    for (name, rate), style in zip(limits.items(), ("--", ":", "-."), strict=False):
        ax.axvline(rate / 1000, color=ORANGE, linewidth=1.5, linestyle=style, zorder=0, label=name)
    legend_above(ax, 3)
    ax.text(1.02, 0.9, "the roof that was lifted", transform=right, va="bottom", color=INK,
            fontsize=9, style="italic")  # fmt: skip
    label_rows(ax, list(rates))
    ax.set(xlim=(0, None), ylim=(-len(rates) + 0.4, 0.8), xlabel="TFLOPS")
    return picture
