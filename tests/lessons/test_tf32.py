"""Chapter 18: the numbers of TF32 in NumPy."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gemmlab import check
from gemmlab.measurement import records
from lessons import tf32


@pytest.fixture(scope="module")
def binade() -> np.ndarray:
    """Every float32 from 1 to 2."""
    return (np.arange(2**23, dtype=np.uint32) + np.float32(1).view(np.uint32)).view(np.float32)


def test_nearest_is_nearest_for_every_fraction(binade):
    """On a grid of steps of 2^-10; of two that are equally near, the larger."""
    big = tf32.nearest(binade)
    assert not (big.view(np.uint32) & 0x1FFF).any()
    assert (big == np.floor(binade.astype(np.float64) * 1024 + 0.5) / 1024).all()
    assert np.array_equal(tf32.nearest(-binade), -big)
    assert (tf32.cut(binade) == np.floor(binade.astype(np.float64) * 1024) / 1024).all()


def test_two_parts_hold_all_but_a_float_s_last_bit(binade):
    big, small = tf32.parts(binade)
    lost = binade.astype(np.float64) - big - small
    assert not ((big.view(np.uint32) | small.view(np.uint32)) & 0x1FFF).any()
    assert set(np.unique(np.abs(lost))) == {0, 2.0**-23}
    assert np.mean(lost == 0) == pytest.approx(0.75, abs=0.001)
    assert np.array_equal((binade - big).astype(np.float64), binade.astype(np.float64) - big), (
        "the rest is a float"
    )


@settings(max_examples=300, deadline=None)
@given(st.floats(-(2.0**100), 2.0**100))
def test_cutting_goes_toward_zero(x):
    assume(abs(x) > 2.0**-120)
    down = float(tf32.toward_zero(np.float64([x]))[0])
    assert abs(down) <= abs(x) and abs(x - down) < 2.0**-23 * abs(x) and down * x > 0
    assert abs(x) < abs(float(np.nextafter(np.float32(down), np.float32(np.copysign(np.inf, x)))))


def test_numbers_that_cannot_be_split():
    """Why `range.cl` looks for them."""
    with np.errstate(invalid="ignore"):
        big, small = tf32.parts(np.float32([np.inf, 3.4028e38]))
        assert np.isinf(big).all() and np.isnan(small[0]) and np.isinf(small[1])
    x = np.float32(np.float32(1.2345678) * 2.0 ** np.arange(-130, -99))
    big, small = tf32.parts(x)
    lost = np.abs(x - big.astype(np.float64) - small) / x
    assert lost[-1] <= 2.0**-22 and lost[0] > 2.0**-14


@pytest.mark.parametrize("kind", ("normal", "uniform"))
@pytest.mark.parametrize("k", (8, 64, 500, 1023))
def test_products_are_within_their_bounds(kind, k):
    """Three instructions for 8 steps, each sum off by less than 2^-23 of what it holds."""
    a, b = check.random_inputs(20, 30, k, seed=k, kind=kind)
    exact, size = (
        x.astype(np.float64) @ y for x, y in ((a, b.astype(np.float64)), (np.abs(a), np.abs(b)))
    )
    steps = -(-k // tf32.STEP)
    for parts, loss in ((1, 2.0**-10 + 2.0**-22), (2, 2.0**-20)):
        for every in (0, 1, 2, 8):
            c = tf32.product(a, b, parts, every)
            assert (np.abs(c - exact) <= (loss + 6 * steps * 2.0**-23) * size).all(), (parts, every)
    assert check.accuracy(tf32.product(a, b), a, b).ok and check.accuracy(tf32.chain(a, b), a, b).ok


def test_exact_inputs_are_exact_in_one_part_and_two():
    a, b = check.exact_inputs(16, 24, 400)
    for parts in (1, 2):
        for every in (0, 1, 3):
            assert check.exact(tf32.product(a, b, parts, every), a, b).ok
    assert check.exact(tf32.chain(a, b), a, b).ok


def test_the_model_is_near_what_was_recorded():
    """At K = 4096, standard normal: within a third of the H200's."""
    rows = records.rows(series="errors", variant="normal", size=4096)
    error = {(row.kernel, row.precision): row.median for row in rows}
    a, b = check.random_inputs(48, 48, 4096, kind="normal")
    assert tf32.relative_error(tf32.product(a, b, 1), a, b) == pytest.approx(
        error["matmul", "tf32"], rel=1 / 3
    )
    assert tf32.relative_error(tf32.chain(a, b), a, b) == pytest.approx(
        error["cuBLAS SGEMM", "float32"], rel=1 / 3
    )
    best = [tf32.relative_error(tf32.product(a, b, 2, every), a, b) for every in (1, 2, 8)]
    assert min(best) / 2 < error["matmul", "tf32x3"] < 2 * max(best)
