"""Divergence by formula, and by the work-items that load in the simulator."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import gemmlab
from clscope import views
from lessons import divergence


def counted(events: np.ndarray, tile: int, warp: int) -> int:
    """Warp-phases in which some work-items of a warp load, and others do not."""
    places = np.stack([events["group"], events["phase"], events["item"] // warp], 1)
    warps, loading = np.unique(places, axis=0, return_counts=True)
    lanes = np.minimum(warp, tile * tile - warps[:, 2] * warp)
    return int((loading < lanes).sum())


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.tuples(*[st.integers(1, 23)] * 3), st.integers(2, 8), st.sampled_from((1, 4, 16, 32, 64)),
    st.sampled_from("AB"),
)  # fmt: skip
def test_the_formula_is_what_the_kernel_does(sizes, tile, warp, name):
    """A row-major matrix of n x m is a column-major one of m x n: A and B exchange their roles."""
    m, n, k = sizes
    run = gemmlab.simulate(12, m, n, k, {"TS": tile, "WPT": 1})
    parts = divergence.formula(name, m, n, k, tile, warp)
    assert sum(p.diverging for p in parts.values()) == counted(views.select(run, name), tile, warp)
    groups, warps = -(-m // tile) * -(-n // tile), -(-tile * tile // warp)
    assert sum(p.groups for p in parts.values()) == groups
    assert parts[1].warp_phases + parts[2].warp_phases == groups * warps * -(-k // tile)
    other = "AB"["BA".index(name)]
    assert divergence.formula(other, n, m, k, tile, warp, "row-major") == parts


def test_the_published_count_and_the_one_left_to_the_reader():
    """ECE 569, Module 27: 100 x 100, tiles of 16, warps of 32, row-major."""
    m = divergence.formula("A", 100, 100, 100, 16, 32, "row-major")
    assert (m[1].groups, m[1].diverging, m[1].warp_phases) == (42, 336, 2352)
    assert (m[2].groups, m[2].diverging, m[2].warp_phases) == (7, 14, 392)
    n = divergence.formula("B", 100, 100, 100, 16, 32, "row-major")
    assert [(p.diverging, p.warp_phases) for p in n.values()] == [(0, 2352), (350, 392)]
    assert divergence.share(100, 100, 100, 16, 32, "row-major") == 350 / 2744
    assert divergence.share(96, 64, 32, 16, 32, "row-major") == 0  # whole tiles
