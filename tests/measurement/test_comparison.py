"""Differences are claimed only where they are: simulated machines, and a kernel against itself."""

import math
import random
import subprocess
import sys

import pytest
from conftest import in_part

from gemmlab.measurement import comparison


class Machine:
    """A clock on which runs take time, and other programs come and go for many runs at a time."""

    def __init__(self, seed: int):
        self.now, self.dice, self.load, self.left = 0.0, random.Random(seed), 1.0, 0

    def run(self, rate: float) -> float:
        if self.left == 0:
            self.load = self.dice.choice((1.0, 1.0, 1.9, 3.0))
            self.left = self.dice.randint(1, 40)
        self.left -= 1
        found = rate / (self.load * math.exp(abs(self.dice.gauss(0, 0.1))))
        self.now += 0.005 / found
        return found

    def compared(self, ratio: float):
        mine, other = comparison.alternate(
            lambda: self.run(ratio), lambda: self.run(1.0), 2.0, clock=lambda: self.now
        )
        return comparison.ratio_of(mine, other)


def test_a_kernel_is_hardly_ever_called_faster_than_itself():
    """However bursty the noise is: at most 1 in 100, as many times as somebody will look."""
    claims = sum(comparison.differs(Machine(seed).compared(1.0)) for seed in range(1500))
    assert claims <= 8


@pytest.mark.parametrize("ratio", [0.7, 1.5])
def test_a_large_difference_is_shown_in_spite_of_noise(ratio):
    found = [Machine(seed).compared(ratio) for seed in range(40)]
    shown = [low > 1 if ratio > 1 else high < 1 for low, _, high in found]
    assert sum(shown) >= 36


def test_without_enough_pairs_every_ratio_is_possible():
    assert comparison.ratio_of([2.0] * 10, [1.0] * 10) == (0.0, 2.0, math.inf)
    assert comparison.differs(comparison.ratio_of([2.0] * 11, [1.0] * 11))


BUSY = "import numpy as np\na = np.random.rand(400, 400)\nwhile True: a = a @ a; a /= a.max()"
SAME = {"kernel": 3, "m": 256, "n": 256, "k": 256, "params": {"TS": 32, "WPT": 8}}


@pytest.mark.parametrize("comparisons", in_part([10, 200], 2))
def test_false_claims_on_a_busy_machine(comparisons, any_device):
    """A kernel with itself while two processes compute beside it: at most 1 in 100."""
    others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(2)]
    try:
        found = [comparison.compare(SAME, device=any_device, **SAME)[1] for _ in range(comparisons)]
    finally:
        for other in others:
            other.kill()
            other.wait()
    assert len([one for one in found if one.shown and one.ratio]) <= 2
