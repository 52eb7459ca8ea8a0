"""A picture of a scheduler at work: what its warps issue, cycle by cycle, and how busy the units behind it are."""

from __future__ import annotations

from matplotlib.collections import PatchCollection
from matplotlib.patches import Patch, Rectangle

from ..model import H200, Chip, percent
from ..model.issue import Slot, instructions, issue
from ..simt import ProductRun
from .diagram import faint
from .picture import GREEN, INK, ORANGE, Picture, count

SETTLED = 2000  # cycles that pass before the first that counts, so that the beginning is over
MEASURED = 4000  # cycles over which the units' shares are taken: many rounds of the loop


def issue_line(run: ProductRun, warps: int = 4, cycles: int = 160, chip: Chip = H200, shown: int = 8) -> Picture:
    """What one scheduler issues while some warps run a kernel's inner loop, and how busy two units are.

    A row for each warp: a square is an instruction in the cycle in which it is issued, the line between two squares
    is waiting. Below it the multiply-add units, and the scheduler's share of the path to local memory.

    Args:
        run: a simulated run of a kernel that computes from local memory.
        warps: among which the scheduler chooses.
        cycles: how many are drawn: those in which the units are busy as much as on average, as nearly as there are any.
        chip: whose schedulers and local memory these are.
        shown: rows of warps at most.
    """
    shown, until = min(shown, warps), SETTLED + MEASURED
    slots = issue(instructions(run), warps, until, chip)
    busy = _busy(slots, SETTLED, until)

    def unlike(first: int) -> float:
        return sum(abs(share - busy[what]) for what, share in _busy(slots, first, first + cycles).items())

    first = min(range(SETTLED, until - cycles + 1, max(1, cycles // 2)), key=unlike)
    slots = [s for s in slots if s.end > first and s.cycle < first + cycles]
    alt = (
        f"Kernel {run.kernel}, {count(warps, 'warp')} on one scheduler: multiply-add units busy "
        f"{percent(busy['multiply-add'])} of the time, path to local memory {percent(busy['load'])}"
    )
    picture = Picture(8, 1.5 + 0.24 * (shown + 2), alt)
    ax = picture.axes_plain()
    colours = {"multiply-add": GREEN, "load": ORANGE}
    rows = [f"warp {w}" for w in range(shown)] + ["multiply-adds", "local memory"]
    for row in range(shown):
        ax.plot([0, cycles], [-row - 0.5] * 2, color=INK, linewidth=0.8, alpha=0.5)
    for what, colour in colours.items():
        mine = [s for s in slots if s.what == what]
        issued = [
            Rectangle((s.cycle - first, -s.warp - 0.85), 1, 0.7) for s in mine if s.cycle >= first and s.warp < shown
        ]
        row = shown + (what == "load")
        # a turn at a time, with a gap, so that one sees how many there are
        work = [Rectangle((s.begin - first, -row - 0.95), s.end - s.begin - 0.1, 0.8) for s in mine]
        ax.add_collection(PatchCollection(issued, facecolor=colour, edgecolor="none"))
        ax.add_collection(PatchCollection(work, facecolor=faint(colour, 0.75), edgecolor="none"))
        ax.text(cycles + 1, -row - 0.55, f"{percent(busy[what])} busy", va="center", color=INK, fontsize=9)
    ax.set_yticks([-row - 0.5 for row in range(len(rows))], rows)
    ax.tick_params(axis="y", length=0)
    ax.set(xlim=(0, cycles), ylim=(-len(rows), 0.1), xlabel="cycles")
    legend = [Patch(color=colours[what], label=words) for what, words in
              (("multiply-add", "multiply-add"), ("load", "local load"))]  # fmt: skip
    ax.legend(handles=legend, frameon=False, labelcolor=INK, fontsize=9, loc="lower left", bbox_to_anchor=(0, 1),
              ncols=2, borderaxespad=0.2, handlelength=1)  # fmt: skip
    words = f"kernel {run.kernel}, {shown} of {count(warps, 'warp')}" if shown < warps else f"kernel {run.kernel}"
    ax.text(cycles, 0.25, f"{words}; gaps are waiting", ha="right", va="bottom", color=INK, fontsize=9)
    return picture


def _busy(slots: list[Slot], first: int, last: int) -> dict[str, float]:
    """The share of the cycles from `first` to `last` in which each unit works."""
    worked = {"multiply-add": 0, "load": 0}
    for s in slots:
        worked[s.what] += max(0, min(s.end, last) - max(s.begin, first))
    return {what: cycles / (last - first) for what, cycles in worked.items()}
