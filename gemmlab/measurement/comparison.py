"""Is one kernel faster than another? Both run alternating in one job, until the answer is certain.

The order within each pair of runs is drawn at random. If there is no difference, each of the two is
therefore the faster one with probability 1/2, whatever else the machine does, and the pairs are
independent: the sign test holds without any assumption about noise.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..ladder import Key, find
from ..opencl.devices import Device, find_device
from ..opencl.launch import Kernel
from . import timing
from .framed import FramedProduct
from .records import Result

#: Probability, at each look, of calling a difference that is none.
ALPHA = 0.001
#: Looks at the pairs so far: each is one more chance to err, so there are few.
LOOKS = (11, 17, 26, 39, 59, 88, 132, 200)
#: Ratios closer to 1 than this are never called a difference.
LEAST_RATIO = 1.02
#: Probability that the interval of a rate misses the median.
RATE_ALPHA = 0.05
#: A machine whose middle 80 % of runs spread by more than this share of the median is noisy.
NOISY = 0.3
#: Seconds that a comparison may take by default.
BUDGET = 0.6

Interval = tuple[float, float, float]  # low, median, high


@dataclass(frozen=True)
class Comparison:
    """What runs show about a rate, and how it compares with a reference."""

    rate: Interval  # GFLOPS of the candidate
    spread: float  # of its runs: the width of the middle 80 %, as a share of the median
    ratio: Interval | None = None  # its rate divided by the reference's; None if there was none
    reference: Interval | None = None  # GFLOPS of the reference in the same seconds

    @property
    def shown(self) -> bool:
        """Whether a difference from the reference has been shown."""
        return self.ratio is not None and differs(self.ratio)

    @property
    def noisy(self) -> bool:
        """Whether something else is using the machine."""
        return self.spread > NOISY


def differs(ratio: Interval) -> bool:
    """Whether an interval of a ratio excludes all ratios close to 1."""
    return ratio[0] > LEAST_RATIO or ratio[2] < 1 / LEAST_RATIO


def interval(values: Sequence[float], alpha: float) -> Interval:
    """The median with a confidence interval by order statistics; at most the whole range."""
    ordered, n = sorted(values), len(values)
    tail, rank = 0.0, 0
    while rank < (n - 1) // 2:
        tail += math.comb(n, rank) / 2**n
        if 2 * tail > alpha:
            break
        rank += 1
    low = max(rank - 1, 0)
    middle = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    return ordered[low], middle, ordered[n - 1 - low]


def alternate(
    candidate: Callable[[], float],
    reference: Callable[[], float] | None,
    budget: float = BUDGET,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[list[float], list[float]]:
    """Call both, in random order within each pair, until their difference is certain, or after
    `budget` seconds, but not before three pairs have run; the rates of both. Without a reference
    the candidate runs until its rate has an interval.
    """
    mine, other = list[float](), list[float]()
    end, flip = clock() + budget, random.Random()
    both = [(candidate, mine)]
    if reference is not None:
        both.append((reference, other))
    while len(mine) < LOOKS[-1] and (len(mine) < 3 or clock() < end):
        for run, rates in flip.sample(both, len(both)):
            rates.append(run())
        if len(mine) in LOOKS and _certain(mine, other):
            break
    return mine, other


def _certain(mine: list[float], other: list[float]) -> bool:
    """Whether the runs show a difference, or that there is none that would be called one."""
    if not other:
        return True
    low, _, high = ratio = ratio_of(mine, other)
    return differs(ratio) or (low > 1 / LEAST_RATIO and high < LEAST_RATIO)


def ratio_of(mine: Sequence[float], other: Sequence[float]) -> Interval:
    """The ratio of paired rates; all ratios are possible if there are too few pairs."""
    ratios = [one / two for one, two in zip(mine, other, strict=True)]
    low, middle, high = interval(ratios, ALPHA)
    return (low, middle, high) if len(ratios) >= LOOKS[0] else (0.0, middle, math.inf)


def compare(
    reference: Mapping[str, Any] | None = None,
    budget: float = BUDGET,
    on_step: Callable[[str], None] = lambda step: None,
    **arguments: Any,
) -> tuple[Result, Comparison]:
    """`timing.measure`, with its arguments, and with runs that alternate with those of a reference:
    its kernel, m, n, k, params and source. The runs of both may take `budget` seconds; one run of a
    wrong kernel is enough.
    """
    prepared = timing.prepare(**arguments, on_step=on_step)
    mine, other = prepared.runs, None
    if not prepared.right:
        rates = [mine.once()], list[float]()
        return prepared.result(), summary(*rates)
    if reference:
        other = timing.Runs(_reference(find_device(arguments.get("device")), **reference))
        mine.credible = other.credible = mine.credible and other.credible  # one clock for both
    rates = alternate(mine.once, other.once if other else None, budget)
    return prepared.result(), summary(*rates)


def summary(mine: Sequence[float], other: Sequence[float]) -> Comparison:
    """What rates show: those of the candidate, and of a reference, if there was one."""
    ordered, tenth = sorted(mine), len(mine) // 10
    rate = interval(mine, RATE_ALPHA)
    spread = (ordered[-1 - tenth] - ordered[tenth]) / rate[1]
    if not other:
        return Comparison(rate, spread)
    return Comparison(rate, spread, ratio_of(mine, other), interval(other, RATE_ALPHA))


def _reference(
    device: Device,
    kernel: Key,
    params: Mapping[str, int] | None,
    m: int,
    n: int,
    k: int,
    source: str | None = None,
) -> FramedProduct:
    """What is compared with; it was checked before, and runs once, which may compile."""
    built = Kernel(find(kernel), params, device, device.context, source)
    product = timing.random_product(built, device, (m, n, k))
    product.run()
    return product
