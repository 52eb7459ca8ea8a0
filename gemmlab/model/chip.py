"""Chips as a few numbers: what a multiprocessor has room for, and what it does per cycle."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..ladder.spec import positive
from .traffic import Peaks


@dataclass(frozen=True)
class Chip:
    """A chip: what its multiprocessors have room for, and what they do per cycle.

    Numbers are per multiprocessor unless the whole chip is named. Registers are allocated to whole
    warps, in units of 256.
    """

    name: str
    groups: int  # most work-groups at the same time
    local_memory: int  # bytes
    units: int  # multiprocessors of the chip
    work_items: int = 2048  # most work-items at the same time
    registers: int = 65536  # of 32 bits
    registers_per_item: int = 255  # most registers of one work-item
    warp: int = 32  # work-items
    ghz: float = 1.0  # the highest clock, 10^9 cycles per second, so that no ceiling is too low
    lanes: float = 128  # multiply-adds per cycle
    issued: float = 4  # instructions of whole warps per cycle
    turns: float = 1  # accesses of whole warps by local memory per cycle, one word per bank
    bank_bytes: int = 4  # width of a bank of local memory
    reserved: int = 0  # bytes of local memory that each work-group takes beside its own
    unified: bool = False  # loads from global memory share local memory's path: it holds the L1
    l2_bytes: float = 0  # that the whole chip's L2 cache delivers per cycle; 0 if unknown
    bandwidth: float = 0  # of the whole chip's global memory, GB/s
    latency: float = 0  # cycles from a load to its value if the L2 cache has it; 0 if unknown
    source: str = ""  # where the numbers come from

    @property
    def gflops(self) -> float:
        """The arithmetic peak, in GFLOPS: a multiplication and an addition per multiply-add."""
        return 2 * self.units * self.lanes * self.ghz

    @property
    def peaks(self) -> Peaks:
        """Arithmetic and global memory alone, as a roofline needs them."""
        return Peaks(self.gflops, self.bandwidth)


K40M = Chip(
    "Tesla K40m",
    groups=16,
    local_memory=48 * 1024,
    units=15,
    ghz=0.875,
    lanes=192,
    issued=8,
    bank_bytes=8,
    bandwidth=288,
    latency=200,
    source="Tesla K40 board specification (875 MHz is the highest boost clock, 745 MHz the base "
    "clock) and Kepler GK110 white paper, NVIDIA 2013; the latency is the order of magnitude that "
    "microbenchmarks report, rounded down",
)
H200 = Chip(
    "NVIDIA H200",
    groups=32,
    local_memory=228 * 1024,
    units=132,
    ghz=1.98,
    lanes=128,
    issued=4,
    reserved=1024,
    unified=True,
    l2_bytes=5120,
    bandwidth=4800,
    latency=260,
    source="H200 data sheet (67 TFLOPS, 4.8 TB/s), H100 white paper and Hopper tuning guide (1 KB "
    "of local memory is reserved for each work-group), NVIDIA; bytes per cycle of "
    "the L2 cache as in the A100 white paper, since that of the H100 names none, and as we "
    "measured them (10.0 TB/s); latency: Luo and others, Benchmarking and Dissecting the Nvidia "
    "Hopper GPU Architecture, 2024",
)


def occupancy_shares(
    chip: Chip, work_items: int, registers: int, local_memory: int
) -> dict[str, float]:
    """The share of each resource of a multiprocessor that one work-group takes.

    Arguments, errors and resources are those of `occupancy`. Above 1 not even one work-group fits.
    """
    positive("work_items", work_items)
    positive("registers", registers)
    warps = -(-work_items // chip.warp)
    allocated = warps * -(-registers * chip.warp // 256) * 256 / chip.registers
    return {
        "work-items": warps * chip.warp / chip.work_items,
        "registers": allocated if registers <= chip.registers_per_item else math.inf,
        "local memory": (local_memory + chip.reserved) / chip.local_memory,
        "groups": 1 / chip.groups,
    }


def occupancy(chip: Chip, work_items: int, registers: int, local_memory: int) -> dict[str, int]:
    """How many work-groups fit on a multiprocessor, by each of the four resources that they share.

    These are "work-items", "registers" (per work-item), "local memory" (bytes) and "groups"; the
    least of the four fit. Raises ValueError if work_items or registers is less than 1.
    """
    taken = occupancy_shares(chip, work_items, registers, local_memory)
    return {name: int(1 / share + 1e-9) if share else chip.groups for name, share in taken.items()}
