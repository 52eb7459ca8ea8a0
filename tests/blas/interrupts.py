"""Interrupt products at random moments, as Ctrl-C does; look for memory that is written to later.

    python tests/blas/interrupts.py DEVICE [COUNT] [SEED]

Prints a report as JSON. It is a program, not a test: what it looks for can end the process.
"""

import json
import random
import signal
import sys
import time

import numpy as np

import gemmlab
from gemmlab.opencl.devices import find_device

#: Seconds after which a kernel of these sizes has ended, though nobody waited for it.
DONE = 0.01
SIZES = (20, 33, 64, 120, 200, 257, 300, 400, 600)


class Calls:
    """Products of one size, all of which write into memory that is looked at afterwards."""

    def __init__(self, device, n: int, dtype):
        ones = np.ones((n, n), dtype)
        self.device, self.n, self.ones = device, n, ones
        self.out = np.empty((n, n), dtype)
        self.batch = np.ones((3, n, n), dtype)
        self.kinds = {
            "matmul": lambda: gemmlab.matmul(ones, ones, device=device),
            "transposed": lambda: gemmlab.matmul(ones.T, ones[::-1], device=device),
            "out": lambda: gemmlab.matmul(ones, ones, self.out, device=device),
            "batch": lambda: gemmlab.matmul(self.batch, ones, device=device),
            "gemm": lambda: gemmlab.gemm(
                1, ones, ones, 1, self.out, overwrite_c=True, device=device
            ),
        }
        if dtype == np.float32:
            self.kinds["ladder"] = lambda: gemmlab.matmul(
                ones, ones, self.out, kernel=3, device=device
            )

    def canaries(self) -> list[np.ndarray]:
        """Fresh arrays where freed ones may have been, and the caller's array, all of sevens."""
        self.out[...] = 7
        return [self.out, *(np.full((self.n, self.n), 7, self.out.dtype) for _ in range(3))]

    def is_right(self) -> bool:
        return bool((gemmlab.matmul(self.ones, self.ones, device=self.device) == self.n).all())


armed = False


def ring(signum, frame) -> None:
    """Raise KeyboardInterrupt once; late alarms are ignored."""
    global armed
    if armed:
        armed = False
        raise KeyboardInterrupt


def was_interrupted(call, seconds: float) -> bool:
    """Make a call, with an interrupt after so many seconds; False if the call was quicker."""
    global armed
    try:
        armed = True
        signal.setitimer(signal.ITIMER_REAL, seconds)
        call()
        armed = False
        return False
    except KeyboardInterrupt:
        return True


def main(name: str, count: int = 20_000, seed: int = 0) -> dict:
    rng = random.Random(seed)
    device = find_device(name)
    calls = [
        Calls(device, n, np.dtype(t)) for n in SIZES for t in ("float32", "float64", "complex64")
    ]
    for each in calls:
        for call in each.kinds.values():
            call()  # compiled
    signal.signal(signal.SIGALRM, ring)
    report = {"device": str(device), "interrupts": 0, "overwritten": 0, "wrong": 0, "by kind": {}}
    while report["interrupts"] < count:
        each = rng.choice(calls)
        kind = rng.choice(list(each.kinds))
        start = time.perf_counter()
        each.kinds[kind]()
        seconds = time.perf_counter() - start
        if not was_interrupted(each.kinds[kind], max(1e-5, rng.random() * 1.2 * seconds)):
            continue
        report["interrupts"] += 1
        report["by kind"][kind] = report["by kind"].get(kind, 0) + 1
        canaries = each.canaries()
        time.sleep(DONE if report["interrupts"] % 10 == 0 else DONE / 10)
        report["overwritten"] += any((x != 7).any() for x in canaries)
        report["wrong"] += not each.is_right()
    return report


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], *map(int, sys.argv[2:]))))
