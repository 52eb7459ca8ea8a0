"""Interrupt products at random moments, as Ctrl-C does; look for memory that is written to later.

    python tests/blas/interrupts.py DEVICE [COUNT] [SEED]

Prints how many calls were interrupted, and after how many an array of somebody else was
overwritten, or the next product was wrong. It is a program, not a test: what it looks for can end
the process.
"""

import random
import signal
import sys
import time
from functools import partial

import numpy as np

import gemmlab

#: Seconds after which a kernel of these sizes has ended, though nobody waited for it.
DONE = 0.01
SIZES = (20, 64, 200, 300, 600)
KINDS = {
    "matmul": lambda x, out, device: gemmlab.matmul(x, x, device=device),
    "transposed": lambda x, out, device: gemmlab.matmul(x.T, x[::-1], device=device),
    "out": lambda x, out, device: gemmlab.matmul(x, x, out, device=device),
    "batch": lambda x, out, device: gemmlab.matmul(np.stack([x] * 3), x, device=device),
    "gemm": lambda x, out, device: gemmlab.gemm(1, x, x, 1, out, overwrite_c=True, device=device),
    "ladder": lambda x, out, device: gemmlab.matmul(
        x, x, out, kernel=3 if x.dtype == np.float32 else "auto", device=device
    ),
}

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


def main(device: str, count: int = 20_000, seed: int = 0) -> tuple[int, int, int]:
    rng, interrupts, overwritten, wrong = random.Random(seed), 0, 0, 0
    ones = [np.ones((n, n), kind) for n in SIZES for kind in ("float32", "float64", "complex64")]
    operands = [(x, np.empty_like(x)) for x in ones]
    for x, out in operands:
        for call in KINDS.values():
            call(x, out, device)  # compiled
    signal.signal(signal.SIGALRM, ring)
    while interrupts < count:
        (x, out), call = rng.choice(operands), rng.choice([*KINDS.values()])
        start = time.perf_counter()
        call(x, out, device)
        seconds = max(1e-5, rng.random() * 1.2 * (time.perf_counter() - start))
        if not was_interrupted(partial(call, x, out, device), seconds):
            continue
        interrupts += 1
        # fresh arrays where freed ones may have been, and the caller's own
        out[...] = 7
        canaries = [out, *(np.full_like(x, 7) for _ in range(3))]
        time.sleep(DONE if interrupts % 10 == 0 else DONE / 10)
        overwritten += any((y != 7).any() for y in canaries)
        wrong += not (gemmlab.matmul(x, x, device=device) == len(x)).all()
    return interrupts, overwritten, wrong


if __name__ == "__main__":
    print(*main(sys.argv[1], *map(int, sys.argv[2:])))
