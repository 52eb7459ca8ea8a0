"""How often a comparison calls a kernel faster or slower than itself, on a busy machine.

python tools/false_claims.py [COMPARISONS]     200 by default; two processes compute meanwhile
python tools/false_claims.py 50 --quiet        nothing computes meanwhile
"""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import common

from gemmlab.cli import count
from gemmlab.measurement import comparison
from gemmlab.opencl.devices import find_device

BURN = "import numpy as np\na = np.random.rand(400, 400)\nwhile True: a = a @ a; a /= a.max()"
SAME: dict[str, Any] = {"kernel": 3, "m": 256, "n": 256, "k": 256, "params": {"TS": 32, "WPT": 8}}


class Tally(NamedTuple):
    """What came of the comparisons: ratios of false claims, and seconds of each comparison."""

    claims: list[float]
    seconds: list[float]

    def __str__(self) -> str:
        ratios = ", ".join(f"{ratio:.2f}" for ratio in self.claims) or "none"
        return (
            f"false claims in {len(self.seconds)} comparisons: {ratios}; a comparison took "
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


def false_claims(comparisons: int, processes: int = 2, device: str | None = None) -> Tally:
    """Compare kernel 3 with itself as an explorer does: checked, and timed alternating."""
    tally, here = Tally([], []), find_device(device)
    with busy(processes):
        for _ in range(comparisons):
            start = time.perf_counter()
            _, compared = comparison.compare(SAME, device=here, **SAME)
            tally.seconds.append(time.perf_counter() - start)
            if compared.shown and compared.ratio:
                tally.claims.append(compared.ratio[1])
    return tally


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("comparisons", nargs="?", type=count, default=200)
    parser.add_argument("--quiet", action="store_true")
    common.add_device(parser)
    given = parser.parse_args()
    print(false_claims(given.comparisons, 0 if given.quiet else 2, given.device))


if __name__ == "__main__":
    common.run(main)
