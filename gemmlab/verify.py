"""Both checks of all kernels on all devices there are."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

from tqdm import tqdm

from .catalog import catalog
from .device import devices
from .live import trial


def verify(full: bool = False, seed: int = 0) -> int:
    """A sample of the offered parameters, or all of them and all tests; 0 if all is right, as a command returns it."""
    rng = random.Random(seed)
    cases = []
    for d in devices():
        for number, spec in catalog.items():
            for params in spec.sample(d.limits, None if full else 3, seed):
                sizes = [rng.randint(1, 2 * tile + 1) for tile in spec.tiles(params)]
                if spec.edges == "shift":
                    sizes = [max(size, least) for size, least in zip(sizes, spec.least(params), strict=True)]
                cases.append((d, number, params, sizes))
    wrong = []
    for d, number, params, sizes in tqdm(cases, unit="case", disable=None):
        outcome = trial(number, *sizes, params=params, device=d, repeats=1)
        if not outcome.ok:
            wrong.append(f"kernel {number} {params} {sizes} on {d}: {outcome}")
    print("\n".join(wrong + [f"{len(cases) - len(wrong)} passed, {len(wrong)} failed"]))
    tests = Path(__file__).resolve().parent.parent / "tests"
    if full and tests.is_dir():
        run = subprocess.run([sys.executable, "-m", "pytest", str(tests)], env={**os.environ, "GEMMLAB_FULL": "1"})
        return int(bool(wrong)) or run.returncode
    return int(bool(wrong))
