"""The checks: they accept what is right, and every wrong product here is caught."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemmlab import check

SIZES = [(0, 4, 3), (1, 1, 1), (1, 7, 31), (17, 13, 29)]


def exact_case(m=17, n=13, k=29, seed=0):
    a, b = check.exact_inputs(m, n, k, seed)
    return a, b, a @ b


def changed(c, i, j, value):
    out = c.copy(order="F")
    out[i, j] = value
    return out


# Inputs


def test_inputs_are_column_major_float32_and_seeded():
    for make in (check.exact_inputs, check.random_inputs):
        a, b = make(7, 13, 31, 5)
        assert (a.shape, b.shape) == ((7, 31), (31, 13))
        assert a.dtype == b.dtype == np.float32 and a.flags.f_contiguous and b.flags.f_contiguous
        assert np.array_equal(a, make(7, 13, 31, 5)[0])
        assert not np.array_equal(a, make(7, 13, 31, 6)[0])
    for x in check.exact_inputs(20, 20, 20):
        assert set(np.unique(x)) == {-1.5, -0.5, 0.5, 1.5}
    with pytest.raises(ValueError, match="'uniform' or 'normal', not 'odd'"):
        check.random_inputs(1, 1, 1, kind="odd")


def test_the_largest_k_keeps_partial_sums_exact():
    assert 9 * check.EXACT_K < 2**24 <= 9 * (check.EXACT_K + 1)
    with pytest.raises(ValueError, match=f"k={check.EXACT_K + 1} is over {check.EXACT_K}"):
        check.exact_inputs(1, 1, check.EXACT_K + 1)
    a, b, c = exact_case(40, 30, 2000)
    assert np.array_equal(c, a.astype(np.float64) @ b.astype(np.float64))


# Right products pass


@pytest.mark.parametrize("sizes", SIZES)
def test_a_right_product_passes(sizes):
    a, b, c = exact_case(*sizes)
    verdict = check.exact(c, a, b)
    assert verdict == check.Verdict(True, 0.0, 0.0, 0, None)
    assert check.exact_large(np.ascontiguousarray(c), a, b)
    for kind in ("uniform", "normal"):
        a, b = check.random_inputs(*sizes, kind=kind)
        verdict = check.accuracy(a @ b, a, b)
        assert verdict.ok and verdict.error <= verdict.bound


def test_products_of_float16_are_rounded_once():
    """A number four steps of float16 away is too far from the product."""
    a, b = check.random_inputs(30, 20, 500, dtype=np.float16)
    single = a.astype(np.float32) @ b.astype(np.float32)
    once = single.astype(np.float16)
    assert a.dtype == np.float16 and check.accuracy(single, a, b).ok
    assert check.accuracy(once, a, b).ok and not check.accuracy(once.astype(np.float32), a, b).ok
    assert not check.accuracy(changed(once, 3, 5, once[3, 5] * np.float16(1.004)), a, b).ok
    a, b = check.exact_inputs(30, 20, 500, dtype=np.float16)
    once = (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)
    assert check.exact(once, a, b).ok
    assert not check.exact(changed(once, 3, 5, np.nextafter(once[3, 5], np.float16(9))), a, b).ok


# Wrong ones do not


def drop(c, a, b, i, j, p):
    return changed(c, i, j, c[i, j] - a[i, p] * b[p, j])


def double(c, a, b, i, j, p):
    return changed(c, i, j, c[i, j] + a[i, p] * b[p, j])


def infinity(c, a, b, i, j, p):
    return changed(c, i, j, np.inf)


def unwritten(c, a, b, i, j, p):
    """Every checked run begins with NaN everywhere, of whatever sign and payload."""
    return changed(c, i, j, np.frombuffer(np.uint32(0xFFFFFFFF).tobytes(), np.float32)[0])


def swapped_neighbours(c, a, b, i, j, p):
    out = c.copy(order="F")
    other = next(q for q in range(c.shape[0]) if c[q, j] != c[i, j])
    out[[i, other], j] = out[[other, i], j]
    return out


DAMAGES = (drop, double, infinity, unwritten, swapped_neighbours)


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("damage", DAMAGES)
def test_the_exact_checks_reject(damage):
    rng = np.random.default_rng(1)
    for seed in range(20):
        a, b, c = exact_case(seed=seed)
        i, j, p = (int(rng.integers(size)) for size in (*c.shape, a.shape[1]))
        wrong = damage(c, a, b, i, j, p)
        assert not check.exact_large(wrong, a, b, seed=seed), "misses one wrong product in 10^9"
        verdict = check.exact(wrong, a, b)
        assert not verdict.ok and verdict.error > 0
        assert verdict.wrong == (2 if damage is swapped_neighbours else 1)
        row, col, got, want = verdict.first
        assert (row, col) == (i, j) or (damage is swapped_neighbours and col == j)
        assert np.array_equal((got, want), (wrong[row, j], c[row, j]), equal_nan=True)
        assert f"C[{row}, {col}] = " in str(verdict) and f"expected {want:g}" in str(verdict)


@pytest.mark.parametrize("damage", (drop, double, infinity, unwritten))
def test_the_accuracy_check_rejects(damage):
    """Products that matter: those of the larger entries."""
    for seed in range(20):
        a, b = check.random_inputs(17, 13, 29, seed)
        i, j = seed % 17, seed % 13
        p = int(np.argmax(np.abs(a[i, :] * b[:, j])))
        verdict = check.accuracy(damage(a @ b, a, b, i, j, p), a, b)
        assert not verdict.ok and verdict.first[:2] == (i, j) and verdict.wrong == 1


def test_every_dropped_or_doubled_product_shows():
    a, b, c = exact_case(3, 4, 50)
    for i, j, p in itertools.product(range(3), range(4), range(50)):
        assert not check.exact(drop(c, a, b, i, j, p), a, b).ok
        assert not check.exact(double(c, a, b, i, j, p), a, b).ok


def test_the_first_wrong_element_is_the_first_in_column_major_order():
    a, b, c = exact_case()
    wrong = changed(changed(changed(c, 9, 2, 0.5), 1, 7, np.nan), 3, 7, 99)
    verdict = check.exact(wrong, a, b)
    assert verdict.wrong == 3 and verdict.first == (9, 2, 0.5, float(c[9, 2]))
    assert verdict.error == np.inf
    with pytest.raises(ValueError, match=r"c has the shape \(13, 17\), expected \(17, 13\)"):
        check.exact(c.T, a, b)


# The bounds


def forward(terms):
    return np.cumsum(terms, dtype=np.float32)[-1]


def descending(terms):
    return forward(terms[np.argsort(-np.abs(terms))])


def pairwise(terms):
    while len(terms) > 1:
        even = len(terms) // 2 * 2
        terms = np.concatenate([terms[0:even:2] + terms[1:even:2], terms[even:]])
    return terms[0]


ORDERS = (forward, descending, pairwise)


def errors_in_bounds(x, y, order) -> float:
    """The error of a float32 sum of products, as a part of what it may be."""
    a, b = x.reshape(1, -1), y.reshape(-1, 1)
    got = order(x * y)
    assert got.dtype == np.float32
    error = abs(float(got) - (a.astype(np.float64) @ b.astype(np.float64)).item())
    return error / check.bound(a, b).item()


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32), k=st.integers(1, 3000), kind=st.sampled_from(("uniform", "normal")),
    order=st.sampled_from(ORDERS),
)  # fmt: skip
def test_the_bound_for_random_data_holds_in_every_order(seed, k, kind, order):
    a, b = check.random_inputs(1, 1, k, seed, kind)
    assert errors_in_bounds(a.ravel(), b.ravel(), order) <= 1
