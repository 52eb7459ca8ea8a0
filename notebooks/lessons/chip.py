"""One multiprocessor of a GPU, drawn once, in chapter 1: who computes, and how fast floats come."""

from __future__ import annotations

from gemmlab import model

from .flow import BLUE, GREY, TIGHT, WHITE, WIDTH, Drawing, box, page, text

HEIGHT, SCHEDULERS = 408, 4
FLOAT_BYTES = 4


def delivered(chip: model.Chip) -> tuple[float, float, float]:
    """Floats per cycle that DRAM, the L2 cache and local memory deliver to a multiprocessor."""
    from_dram = chip.bandwidth / chip.ghz / FLOAT_BYTES / chip.units
    return from_dram, chip.l2_bytes / FLOAT_BYTES / chip.units, chip.warp * chip.turns


def multiprocessor(chip: model.Chip) -> Drawing:
    """A multiprocessor: schedulers, registers, arithmetic, and the memories behind them."""
    lanes, registers = int(chip.lanes) // SCHEDULERS, chip.registers // SCHEDULERS
    warps = int(chip.work_items // chip.warp) // SCHEDULERS
    from_dram, from_l2, from_l1 = delivered(chip)
    alt = (
        f"One of {chip.units} multiprocessors of {chip.name}: {SCHEDULERS} schedulers, each "
        f"with up to {warps} warps, {registers:,} registers and "
        f"{lanes} multiply-adders; it starts one instruction per cycle. L1 cache and "
        f"local memory deliver {from_l1:.0f} floats per cycle, the L2 cache "
        f"{from_l2:.0f}, DRAM {from_dram:.0f}."
    )
    title = f"one multiprocessor of an {chip.name.removeprefix('NVIDIA ')}, of {chip.units}"
    quarters = (_quarter(18 + 213 * i, lanes, warps, registers) for i in range(SCHEDULERS))
    return page(
        HEIGHT,
        alt,
        f'<rect x="6" y="24" width="{WIDTH - 12}" height="280" rx="10" fill="none" '
        f'stroke="{GREY}" stroke-width="1.5"/>',
        text(WIDTH / 2, 16, title, 15, GREY, bold=True),
        *quarters,
        box(18, 262, WIDTH - 36, 32),
        text(WIDTH / 2, 283, "L1 cache and local memory, shared by all four", 13.5, bold=True),
        _arrow(WIDTH / 2, 262, 204, f"{from_l1:.0f} floats per cycle, for all", TIGHT),
        box(18, 340, 414, 32),
        text(225, 361, "L2 cache, shared by all multiprocessors", 13.5, bold=True),
        _arrow(225, 340, 306, f"{from_l2:.0f} floats per cycle", BLUE),
        box(WIDTH - 432, 340, 414, 32),
        text(WIDTH - 225, 361, "DRAM: global memory", 13.5, bold=True),
        f'<path d="M{WIDTH - 432} 356H434" stroke="{BLUE}" stroke-width="5"/>',
        text(WIDTH / 2, 394, f"DRAM to L2: {from_dram:.0f} floats per cycle and multiprocessor",
             12.5, GREY),
    )  # fmt: skip


def _quarter(x: float, lanes: int, warps: int, registers: int) -> str:
    """A scheduler with its registers and its multiply-adders, as small squares."""
    middle = x + 101
    squares = (
        f'<rect x="{x + 13 + lane % 16 * 11}" y="{142 + lane // 16 * 14}" width="8" height="9" '
        f'fill="{WHITE}"/>'
        for lane in range(lanes)
    )
    parts = [
        box(x, 36, 202, 50),
        text(middle, 56, "scheduler", 13.5, bold=True),
        text(middle, 75, f"{warps} warps, 1 instruction a cycle", 12),
        box(x, 94, 202, 32),
        text(middle, 115, f"{registers:,} registers", 13),
        box(x, 134, 202, 62, BLUE),
        text(middle, 188, f"{lanes} multiply-adders", 13, bold=True),
    ]
    return "".join([*parts, *squares])


def _arrow(x: float, start: float, end: float, words: str, colour: str) -> str:
    """An arrow upwards, with its label to the right."""
    return (
        f'<path d="M{x - 7} {start}V{end + 10}H{x - 13}L{x} {end - 4}L{x + 13} {end + 10}H{x + 7}'
        f'V{start}Z" fill="{colour}"/>' + text(x + 22, start - 9, words, 13, GREY, anchor="start")
    )
