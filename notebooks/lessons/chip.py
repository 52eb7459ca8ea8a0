"""One multiprocessor of a GPU, drawn once, in chapter 1: who computes, and how fast floats come."""

from __future__ import annotations

from gemmlab import model

from .flow import BLUE, GREY, TIGHT, WHITE, WIDTH, Drawing, box, page, text

HEIGHT, SCHEDULERS = 408, 4
FLOAT_BYTES = 4


class Multiprocessor(Drawing):
    """A multiprocessor: schedulers, registers, arithmetic, and the memories behind them."""

    def __init__(self, chip: model.Chip):
        self.chip = chip
        self.lanes = int(chip.lanes) // SCHEDULERS
        self.warps = int(chip.work_items // chip.warp) // SCHEDULERS
        self.from_l1 = chip.warp * chip.turns
        self.from_l2 = chip.l2_bytes / FLOAT_BYTES / chip.units
        self.from_dram = chip.bandwidth / chip.ghz / FLOAT_BYTES / chip.units
        self.alt = (
            f"One of {chip.units} multiprocessors of {chip.name}: {SCHEDULERS} schedulers, each "
            f"with up to {self.warps} warps, {chip.registers // SCHEDULERS:,} registers and "
            f"{self.lanes} multiply-adders; it starts one instruction per cycle. L1 cache and "
            f"local memory deliver {self.from_l1:.0f} floats per cycle, the L2 cache "
            f"{self.from_l2:.0f}, DRAM {self.from_dram:.0f}."
        )

    def svg(self) -> str:
        chip, parts = self.chip, []
        title = f"one multiprocessor of an {chip.name.removeprefix('NVIDIA ')}, of {chip.units}"
        parts.append(
            f'<rect x="6" y="24" width="{WIDTH - 12}" height="280" rx="10" fill="none" '
            f'stroke="{GREY}" stroke-width="1.5"/>'
        )
        parts.append(text(WIDTH / 2, 16, title, 15, GREY, bold=True))
        for number in range(SCHEDULERS):
            parts.append(self._quarter(18 + 213 * number))
        parts += [
            box(18, 262, WIDTH - 36, 32),
            text(WIDTH / 2, 283, "L1 cache and local memory, shared by all four", 13.5, bold=True),
            _arrow(WIDTH / 2, 262, 204, f"{self.from_l1:.0f} floats per cycle, for all", TIGHT),
            box(18, 340, 414, 32),
            text(225, 361, "L2 cache, shared by all multiprocessors", 13.5, bold=True),
            _arrow(225, 340, 306, f"{self.from_l2:.0f} floats per cycle", BLUE),
            box(WIDTH - 432, 340, 414, 32),
            text(WIDTH - 225, 361, "DRAM: global memory", 13.5, bold=True),
            f'<path d="M{WIDTH - 432} 356H434" stroke="{BLUE}" stroke-width="5"/>',
            text(WIDTH / 2, 394, f"DRAM to L2: {self.from_dram:.0f} floats per cycle and "
                  "multiprocessor", 12.5, GREY),
        ]  # fmt: skip
        return page(HEIGHT, self.alt, *parts)

    def _quarter(self, x: float) -> str:
        """A scheduler with its registers and its multiply-adders, as small squares."""
        middle = x + 101
        parts = [
            box(x, 36, 202, 50),
            text(middle, 56, "scheduler", 13.5, bold=True),
            text(middle, 75, f"{self.warps} warps, 1 instruction a cycle", 12),
            box(x, 94, 202, 32),
            text(middle, 115, f"{self.chip.registers // SCHEDULERS:,} registers", 13),
            box(x, 134, 202, 62, BLUE),
            text(middle, 188, f"{self.lanes} multiply-adders", 13, bold=True),
        ]
        for lane in range(self.lanes):
            left, top = x + 13 + lane % 16 * 11, 142 + lane // 16 * 14
            parts.append(f'<rect x="{left}" y="{top}" width="8" height="9" fill="{WHITE}"/>')
        return "".join(parts)


def _arrow(x: float, start: float, end: float, words: str, colour: str) -> str:
    """An arrow upwards, with its label to the right."""
    return (
        f'<path d="M{x - 7} {start}V{end + 10}H{x - 13}L{x} {end - 4}L{x + 13} {end + 10}H{x + 7}'
        f'V{start}Z" fill="{colour}"/>' + text(x + 22, start - 9, words, 13, GREY, anchor="start")
    )
