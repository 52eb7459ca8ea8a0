"""Sizes that are no whole tiles: right, and nothing outside C is touched. tests/simt simulates
some.
"""

import random

import pytest

import gemmlab
from gemmlab import catalog, check

SMALL = {12: {"TS": 16, "WPT": 4}, 13: {"TSM": 32, "TSN": 32, "TSK": 16, "WPTM": 4, "WPTN": 2}}
WT = "warp_tiling"
SMALL |= {WT: {"TSM": 32, "TSN": 32, "TSK": 16, "WPTM": 4, "WPTN": 4, "WIDTH": 1}}


def covering(largest: int, seed: int = 0):
    """Triples in which each of M, N and K takes every value from 1 to `largest`."""
    rng = random.Random(seed)
    orders = [rng.sample(range(1, largest + 1), largest) for _ in range(3)]
    return list(zip(*orders, strict=True))


@pytest.mark.system
@pytest.mark.parametrize("number", SMALL)
def test_every_size_from_1_to_130_is_right_and_nothing_around_c_is_touched(number, device):
    """`measure` puts C into a frame of exactly its size, and looks at the memory around it."""
    least = catalog[number].minimum_sizes({**catalog[number].defaults, **SMALL[number]})
    for sizes in covering(130, number):
        m, n, k = (max(size, smallest) for size, smallest in zip(sizes, least, strict=True))
        result = gemmlab.measure(number, m, n, k, params=SMALL[number], device=device, repeats=1)
        assert result.ok, result
        assert list(result.passes_ms) in (["gemm"], ["transpose", "gemm"]), "no copies"


@pytest.mark.parametrize("edges", ("pad", "guard", "shift", "auto"))
def test_matmul_is_right_at_every_size(edges, device):
    for m, n, k in covering(130, 7):
        if edges == "shift":
            m, n = max(m, 32), max(n, 32)
        a, b = check.exact_inputs(m, n, k)
        assert check.exact(gemmlab.matmul(a, b, edges=edges, device=device), a, b).ok, (m, n, k)
