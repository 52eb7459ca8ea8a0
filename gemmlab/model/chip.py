"""How many work-groups fit on a multiprocessor at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Multiprocessor:
    """What the work-groups on one multiprocessor share, and the most that it takes of each.

    Registers are given to whole warps, 256 at a time.
    """

    name: str
    groups: int
    local_memory: int
    units: int
    work_items: int = 2048
    registers: int = 65536
    registers_per_item: int = 255
    warp: int = 32


K40M = Multiprocessor("Tesla K40m", groups=16, local_memory=48 * 1024, units=15)
H200 = Multiprocessor("NVIDIA H200", groups=32, local_memory=228 * 1024, units=132)


def shares(chip: Multiprocessor, work_items: int, registers: int, local_memory: int) -> dict[str, float]:
    """The share of a multiprocessor's work-items, registers, local memory and places that one work-group takes."""
    for name, value, least in (
        ("work_items", work_items, 1),
        ("registers", registers, 1),
        ("local_memory", local_memory, 0),
    ):
        if value < least:
            raise ValueError(f"{name} must be at least {least}, not {value}")
    warps = -(-work_items // chip.warp)
    of_a_warp = -(-registers * chip.warp // 256) * 256
    return {
        "work-items": warps * chip.warp / chip.work_items,
        "registers": warps * of_a_warp / chip.registers if registers <= chip.registers_per_item else math.inf,
        "local memory": local_memory / chip.local_memory,
        "groups": 1 / chip.groups,
    }


def occupancy(chip: Multiprocessor, work_items: int, registers: int, local_memory: int) -> dict[str, int]:
    """How many work-groups fit on a multiprocessor at once, by each of the four things they share.

    What a chip keeps for itself, such as a little local memory for each group, is left out.

    Args:
        work_items: per work-group.
        registers: per work-item.
        local_memory: bytes per work-group.

    Returns:
        The most groups by "work-items", "registers", "local memory" and "groups"; the least of them is what fits.
    """
    taken = shares(chip, work_items, registers, local_memory)
    return {name: int(1 / share + 1e-9) if share else chip.groups for name, share in taken.items()}


def multiprocessor(device: Any) -> Multiprocessor:
    """What the work-groups on one compute unit of a `gemmlab.devices` entry share, as far as OpenCL tells.

    It tells neither registers nor places for groups, except that NVIDIA's devices say how many registers a
    group may take. A processor's core runs one group at a time.
    """
    gpu = device.kind == "GPU"
    return Multiprocessor(
        device.name,
        groups=32 if gpu else 1,
        local_memory=device.limits.local_memory,
        units=device.units,
        work_items=2048 if gpu else device.limits.work_group,
        registers=device.cl.registers_per_block_nv if "nvidia" in device.features else 2**30,
        registers_per_item=255 if gpu else 2**16,
    )
