"""How many work-groups fit on a multiprocessor at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Multiprocessor:
    """The resources that work-groups share on one multiprocessor, and how much of each there is.

    Registers are allocated to whole warps, in units of 256.

    Attributes:
        name: of the chip.
        groups: most work-groups at once.
        local_memory: bytes.
        units: multiprocessors of the chip.
        work_items: most work-items at once.
        registers: registers of 32 bits.
        registers_per_item: most registers of one work-item.
        warp: work-items per warp.
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
    """The share of a multiprocessor's work-items, registers, local memory and work-groups that one work-group takes.

    The arguments are those of `occupancy`. A share above 1, or infinity, means that not even one work-group fits.
    """
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
    """How many work-groups fit on a multiprocessor at once, by each of the four resources that they share.

    What a chip reserves for itself, such as a little local memory per work-group, is neglected.

    Args:
        work_items: per work-group.
        registers: per work-item.
        local_memory: bytes per work-group.

    Returns:
        The most work-groups by "work-items", "registers", "local memory" and "groups"; the least of the four fit.

    Raises:
        ValueError: if work_items or registers is less than 1, or local_memory is negative.
    """
    taken = shares(chip, work_items, registers, local_memory)
    return {name: int(1 / share + 1e-9) if share else chip.groups for name, share in taken.items()}


def multiprocessor(device: Any) -> Multiprocessor:
    """The resources of one compute unit of a device (an entry of `gemmlab.devices()`), as far as OpenCL reports them.

    OpenCL reports neither the registers nor the most work-groups at once; NVIDIA's extension reports how many
    registers a work-group may take. A core of a processor runs one work-group at a time.
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
