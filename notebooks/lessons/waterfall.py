"""What an H200 reached with each idea and without it, and the whole ladder in one picture."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from gemmlab import model
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
from gemmlab.measurement import explained, landscape, records
from gemmlab.opencl.build import HIDDEN


class Variant(NamedTuple):
    """A kernel with or without an idea, or a library, as recorded on an H200.

    Attributes:
        kernel, params: what ran; None for a library.
        gflops, least, most: of the median, the slowest and the fastest launch.
        registers: of a work-item; None where unknown.
        errors: relative to the product, by K.
    """

    title: str
    kernel: Key | None
    params: Mapping[str, int]
    gflops: float
    least: float
    most: float
    registers: int | None
    errors: Mapping[int, float]

    def __str__(self) -> str:
        spread = f"{self.least:,.0f} to {self.most:,.0f}"
        return f"{self.title}: {self.gflops:,.0f} GFLOPS ({spread})"


def variants(record: str = "waterfall", experiment: str | None = None) -> dict[str, Variant]:
    """The recorded variants by title, without those that could not be compiled.

    Args:
        record: "waterfall" for the steps from kernel 10 on, "warpgroups" for kernels 18 and 19 with
            parts switched off, "beyond" for kernels 15 to 17.
        experiment: of "beyond": "warps", "copies", "shares" or "order".
    """
    read = records.read(f"nvidia_h200_{record}")
    rows = read["experiments"][experiment] if experiment else read["ways"]
    found = {}
    for title, row in rows.items():
        if "gflops" in row:
            kernel, rates = row.get("kernel"), (row["gflops"], row["least"], row["most"])
            # of hidden instructions, the compiler's number means nothing
            hidden = kernel is not None and HIDDEN in sources.read(find(kernel).file)
            registers = None if hidden else row.get("registers")
            errors = {int(k): error for k, error in row.get("errors", {}).items()}
            params = row.get("params", {})
            found[title] = Variant(title, kernel, params, *rates, registers, errors)
    return found


def alone() -> dict[str, float]:
    """The best GFLOPS of tensor cores' instructions alone: "mma.sync" and "wgmma"."""
    best: dict[str, float] = {}
    for title, loop in records.read("nvidia_h200_warpgroups")["loops"].items():
        name = title.partition(",")[0]
        best[name] = max(best.get(name, 0.0), loop.get("gflops", 0.0))
    return best


def by_kernel() -> dict[Key, list[Variant]]:
    """The variants of each kernel, the one with its idea first; the others lack it or a part."""
    listed: dict[Key, list[Variant]] = {}
    for variant in variants().values():
        if variant.kernel is not None:
            listed.setdefault(variant.kernel, []).append(variant)
    return {kernel: listed[kernel] for kernel in in_order(listed)}


class Rung(NamedTuple):
    """A kernel of the ladder as recorded at 4096; tensor cores are not modelled (`explained`)."""

    kernel: Key
    params: Mapping[str, int]
    gflops: float
    registers: int | None
    explained: model.Explanation | None = None

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
        """The lowest ceiling of the rung before, if it is higher here, in words; else ""."""
        if before is None or before.explained is None or self.explained is None:
            return ""
        roof = before.explained.roof
        shares = {ceiling.resource: ceiling.share for ceiling in self.explained.ceilings}
        now = shares.get(roof.resource, 0.0)
        if now <= 1.02 * roof.share:
            return ""
        return f"{roof.resource}: {model.percent(roof.share)} to {model.percent(now)}"


def rungs() -> dict[Key, Rung]:
    """Every numbered kernel by its number."""
    rungs: dict[Key, Rung] = {}
    recorded = {kernel: with_idea for kernel, (with_idea, *_) in by_kernel().items()}
    for rung in explained.ladder("H200"):
        if isinstance(rung.kernel, int):
            params = find(rung.kernel).complete(rung.params)
            compiled = recorded.get(rung.kernel) or landscape.rate(rung.kernel, params)
            registers = compiled.registers if compiled else None
            rungs[rung.kernel] = Rung(rung.kernel, params, rung.measured, registers, rung)
    for kernel, step in recorded.items():
        rungs.setdefault(kernel, Rung(kernel, step.params, step.gflops, step.registers))
    return rungs


def draw(
    rates: Mapping[str, float],
    words: Mapping[str, str],
    yardsticks: Mapping[str, float],
) -> Picture:
    """TFLOPS as steps from each rung to the next, with the ceiling that was lifted in `words`."""
    summary = "; ".join(
        f"{name}: {rate / 1000:.1f}, {words.get(name, '')}".rstrip(", ")
        for name, rate in rates.items()
    )
    picture = Picture(
        8, 1.2 + 0.3 * len(rates), f"TFLOPS of each rung on {model.H200.name}. {summary}"
    )
    ax = picture.axes_plain()
    right = ax.get_yaxis_transform()  # x in shares of the axes, y in rows
    for row, (before, now) in enumerate(pairwise([0.0, *rates.values()])):
        low, high = sorted((before / 1000, now / 1000))
        colour = GREEN if now >= before else MAGENTA
        ax.barh(-row, high - low, 0.7, left=low, color=faint(colour, 0.8))
        ax.text(high + 1, -row, f"{now / 1000:.1f}", va="center", color=INK, fontsize=9)
        lifted = words.get(list(rates)[row], "")
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
