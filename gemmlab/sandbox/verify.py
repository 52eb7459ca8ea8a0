"""Both checks of all kernels on all devices there are, and the simulator's look at their texts."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product

from tqdm import tqdm

from ..ladder import catalog, sources
from ..opencl.devices import devices, find_device
from .client import Outcome, trial
from .look import look


def verify(full: bool = False, seed: int = 0, device: str | int | None = None) -> int:
    """Check a sample of the offered parameters, or all of them; 0 if all is right, as a command
    returns it.

    Parameters that a device refuses once the kernel is compiled count neither way, unless they are
    the majority.

    Args:
        full: everything instead of a sample.
        seed: of the sample and of the sizes.
        device: an index or part of a name; by default every device, one after the other.

    Raises:
        NoDeviceError: if there is no device, or none that fits.
    """
    rng = random.Random(seed)
    wanted = (devices() if device is None else []) or [find_device(device)]
    chosen, wrong = [], list[str]()
    for one, (number, spec) in product(wanted, catalog.items()):
        for params in spec.sample(one.limits, 200 if full else 3, seed):
            tiles = spec.tiles(params)
            least = spec.minimum_sizes(params) if spec.edges == "shift" else (1, 1, 1)
            sizes = [max(rng.randint(1, 2 * t + 1), m) for t, m in zip(tiles, least, strict=True)]
            chosen.append((one, number, params, sizes))
    refused = 0
    for one, number, params, (m, n, k) in tqdm(chosen, unit="case", disable=None):
        outcome: Outcome = trial(number, m, n, k, params=params, device=one, repeats=1)
        if outcome.kind == "WorkGroupError":  # for lack of registers, which the compiler tells
            refused += 1
            continue
        seen = look(number, m, n, k, params, sources.read(catalog[number].file), seconds=5)
        outcome = replace(outcome, seen=seen)
        if not outcome.ok:
            wrong.append(f"kernel {number} {params} {m} x {n} x {k} on {one}: {outcome}")
    passed = len(chosen) - len(wrong) - refused
    words = f"; {refused} were refused, because compiled they fit only smaller work-groups"
    print(*wrong, f"{passed} passed, {len(wrong)} failed{words if refused else ''}", sep="\n")
    return int(bool(wrong) or passed < refused)
