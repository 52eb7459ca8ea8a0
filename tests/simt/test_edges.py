"""Sizes that are no whole tiles: every strategy is right, and touches nothing outside C."""

import itertools
import random

import pytest
from conftest import FULL

import gemmlab
from gemmlab import catalog, check, model
from gemmlab.simt import views

SMALL = {12: {"TS": 16, "WPT": 4}, 13: {"TSM": 32, "TSN": 32, "TSK": 16, "WPTM": 4, "WPTN": 2}}
WT = "warp_tiling"
SMALL |= {WT: {"TSM": 32, "TSN": 32, "TSK": 16, "WPTM": 4, "WPTN": 4, "WIDTH": 1}}


def covering(largest: int, seed: int = 0):
    """Triples in which each of M, N and K takes every value from 1 to `largest`, in unrelated
    orders.
    """
    rng = random.Random(seed)
    orders = [rng.sample(range(1, largest + 1), largest) for _ in range(3)]
    return list(zip(*orders, strict=True))


def test_the_triples_cover():
    for sizes in zip(*covering(130), strict=True):
        assert sorted(sizes) == list(range(1, 131))


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


def test_all_sizes_up_to_70(device):
    """Each of 343,000 triples (or a seeded thousandth) by one strategy in turn; no shift without a
    whole tile.
    """
    sizes = list(itertools.product(range(1, 71), repeat=3))
    ways = itertools.cycle(("pad", "guard", "shift", "auto"))
    for m, n, k in sizes if FULL else random.Random(1).sample(sizes, len(sizes) // 1000):
        edges = next(ways)
        if edges == "shift" and min(m, n) < 32:
            edges = "guard"
        a, b = check.exact_inputs(m, n, k)
        assert check.exact(gemmlab.matmul(a, b, edges=edges, device=device), a, b).ok, (
            edges,
            m,
            n,
            k,
        )


def test_the_seed_s_picture_of_shifted_tiles():
    """Three rows and four columns of tiles: 2, 5, 8 move up, 9 and 10 left, 11 both; the others
    stay.
    """
    params = {"TSM": 4, "TSN": 4, "TSK": 2, "WPTM": 2, "WPTN": 2, "UNROLL": 1}
    run = gemmlab.simulate(13, 11, 14, 4, params)
    moved = {"up": set(), "left": set()}
    for group in range(12):
        first = {
            name: min(int(i) % rows for i in views.select(run, name, group=group)["index"])
            for name, rows in (("A", 11), ("B", 14))
        }
        if first["A"] != group % 3 * 4:
            moved["up"].add(group)
        if first["B"] != group // 3 * 4:
            moved["left"].add(group)
    assert moved == {"up": {2, 5, 8, 11}, "left": {9, 10, 11}}


@pytest.mark.parametrize(
    ("number", "params", "sizes"),
    [
        (12, {"TS": 4, "WPT": 2}, (9, 11, 5)),
        (12, {"TS": 8, "WPT": 1}, (3, 3, 3)),
        (12, {"TS": 2, "WPT": 2}, (3, 3, 3)),
        (13, {"TSM": 8, "TSN": 8, "TSK": 4, "WPTM": 2, "WPTN": 4, "UNROLL": 1}, (9, 11, 5)),
        (13, {"TSM": 4, "TSN": 8, "TSK": 4, "WPTM": 2, "WPTN": 2, "UNROLL": 1}, (7, 17, 1)),
        (
            WT,
            {"TSM": 16, "TSN": 32, "TSK": 8, "WPTM": 4, "WPTN": 4, "WARPM": 4, "WIDTH": 1},
            (17, 35, 9),
        ),
        (
            WT,
            {
                "TSM": 32,
                "TSN": 16,
                "TSK": 8,
                "WPTM": 4,
                "WPTN": 4,
                "WARPM": 8,
                "WIDTH": 4,
                "STAGES": 3,
            },
            (36, 20, 5),
        ),
        (
            WT,
            {
                "TSM": 32,
                "TSN": 16,
                "TSK": 4,
                "WPTM": 4,
                "WPTN": 4,
                "WARPM": 8,
                "WIDTH": 1,
                "STAGES": 4,
            },
            (1, 1, 1),
        ),
        (
            WT,
            {
                "TSM": 16,
                "TSN": 32,
                "TSK": 16,
                "WPTM": 4,
                "WPTN": 4,
                "WARPM": 4,
                "WIDTH": 1,
                "TRANSPOSED": 0,
            },
            (17, 35, 9),
        ),
        (
            WT,
            {
                "TSM": 32,
                "TSN": 32,
                "TSK": 8,
                "WPTM": 4,
                "WPTN": 4,
                "WARPM": 8,
                "WIDTH": 4,
                "TRANSPOSED": 0,
            },
            (36, 20, 7),
        ),
    ],
)
@pytest.mark.parametrize("order", ("lockstep", "warps"))
def test_simulations_of_awkward_sizes(number, params, sizes, order):
    """The product, no race, each element of C stored once, and never a load from outside."""
    run = gemmlab.simulate(number, *sizes, params, order=order)
    assert run.ok, run.verdict
    assert (
        run.counts.stores["C"]
        == len(views.elements(views.select(run, "C", True)))
        == sizes[0] * sizes[1]
    )


def test_a_simulation_smaller_than_the_tile_is_refused():
    with pytest.raises(ValueError, match="m=3 is less than 8"):
        gemmlab.simulate(
            13, 3, 8, 8, {"TSM": 8, "TSN": 8, "TSK": 4, "WPTM": 2, "WPTN": 4, "UNROLL": 1}
        )


def test_loads_of_whole_tiles_are_those_of_the_formula():
    for number, params in (
        (12, {"TS": 8, "WPT": 2}),
        (13, {"TSM": 8, "TSN": 16, "TSK": 4, "WPTM": 2, "WPTN": 4}),
    ):
        run = gemmlab.simulate(number, 16, 32, 24, params | ({"UNROLL": 1} if number == 13 else {}))
        assert (
            run.counts.loads["A"] + run.counts.loads["B"]
            == model.loads(number, run.params)["global"] * 16 * 32 * 24
        )


def test_a_prediction_from_a_smaller_product_keeps_to_the_least_size(device):
    """A run is predicted from 128 cubed; a tile of 160 rows must not make that an error."""
    params = {"TSM": 160, "TSN": 128, "WPTM": 10, "WPTN": 8}
    result = gemmlab.measure(
        13, 200, 150, 140, params=params, device=device, repeats=1, most_seconds=100.0
    )
    assert result.ok
