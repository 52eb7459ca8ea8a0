"""Both checks of all kernels on all devices there are, and the simulator's look at their code."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from itertools import product

from tqdm import tqdm

from ..ladder import Key, catalog, find, sources
from ..opencl.devices import devices, find_device
from .client import trial
from .look import Case, look


def verify(
    full: bool = False,
    seed: int = 0,
    device: str | int | None = None,
    kernels: Iterable[Key] = tuple(catalog),
) -> int:
    """Check a sample of the offered parameters, or all of them, and print what is wrong; return 0
    if all is right, and else 1, as the exit status of a command.

    Parameters that a device refuses once the kernel is compiled count neither as right nor as
    wrong, unless they are the majority.

    Args:
        full: everything instead of a sample.
        seed: of the sample and of the sizes.
        device: an index or part of a name; by default every device, one after the other.
        kernels: numbers of the catalog.

    Raises:
        NoDeviceError: if there is no device, or none that fits.
    """
    rng = random.Random(seed)
    used = (devices() if device is None else []) or [find_device(device)]
    settings, wrong, refused = [], list[str](), 0
    for target, spec in product(used, map(find, kernels)):
        for params in spec.sample(target.limits, 200 if full else 3, seed):
            tiles = spec.tiles(params)
            least = spec.minimum_sizes(params) if spec.edges == "shift" else (1, 1, 1)
            sizes = [max(rng.randint(1, 2 * t + 1), m) for t, m in zip(tiles, least, strict=True)]
            settings.append((target, spec, params, sizes))
    for target, spec, params, (m, n, k) in tqdm(settings, unit="case", disable=None):
        number = spec.number
        outcome = trial(number, m, n, k, params=params, device=target, repeats=1)
        if outcome.kind == "WorkGroupError":  # because the compiler ran out of registers
            refused += 1
            continue
        case = Case.of(number, m, n, k, params, sources.read(spec.file))
        outcome = replace(outcome, seen=look(case, seconds=5))
        if not outcome.ok:
            wrong.append(f"kernel {number} {params} {m} x {n} x {k} on {target}: {outcome}")
    passed = len(settings) - len(wrong) - refused
    reason = f"; {refused} were refused, because compiled they fit only smaller work-groups"
    print(*wrong, f"{passed} passed, {len(wrong)} failed{reason if refused else ''}", sep="\n")
    return int(bool(wrong) or passed < refused)
