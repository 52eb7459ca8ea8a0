"""What a scheduler issues, cycle by cycle, for chapters 2, 6 and 15: arithmetic, loads, waiting.

A deliberately small model: one of a multiprocessor's schedulers, warps that run the same inner
loop, one instruction per cycle, instructions in the order of the text. A multiply-add waits for all
earlier loads of its warp. Addresses, jumps and the compiler's order are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.collections import PatchCollection
from matplotlib.patches import Patch, Rectangle

from gemmlab.draw.picture import (
    GREEN,
    INK,
    ORANGE,
    Picture,
    count,
    faint,
    label_rows,
)
from gemmlab.model import H200, Chip, percent
from gemmlab.model.costs import local_turns
from gemmlab.simt import ProductRun
from gemmlab.simt.machine import WARP

FLOAT_BYTES = 4
#: Cycles from a load to its value; Luo and others (2024) measured 29 on an H100.
LOCAL_LATENCY = 30
#: Accesses per scheduler that may wait for local memory before the next one stalls its warp.
QUEUE = 8
#: Cycles before the first that counts, and cycles over which shares are taken.
WARM_UP, MEASURED = 2000, 4000


@dataclass(frozen=True)
class Slot:
    """An instruction of a warp.

    Attributes:
        warp: its number.
        what: "multiply-add" or "load".
        cycle: when it was issued.
        begin, end: when its work is done; of a load, its cycles on the path to local memory.
    """

    warp: int
    what: str
    cycle: int
    begin: int
    end: int


def instructions(run: ProductRun, group: int = 0, warp: int = 0) -> list[tuple[str, int]]:
    """What a warp issues between two barriers in which it computes, in order.

    Returns:
        ("load", turns of local memory) or ("multiply-add", 1); a multiply-add of vectors is one
        instruction per float.

    Raises:
        ValueError: if the kernel reads no local memory.
    """
    phases: dict[int, list[tuple[str, int]]] = {}
    for _, e in run.entries(group):
        lanes = e.mask & (e.wave.items // WARP == warp)
        if not lanes.any():
            continue
        e = e._replace(mask=lanes)
        issued = phases.setdefault(int(e.of(e.phase)[0]), [])
        if e.site.kind == "load" and e.memory and e.memory.space == "local":
            firsts = np.full((1, WARP), -1)
            firsts[0, e.of(e.wave.items) % WARP] = FLOAT_BYTES * e.of(e.at)
            issued.append(("load", local_turns(firsts, FLOAT_BYTES * e.site.width)))
        elif e.site.kind == "multiply-add":
            issued += [("multiply-add", 1)] * e.site.width
    computing = [issued for issued in phases.values() if ("multiply-add", 1) in issued]
    if not computing or not any(what == "load" for what, _ in computing[0]):
        raise ValueError(
            f"kernel {run.kernel} reads no local memory where it computes, so there is nothing to "
            "show"
        )
    return computing[0]


def issue(
    program: Sequence[tuple[str, int]], warps: int = 1, cycles: int = 200, chip: Chip = H200
) -> list[Slot]:
    """Run warps of the same program, again and again, on one scheduler.

    Args:
        program: what `instructions` found.
        warps: the scheduler takes the one that has waited longest.
        cycles: how many to run.
        chip: its schedulers share local memory.

    Raises:
        ValueError: if program is empty, or warps or cycles is less than 1.
    """
    if not program:
        raise ValueError("program is empty")
    if warps < 1 or cycles < 1:
        raise ValueError(f"warps={warps} and cycles={cycles} must be at least 1")
    share = round(chip.lanes / chip.warp / chip.turns)  # cycles per turn for one scheduler
    position, ready = [0] * warps, [0] * warps
    last = [-warps + warp for warp in range(warps)]
    path, slots = 0, []
    for now in range(cycles):
        for w in sorted(range(warps), key=last.__getitem__):
            what, turns = program[position[w] % len(program)]
            if what == "load" and path - now < QUEUE * share:
                begin = max(path, now)
                path = begin + turns * share
                ready[w] = path + LOCAL_LATENCY
                slots.append(Slot(w, what, now, begin, path))
            elif what == "multiply-add" and ready[w] <= now:
                slots.append(Slot(w, what, now, now, now + 1))
            else:
                continue
            position[w], last[w] = position[w] + 1, now
            break
    return slots


def busy(slots: Sequence[Slot], first: int, last: int) -> dict[str, float]:
    """The share of the cycles from `first` to `last` in which each unit works."""
    worked = {"multiply-add": 0, "load": 0}
    for s in slots:
        worked[s.what] += max(0, min(s.end, last) - max(s.begin, first))
    return {what: cycles / (last - first) for what, cycles in worked.items()}


def draw(
    run: ProductRun, warps: int = 4, cycles: int = 160, chip: Chip = H200, shown: int = 8
) -> Picture:
    """What one scheduler issues while warps run a kernel's inner loop, and how busy two units are.

    In a warp's row a square is an instruction, a gap is waiting. Below are the multiply-add units
    and the scheduler's share of the path to local memory.

    Args:
        run: a simulated run of a kernel that computes from local memory.
        warps: among which the scheduler chooses.
        cycles: how many are drawn.
        chip: whose schedulers and local memory these are.
        shown: rows of warps at most.
    """
    shown, until = min(shown, warps), WARM_UP + MEASURED
    slots = issue(instructions(run), warps, until, chip)
    average = busy(slots, WARM_UP, until)
    arithmetic, path = percent(average["multiply-add"]), percent(average["load"])
    alt = (
        f"Kernel {run.kernel}, {count(warps, 'warp')} on one scheduler: multiply-add units busy "
        f"{arithmetic} of the time, path to local memory {path}"
    )
    picture = Picture(8, 1.5 + 0.24 * (shown + 2), alt)
    ax = picture.axes_plain()
    for row in range(shown):
        ax.plot([0, cycles], [-row - 0.5] * 2, color=INK, linewidth=0.8, alpha=0.5)
    for row, what, colour in ((shown, "multiply-add", GREEN), (shown + 1, "load", ORANGE)):
        mine = [
            s for s in slots if s.what == what and s.end > WARM_UP and s.cycle < WARM_UP + cycles
        ]
        issued = [Rectangle((s.cycle - WARM_UP, -s.warp - 0.85), 1, 0.7)
                  for s in mine if s.cycle >= WARM_UP and s.warp < shown]  # fmt: skip
        # with a gap after each, so that they can be counted
        work = [
            Rectangle((s.begin - WARM_UP, -row - 0.95), s.end - s.begin - 0.1, 0.8) for s in mine
        ]
        ax.add_collection(PatchCollection(issued, facecolor=colour, edgecolor="none"))
        ax.add_collection(PatchCollection(work, facecolor=faint(colour, 0.75), edgecolor="none"))
        ax.text(cycles + 1, -row - 0.55, f"{percent(average[what])} busy", va="center", color=INK,
                fontsize=9)  # fmt: skip
    label_rows(ax, [*(f"warp {w}" for w in range(shown)), "multiply-adds", "local memory"], 0.5)
    ax.set(xlim=(0, cycles), ylim=(-shown - 2, 0.1), xlabel="cycles")
    legend = [Patch(color=GREEN, label="multiply-add"), Patch(color=ORANGE, label="local load")]
    ax.legend(handles=legend, frameon=False, labelcolor=INK, fontsize=9, loc="lower left",
              bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2, handlelength=1)  # fmt: skip
    rows = f", {shown} of {count(warps, 'warp')}" if shown < warps else ""
    ax.set_title(f"kernel {run.kernel}{rows}; gaps are waiting", color=INK, fontsize=9, loc="right")
    return picture
