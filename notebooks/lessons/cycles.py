"""Where the cycles of a kernel go on an H200, as the chip counted them (Nsight Compute)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from gemmlab import model
from gemmlab.draw.picture import (
    BLUE,
    GREEN,
    GREY,
    INK,
    MAGENTA,
    ORANGE,
    Picture,
    label_rows,
    legend_above,
    pale,
    text_colour,
)
from gemmlab.ladder import Key
from gemmlab.measurement import records

#: What warps wait for, by the reasons that Nsight Compute distinguishes; all others are "other".
WAITS = {
    "local memory": ("short_scoreboard", "mio_throttle"),
    "global memory, L1": ("long_scoreboard", "lg_throttle"),
    "barriers": ("barrier",),
}
#: Neither of these is waiting: a warp that was issued, and one that could have been.
READY = ("selected", "not_selected")
#: What a warp does, by the same reasons, in words.
DOING = {
    "selected": "issues an instruction",
    "not_selected": "is ready, but another warp is chosen",
    "wait": "waits a fixed time after its last instruction",
    "math_pipe_throttle": "waits for a busy arithmetic unit",
    "long_scoreboard": "waits for global memory",
    "short_scoreboard": "waits for local memory",
    "barrier": "waits at a barrier",
    "gmma": "waits for wgmma",
    "dispatch_stall": "is held back by the dispatcher",
}
COLOURS = {
    "multiply-adds": GREEN,
    "other instructions": BLUE,
    "local memory": ORANGE,
    "global memory, L1": MAGENTA,
    "barriers": "#7a3e9d",
    "dispatch stalls": "#d4b106",
    "other waiting": GREY,
}


class Counts(NamedTuple):
    """What an H200 counted for a kernel at 4096 x 4096 x 4096.

    Attributes:
        gflops: the rate, by OpenCL's clock.
        shares: per cent of all cycles in which a multiply-add was issued, another instruction was,
            or none was because all warps waited, by what they waited for.
        stalls: by reason, for how many cycles a warp waits per instruction that it issues.
        totals: the other counters; of those that are per cents of a peak while active, "issue" is
            Nsight Compute's smsp__issue_active, "local_pipe" l1tex__data_pipe_lsu_wavefronts, and
            "tensor_pipe" sm__pipe_tensor_cycles_active.
    """

    gflops: float
    shares: dict[str, float]
    stalls: dict[str, float]
    totals: dict[str, float]


def counts(kernel: Key, change: str = "") -> Counts:
    """What the H200 counted for a kernel, or for one with a change of its text.

    Raises KeyError if there is no record. Cycles without an instruction are divided in proportion
    to how long warps waited for each reason.
    """
    rows = records.rows(record="nvidia_h200_counters", kernel=kernel, variant=change)
    if not rows:
        raise KeyError(f"the H200's counters of kernel {kernel} {change!r} are not recorded")
    totals = {row.metric: row.median for row in rows}
    stalls = {name[6:]: totals.pop(name) for name in [*totals] if name.startswith("stall ")}
    adds = totals["issue"] * totals["multiply_adds"] / totals["instructions"]
    shares = {"multiply-adds": adds, "other instructions": totals["issue"] - adds}
    waits = {reason: warps for reason, warps in stalls.items() if reason not in READY}
    per_warp = (100 - totals["issue"]) / sum(waits.values())
    for name, reasons in {**WAITS, "dispatch stalls": ("dispatch_stall",)}.items():
        shares[name] = per_warp * sum(waits.pop(reason, 0.0) for reason in reasons)
    shares["other waiting"] = per_warp * sum(waits.values())
    return Counts(totals.pop("GFLOPS"), shares, stalls, totals)


def turns(kernel: Key, change: str = "") -> float:
    """Turns of local memory or the L1 cache for a warp's multiply-add, as the H200 counted them."""
    totals = counts(kernel, change).totals
    # active cycles are those of a multiprocessor's four schedulers, which share the path
    cycles = totals["active_cycles"] / model.H200.issued
    return totals["local_pipe"] / 100 * cycles / totals["multiply_adds"]


def instructions(kernel: Key, change: str = "") -> float:
    """Instructions of a warp per multiply-add, addresses and loops included, as counted."""
    totals = counts(kernel, change).totals
    return totals["instructions"] / totals["multiply_adds"]


