"""Divergence by formula and by counting every work-item."""

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import gemmlab
from gemmlab.simt import views
from lessons import divergence

LAYOUTS = ("row-major", "column-major")


def by_group(
    name: str, m: int, n: int, k: int, tile: int, warp: int = 32, layout: str = "column-major"
) -> np.ndarray:
    """Diverging warp-phases of every work-group, counted work-item by work-item.

    The arguments are those of `divergence.formula`.

    Returns:
        An int array: (work-groups along m, work-groups along n).
    """
    cut = m if name == "A" else n
    along = (layout == "column-major") == (name == "A")  # neighbouring lanes go along that side
    items = np.arange(tile * tile)
    lanes, rows = items % tile, items // tile
    counts = np.zeros((-(-m // tile), -(-n // tile)), int)
    for group in np.ndindex(counts.shape):
        first = group[0 if name == "A" else 1] * tile
        for phase in range(-(-k // tile)):
            outer = first + (lanes if along else rows) < cut
            inner = phase * tile + (rows if along else lanes) < k
            guard = outer & inner
            for start in range(0, tile * tile, warp):
                some = guard[start : start + warp]
                counts[group] += some.any() and not some.all()
    return counts


@settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(
    st.tuples(*[st.integers(1, 70)] * 3), st.integers(2, 20), st.sampled_from((1, 4, 16, 32, 64)),
    st.sampled_from(LAYOUTS), st.sampled_from("AB"),
)  # fmt: skip
def test_formula_and_count_are_equal(sizes, tile, warp, layout, name):
    warps, phases = -(-tile * tile // warp), -(-sizes[2] // tile)
    assume(np.prod([-(-size // tile) for size in sizes]) * warps <= 2000)  # the count takes time
    parts = divergence.formula(name, *sizes, tile, warp, layout)
    counts = by_group(name, *sizes, tile, warp, layout)
    assert sum(p.diverging for p in parts.values()) == counts.sum()
    assert sum(p.groups for p in parts.values()) == counts.size
    assert parts[1].warp_phases + parts[2].warp_phases == counts.size * warps * phases


def test_the_published_count_and_the_one_left_to_the_reader():
    """ECE 569, Module 27: 100 x 100, tiles of 16, warps of 32, row-major."""
    m = divergence.formula("A", 100, 100, 100, 16, 32, "row-major")
    assert (m[1].groups, m[1].diverging, m[1].warp_phases) == (42, 336, 2352)
    assert (m[2].groups, m[2].diverging, m[2].warp_phases) == (7, 14, 392)
    n = divergence.formula("B", 100, 100, 100, 16, 32, "row-major")
    assert [(p.diverging, p.warp_phases) for p in n.values()] == [(0, 2352), (350, 392)]
    assert divergence.share(100, 100, 100, 16, 32, "row-major") == 350 / 2744
    for name, other in ("AB", "BA"):  # in a column-major kernel the two exchange their roles
        exchanged = divergence.formula(other, 100, 100, 100, 16, layout="row-major")
        assert divergence.formula(name, 100, 100, 100, 16) == exchanged
    assert divergence.share(96, 64, 32, 16, 32, "row-major") == 0  # whole tiles


def test_the_count_is_that_of_the_kernel():
    """A warp of kernel 12 diverges if some of its work-items load from A and others do not."""
    m, n, k, ts, warp = 11, 9, 7, 4, 8
    run = gemmlab.simulate(12, m, n, k, {"TS": ts, "WPT": 1})
    for name in "AB":
        counts = by_group(name, m, n, k, ts, warp)
        found = np.zeros_like(counts)
        for group in range(counts.size):
            for phase in range(0, 2 * -(-k // ts), 2):  # the loading phases
                items = set(views.select(run, name, group=group, phase=phase)["item"].tolist())
                for start in range(0, ts * ts, warp):
                    loading = len(items & set(range(start, start + warp)))
                    found[group % counts.shape[0], group // counts.shape[0]] += 0 < loading < warp
        assert (found == counts).all()
