"""Charts: the roofline (chapter 0), the ladder (11), precisions (18), ceilings (21)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullLocator

from gemmlab import catalog, model
from gemmlab.draw import plot
from gemmlab.draw.picture import (
    BLUE,
    GREEN,
    INK,
    MAGENTA,
    ORANGE,
    Picture,
    brief,
    faint,
    label_rows,
    legend_above,
    lines,
    short,
)
from gemmlab.generate.candidates import Sizes
from gemmlab.ladder import Key, in_order
from gemmlab.measurement import records
from gemmlab.measurement.records import Row

#: The axes of every roofline: operations per byte, and per cent of the peak.
INTENSITIES, SHARES = (1 / 8, 512), (0.2, 200)
#: Precisions of `matmul`: colour and marker.
PRECISIONS = {"float32": (BLUE, "o"), "tf32x3": (GREEN, "D"), "tf32": (ORANGE, "^")}
LIBRARY = "cuBLAS SGEMM"


def ladders(
    kernels: Iterable[Key] = catalog, only: tuple[str, ...] = ("",)
) -> dict[str, dict[Key, float]]:
    """The best recorded GFLOPS of these kernels, {title of the record: {kernel: GFLOPS}}; the
    fastest device comes first.

    A kernel that was not recorded by itself gets its best result where "auto" selected it, with M
    up to 4096. Records whose title contains no word of `only` are left out.
    """
    best: dict[str, dict[Key, float]] = {}
    alone = records.rows(series="ladder", metric="GFLOPS")
    kernels_alone = {row.kernel for row in alone}
    chosen = records.rows(series="auto", metric="GFLOPS")
    for row in [*alone, *(r for r in chosen if r.m <= 4096 and r.kernel not in kernels_alone)]:
        if row.kernel in kernels and any(word in row.title for word in only):
            ladder = best.setdefault(row.title, {})
            ladder[row.kernel] = max(ladder.get(row.kernel, 0.0), row.gflops)
    return dict(sorted(best.items(), key=lambda item: -max(item[1].values())))


def beside_cublas() -> dict[str, float]:
    """The rate of what "auto" chooses divided by that of cuBLAS SGEMM, recorded together on an
    H200, by "M x N x K".
    """
    rates: dict[str, dict[bool, float]] = {}
    where = {"record": "nvidia_h200_cublas", "series": "side by side", "precision": "float32"}
    for row in records.rows(**where):
        if row.kernel in catalog or row.kernel == "cuBLAS SGEMM":
            sizes = f"{row.m} x {row.n} x {row.k}"
            rates.setdefault(sizes, {})[row.kernel in catalog] = row.gflops
    return {sizes: pair[True] / pair[False] for sizes, pair in rates.items()}


def roofline(
    peaks: model.Peaks, points: Mapping[str, tuple[float, float]], title: str = ""
) -> Picture:
    """The roofline of a device in per cent of its peak, and programs below it: operations
    per byte and GFLOPS by name. All rooflines have the same axes, so devices can be compared.

    Source: Williams, Waterman and Patterson, Roofline (Communications of the ACM 52(4), 2009).
    """
    summary = "; ".join(
        f"{name}: {x:.2g} operations per byte, {y / peaks.gflops:.1%} of the peak"
        for name, (x, y) in points.items()
    )
    ridge = model.ridge(peaks)
    picture = Picture(7, 3.4, f"Roofline of {title or 'a device'}. {summary}")
    ax = picture.axes_plain()
    low, high = INTENSITIES
    ax.loglog([low, ridge, high], [100 * low / ridge, 100, 100], color=INK, linewidth=2)
    words = f"{short(peaks.gflops)} GFLOPS, {short(peaks.bandwidth)} GB/s: ridge at {brief(ridge)}"
    ax.annotate(words, (ridge, 100), (-4, 5), textcoords="offset points", ha="center", color=INK,
                fontsize=9)  # fmt: skip
    for name, (x, y) in points.items():
        share, roof = (100 * rate / peaks.gflops for rate in (y, model.roofline(peaks, x)))
        ax.plot([x, x], [share, roof], color=MAGENTA, linewidth=1, linestyle=":")
        ax.plot([x], [share], "o", color=MAGENTA, markersize=8)
        ax.annotate(f"{name}: {model.percent(share / 100)}", (x, share), (8, -3),
                    textcoords="offset points", color=INK, fontsize=9)  # fmt: skip
    ax.set(xlabel="floating-point operations per byte", ylabel="% of the peak", ylim=SHARES)
    ax.set_xticks([0.25, 1, 4, 16, 64, 256], ["1/4", "1", "4", "16", "64", "256"])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.set_title(title, color=INK, fontsize=9, loc="left")
    return picture


def ladder(
    series: Mapping[str, Mapping[Key, float]],
    yardsticks: Mapping[str, float] | None = None,
) -> Picture:
    """GFLOPS by kernel on a logarithmic scale: a line for each series, such as a device.

    The first line has numbers. `yardsticks`, such as a library, are horizontal lines.
    """
    yardsticks = yardsticks or {}
    summary = [f"{name}: {len(values)} kernels" for name, values in series.items()]
    summary += [f"{name}: {value:,.0f}" for name, value in yardsticks.items()]
    picture = Picture(7, 3.6, "GFLOPS by kernel. " + "; ".join(summary))
    ax, styles = picture.axes_plain(), plot.styles(series)
    kernels = in_order({kernel for values in series.values() for kernel in values})
    positions = {kernel: x for x, kernel in enumerate(kernels)}
    for number, (name, values) in enumerate(series.items()):
        style, colour = styles[name]
        xs = [positions[kernel] for kernel in in_order(values)]
        ys = [values[kernel] for kernel in in_order(values)]
        ax.semilogy(xs, ys, style, color=colour, label=name)
        for x, y in zip(xs, ys, strict=True) if number == 0 else ():
            words = f"{y / 1000:.1f}k" if y >= 10_000 else short(y)
            ax.annotate(words, (x, y), (0, 6), textcoords="offset points", ha="center", color=INK,
                        fontsize=8)  # fmt: skip
    for style, (name, value) in zip(itertools.cycle((":", "-.")), yardsticks.items(), strict=False):
        label = f"{name}: {value / 1000:.1f}k"
        ax.axhline(value, color=INK, linewidth=1, linestyle=style, label=label)
    ax.set_xticks(range(len(kernels)), [plot.tick(kernel) for kernel in kernels])
    for below in ax.get_xticklabels():
        if not below.get_text().isdigit():  # names are wider than the room below a kernel
            below.set(rotation=90, linespacing=0.9)
    ax.set(xlabel="kernel", ylabel="GFLOPS")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    legend_above(ax)
    ax.margins(y=0.2)
    return picture


def bars(ceilings: Sequence[model.Ceiling], title: str) -> Picture:
    """What each resource allows a kernel, as bars; `title` names kernel and chip."""
    words = {}
    for c in ceilings:
        low = "" if c.low == c.share else f"{model.percent(c.low)} to "
        words[c.resource] = low + model.percent(c.share)
    phrases = "; ".join(f"{resource} {allowed}" for resource, allowed in words.items())
    legend = [
        Patch(color=faint(ORANGE, 0.8), label="the lowest ceiling"),
        Patch(color=faint(BLUE, 0.8), label="the others"),
    ]
    if any(c.low < c.share for c in ceilings):
        legend.append(Patch(color=faint(BLUE, 0.35), label="if caches, overlap or vectors help"))
    picture = Picture(8, 1.3 + 0.36 * len(ceilings), f"{title}: {phrases}")
    ax = picture.axes_plain()
    lowest = min(ceilings, key=lambda c: (c.share, c.low))
    for row, c in enumerate(ceilings):
        colour = ORANGE if c is lowest else BLUE
        ax.barh(-row, 100 * c.share, 0.62, color=faint(colour, 0.35 if c.low < c.share else 0.8))
        ax.barh(-row, 100 * c.low, 0.62, color=faint(colour, 0.8))
        ax.text(100 * c.share + 0.8, -row, words[c.resource], va="center", color=INK, fontsize=9)
    label_rows(ax, list(words))
    ax.set(xlim=(0, 118), xlabel="% of the chip's multiply-adds")
    ax.set_xticks(range(0, 101, 20))
    ax.set_title(title, color=INK, fontsize=10, loc="left", pad=24)
    legend_above(ax, len(legend), handles=legend, columnspacing=1.2, handlelength=1.2)
    return picture


def precisions() -> Picture:
    """The rate of `matmul` in three precisions as a percentage of cuBLAS SGEMM's, by size, as
    recorded on an H200; the errors at the largest size are in the legend.
    """
    where = {"record": "nvidia_h200_cublas"}
    recorded: dict[
        tuple[str, bool], dict[Sizes, Row]
    ] = {}  # by precision, and whether it is cuBLAS
    for row in records.rows(series="side by side", **where):
        if row.kernel != "CLBlast SGEMM":
            cublas = row.kernel == LIBRARY
            recorded.setdefault((row.precision, cublas), {})[row.m, row.n, row.k] = row
    library = recorded["float32", True]
    title = next(iter(library.values())).title
    sizes = [str(row.size or f"{row.m} x {row.n} x {row.k}") for row in library.values()]
    percent = {
        name: [
            100 * recorded[name, False][size].gflops / row.gflops for size, row in library.items()
        ]
        for name in PRECISIONS
    }
    by_size, phrases = [*zip(*percent.values(), strict=True)], []
    for size, rates in zip(sizes, by_size, strict=True):
        named = zip(percent, rates, strict=True)
        phrases.append(f"{size}: " + ", ".join(f"{name} {rate:.0f}%" for name, rate in named))
    alt = f"Share of cuBLAS SGEMM's rate on {title}. {'; '.join(phrases)}"
    picture = Picture(6.8, 1.2 + 0.24 * len(sizes), alt)
    ax, heights = picture.axes_plain(), [-row for row in range(len(sizes))]
    errors = records.rows(series="errors", variant="normal", **where)
    largest = max(row.m * row.n * row.k for row in errors)
    error = {
        (row.precision, row.kernel): row.median
        for row in errors
        if row.m * row.n * row.k == largest
    }
    spans = zip(map(min, by_size), map(max, by_size), heights, strict=True)
    lines(ax, [[(low, y), (high, y)] for low, high, y in spans], linewidth=0.8, zorder=0)
    for name, (colour, marker) in PRECISIONS.items():
        label = f"{name}, error {error[name, 'matmul']:.1e}"
        ax.plot(percent[name], heights, marker, color=colour, markersize=7, label=label)
    label = f"cuBLAS, error {error['float32', LIBRARY]:.1e}"
    ax.axvline(100, color=INK, linestyle=":", label=label)
    label_rows(ax, sizes)
    ax.set(xlim=(0, None), ylim=(-len(sizes) + 0.4, 0.6), xlabel="% of cuBLAS SGEMM")
    legend_above(ax)
    return picture