def counted(rung: model.Explanation) -> model.Explanation:
    """Return a recorded kernel beside its ceilings, those of turns and instructions as the chip
    counted them. Where it did not count, they stay those of the model.
    """
    try:
        local, issue = 0.25 / turns(rung.kernel), 1 / instructions(rung.kernel)
    except KeyError:
        return rung
    shares = {"local memory": local, "L1 cache": local, "instruction issue": issue}
    ceilings = []
    for ceiling in rung.ceilings:
        share = min(1.0, shares.get(ceiling.resource, ceiling.share))
        ceilings.append(replace(ceiling, share=share, low=min(share, ceiling.low)))
    return replace(rung, ceilings=tuple(sorted(ceilings, key=lambda c: c.share)))


def loops(*kernels: Key) -> str:
    """Return what each kernel's inner loop consists of on an H200, a line for each."""
    lines = []
    for kernel in kernels:
        rows = records.rows(series="machine code", kernel=kernel)
        found = {row.metric.removesuffix(" instructions"): row.median for row in rows
                 if row.metric.endswith(" instructions")}  # fmt: skip
        adds = found.pop("FFMA")
        loads = ", ".join(f"{found.get(name, 0):.0f} {name}" for name in ("LDS", "LDS.128"))
        others = sum(n for name, n in found.items() if not name.startswith("LDS"))
        lines.append(f"kernel {kernel}: {adds:.0f} FFMA, {loads}, {others:.0f} others")
    return "\n".join(lines)


def time_of_a_warp(kernel: Key) -> dict[str, float]:
    """What a warp of a kernel does, as shares of its time, the largest first."""
    stalls = counts(kernel).stalls
    everything = sum(stalls.values())
    shares = {words: stalls.get(reason, 0.0) / everything for reason, words in DOING.items()}
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def slots(words: Mapping[Key, str]) -> str:
    """Kernels line by line, each followed by some words: the share of slots that start
    multiply-adds or others, and of empty ones; of these, the share in which warps wait for memory
    or a barrier, and that of dispatch stalls; instructions per multiply-add, and how busy the path
    of L1 cache and local memory is.
    """
    lines = [
        "kernel   multiply-adds   others   empty = waits + dispatch + rest   instructions"
        "   L1/local"
    ]
    for kernel, what in words.items():
        _, shares, _, totals = counts(kernel)
        adds, others, *empty = shares.values()
        waits = sum(shares[name] for name in WAITS)
        lines.append(
            f"{kernel:6} {adds:13.0f} % {others:6.0f} % {sum(empty):5.0f} % {waits:7.0f} % "
            f"{shares['dispatch stalls']:8.0f} % {instructions(kernel):19.2f} "
            f"{totals['local_pipe']:8.0f} %   {what}".rstrip()
        )
    return "\n".join(lines)


def draw(*kernels: Key | tuple[Key, str]) -> Picture:
    """Where the cycles of kernels go, one bar each; a pair adds the name of a change."""
    pairs = [kernel if isinstance(kernel, tuple) else (kernel, "") for kernel in kernels]
    kernels_counted = [counts(*pair) for pair in pairs]
    names = [f"{number}, {change}" if change else f"{number}" for number, change in pairs]
    alt = "; ".join(
        f"kernel {name}: {one.gflops / 1000:.0f} TFLOPS, "
        + ", ".join(f"{what} {share:.0f} %" for what, share in one.shares.items())
        for name, one in zip(names, kernels_counted, strict=True)
    )
    picture = Picture(
        8, 1.35 + 0.36 * len(kernels_counted), f"Where the cycles go on an H200. {alt}"
    )
    ax = picture.axes_plain()
    for row, one in enumerate(kernels_counted):
        left = 0.0
        for what, share in one.shares.items():
            colour = COLOURS[what] if what == "multiply-adds" else pale(COLOURS[what])
            label = what if row == 0 else None
            ax.barh(-row, share, 0.66, left=left, color=colour, label=label)
            if share >= 3.5:
                ax.text(left + share / 2, -row, f"{share:.0f}", ha="center", va="center",
                        color=text_colour(colour), fontsize=9)  # fmt: skip
            left += share
        rate = f"{one.gflops / 1000:.0f} TFLOPS"
        ax.text(101, -row, rate, va="center", color=INK, fontsize=9)
    label_rows(ax, [f"kernel {name}" for name in names])
    ax.set(xlim=(0, 100), ylim=(-len(kernels_counted) + 0.5, 0.5), xlabel="% of all slots")
    legend_above(ax, 4, columnspacing=1, handlelength=1)
    return picture
