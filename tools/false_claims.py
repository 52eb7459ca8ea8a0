"""How often a comparison calls a kernel faster or slower than itself, on a busy machine.

python tools/false_claims.py [COMPARISONS]     200 by default; two processes compute meanwhile

Also the time of a comparison on a quiet machine: python tools/false_claims.py 50 --quiet
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from gemmlab.measurement import comparison
from gemmlab.opencl.devices import find_device

BURN = "import numpy as np\na = np.random.rand(400, 400)\nwhile True: a = a @ a; a /= a.max()"
SAME: dict[str, Any] = {"kernel": 3, "m": 256, "n": 256, "k": 256, "params": {"TS": 32, "WPT": 8}}


class Found(NamedTuple):
    """What came of the comparisons: false claims, their ratios, and seconds of each comparison."""

    comparisons: int
    claims: list[float]
    seconds: list[float]

    def __str__(self) -> str:
        ratios = ", ".join(f"{ratio:.2f}" for ratio in self.claims)
        return (
            f"{len(self.claims)} false claims in {self.comparisons} comparisons"
            f"{f' ({ratios})' if ratios else ''}; a comparison took "
            f"{statistics.median(self.seconds):.2f} s (median), at most {max(self.seconds):.2f} s"
        )


@contextlib.contextmanager
def busy(processes: int) -> Iterator[None]:
    """So many other processes compute meanwhile."""
    others = [subprocess.Popen([sys.executable, "-c", BURN]) for _ in range(processes)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def false_claims(comparisons: int, processes: int = 2, device: str | None = None) -> Found:
    """Compare kernel 3 with itself as an explorer does: checked, and timed alternating."""
    here, claims, seconds = find_device(device), list[float](), list[float]()
    with busy(processes):
        for _ in range(comparisons):
            start = time.perf_counter()
            _, found = comparison.compare(SAME, device=here, **SAME)
            seconds.append(time.perf_counter() - start)
            if found.shown and found.ratio:
                claims.append(found.ratio[1])
    return Found(comparisons, claims, seconds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="False claims of comparisons.")
    parser.add_argument("comparisons", nargs="?", type=int, default=200)
    parser.add_argument("--quiet", action="store_true", help="nothing computes meanwhile")
    parser.add_argument("--device", help="index or part of a name")
    options = parser.parse_args()
    print(false_claims(options.comparisons, 0 if options.quiet else 2, options.device))
