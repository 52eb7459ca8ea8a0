"""What a scheduler issues, cycle by cycle, when some warps run the inner loop of a kernel: arithmetic, loads, waiting.

A deliberately small model: one of a multiprocessor's schedulers, warps that all do the same, one instruction per cycle,
instructions in the order of the text. A multiply-add waits for all loads of its warp that came before it. Addresses,
jumps and the order that a compiler prefers are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..simt import ProductRun
from ..simt.machine import WARP
from .chip import H200, Chip
from .costs import local_turns

FLOAT_BYTES = 4
LOCAL_LATENCY = 30  # cycles from a load to its value; Luo and others (2024) measured 29 on an H100
QUEUE = 8  # accesses per scheduler that may wait for local memory before a warp that wants another one waits, too


@dataclass(frozen=True)
class Slot:
    """An instruction of a warp: "multiply-add" or "load", issued in a cycle.

    Attributes:
        warp: its number; what: "multiply-add" or "load".
        cycle: when it was issued.
        begin, end: when its work takes place: of a load the cycles of the path to local memory that it fills.
    """

    warp: int
    what: str
    cycle: int
    begin: int
    end: int


def instructions(run: ProductRun, group: int = 0, warp: int = 0) -> list[tuple[str, int]]:
    """What a warp issues between two barriers in which it computes: ("load", turns) or ("multiply-add", 1), in order.

    A multiply-add of vectors is one instruction per float of the vector.

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
            asked = np.full((1, WARP), -1)
            asked[0, e.of(e.wave.items) % WARP] = FLOAT_BYTES * e.of(e.at)
            issued.append(("load", local_turns(asked, FLOAT_BYTES * e.site.width)))
        elif e.site.kind == "multiply-add":
            issued += [("multiply-add", 1)] * e.site.width
    found = next((issued for issued in phases.values() if ("multiply-add", 1) in issued), [])
    if not any(what == "load" for what, _ in found):
        raise ValueError(f"kernel {run.kernel} reads no local memory where it computes, so there is nothing to show")
    return found


def issue(program: Sequence[tuple[str, int]], warps: int = 1, cycles: int = 200, chip: Chip = H200) -> list[Slot]:
    """Run `warps` warps of the same program, again and again, on one scheduler.

    Args:
        program: what `instructions` found.
        warps: how many the scheduler has to choose from; it takes the one that has waited longest.
        cycles: how many to run.
        chip: its schedulers share local memory: a turn takes chip.lanes / chip.warp cycles of each one's share.

    Raises:
        ValueError: if program is empty, or warps or cycles is less than 1.
    """
    if not program:
        raise ValueError("program is empty")
    if warps < 1 or cycles < 1:
        raise ValueError(f"warps={warps} and cycles={cycles} must be at least 1")
    share = round(chip.lanes / chip.warp / chip.turns)
    place, ready, last = [0] * warps, [0] * warps, [-1 - w for w in range(warps)][::-1]
    path, found = 0, []
    for now in range(cycles):
        for w in sorted(range(warps), key=last.__getitem__):
            what, turns = program[place[w] % len(program)]
            if what == "load" and path - now < QUEUE * share:
                begin = max(path, now)
                path = begin + turns * share
                ready[w] = path + LOCAL_LATENCY
                found.append(Slot(w, what, now, begin, path))
            elif what == "multiply-add" and ready[w] <= now:
                found.append(Slot(w, what, now, now, now + 1))
            else:
                continue
            place[w], last[w] = place[w] + 1, now
            break
    return found
