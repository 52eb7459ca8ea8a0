"""gemm in four precisions: any shape, layout, operation and factor; a right result in one launch, or a clear error."""

import dataclasses
import itertools

import numpy as np
import pyopencl.array as cla
import pytest
from configurations import SMALL_TILE
from conftest import FULL, NO_SKIP
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_errors import refused
from test_matmul import host, laid_out, to_device

import gemmlab
from gemmlab import cgemm, check, dgemm, gemm, matmul, sgemm, zgemm
from gemmlab.blas import passes

NAMED = {"float32": sgemm, "float64": dgemm, "complex64": cgemm, "complex128": zgemm}
OTHERS = tuple(NAMED)[1:]
APPLIED = {0: lambda x: x, 1: lambda x: x.T, 2: lambda x: x.conj().T}
FAMILY = {"kernel": "family", "params": SMALL_TILE}


def whole(dtype, shape, seed=0) -> np.ndarray:
    """Whole numbers, or Gaussian integers, whose products and sums no type rounds."""
    return np.array(check.exact_inputs(*shape[:1], 1, shape[1], seed, dtype)[0])


def factors(dtype) -> tuple:
    return (2 - 3j, -1 + 2j) if np.dtype(dtype).kind == "c" else (2, -3)


@st.composite
def products(draw):
    """What a call of gemm is made of. Few kernels serve them all, because each has to be compiled."""
    sides = st.sampled_from((1, 2, 3, 5, 7, 11, 13, 17, 19, 21))
    on_device = draw(st.booleans())
    dtype = draw(st.sampled_from(OTHERS if FULL else ("float64", "complex64")))
    layouts = ("C", "F", "block", "block of columns", "transposed block") if on_device else (
        "C", "F", "strided", "backwards", "upside down", "offset")  # fmt: skip
    return {
        "dtype": dtype,
        "sizes": tuple(draw(sides) for _ in range(3)),
        "on_device": on_device,
        "layouts": [draw(st.sampled_from(layouts)) for _ in range(3)],
        "trans": (draw(st.integers(0, 2)), draw(st.integers(0, 2))),
        "alpha": draw(st.sampled_from((1, 0, -1, 2))),
        "beta": draw(st.sampled_from((0, 1, -2) if FULL or dtype == "float64" else (1, -2))),
        "imaginary": draw(st.sampled_from((0, 1, -2))),
        "overwrite": draw(st.booleans()),
        "seed": draw(st.integers(0, 2**16)),
    }


def test_random_products_are_exact(any_device):
    """Beside NumPy, for random sizes, layouts, operations and factors, on either side."""

    @settings(max_examples=1500 if FULL else 200 if NO_SKIP else 40, deadline=None, derandomize=True,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(products())
    def run(call):
        dtype, (m, n, k), (ta, tb), seed = call["dtype"], call["sizes"], call["trans"], call["seed"]
        alpha, beta = (
            x * (1 + call["imaginary"] * 1j) if dtype[0] == "c" else x for x in (call["alpha"], call["beta"])
        )
        shapes = [(m, k) if ta == 0 else (k, m), (k, n) if tb == 0 else (n, k), (m, n)]
        a, b, c = (whole(dtype, shape, seed + i) for i, shape in enumerate(shapes))
        if call["on_device"]:
            arrays = [to_device(any_device.queue, x, how) for x, how in zip((a, b, c), call["layouts"], strict=True)]
            options = {}
        else:
            arrays = [laid_out(x, how) for x, how in zip((a, b, c), call["layouts"], strict=True)]
            options = {"device": any_device}
        got = gemm(alpha, arrays[0], arrays[1], beta, arrays[2], ta, tb, call["overwrite"], **FAMILY, **options)
        want = alpha * (APPLIED[ta](a) @ APPLIED[tb](b)) + beta * c
        assert type(got) is type(arrays[0]) and got.dtype == dtype and got.shape == (m, n) and got.flags.c_contiguous
        assert np.array_equal(host(got), want)
        for x, array in zip((a, b, c), arrays, strict=True):
            readable = isinstance(array, np.ndarray) or array.flags.forc  # PyOpenCL reads no views
            assert array is got or not readable or np.array_equal(host(array), x), "an argument was modified"

    run()


@pytest.mark.parametrize("dtype", NAMED)
def test_accuracy_on_random_data(dtype, device):
    for kind, (m, n, k) in itertools.product(("uniform", "normal"), ((37, 21, 129), (1, 1, 999))):
        a, b = check.random_inputs(m, n, k, kind=kind, dtype=dtype)
        got = matmul(a, b, device=device, **FAMILY)
        assert got.dtype == dtype
        verdict = check.accuracy(got, a, b)
        assert verdict.ok, (kind, m, n, k, verdict)


@pytest.mark.parametrize("dtype", OTHERS)
def test_matmul_and_gemm_go_by_the_type_of_the_operands(dtype, device):
    """With the tile that the family chooses by itself."""
    a, b = check.exact_inputs(70, 67, 33, dtype=dtype)
    c, (alpha, beta) = whole(dtype, (70, 67)), factors(dtype)
    assert check.exact(matmul(a, b, device=device), a, b).ok
    got = NAMED[dtype](alpha, a, b, beta, c, device=device)
    assert got.dtype == dtype and np.array_equal(got, alpha * (a @ b) + beta * c)
    assert np.array_equal(gemm(alpha, a, b, beta, c, device=device), got)


@pytest.mark.parametrize("dtype", ("float32", "complex64"))
def test_what_beta_and_alpha_0_do_not_read(dtype, any_device):
    a, b = check.exact_inputs(9, 7, 5, dtype=dtype)
    c, (alpha, beta) = whole(dtype, (9, 7)), factors(dtype)
    nan = [np.full_like(x, np.nan) for x in (a, b, c)]
    for options in ({"device": any_device} | FAMILY, {"device": any_device}):
        if dtype != "float32" and "params" not in options:
            continue
        assert np.array_equal(gemm(alpha, a, b, 0, nan[2], **options), alpha * (a @ b))
        assert np.array_equal(gemm(0, nan[0], nan[1], beta, c, **options), beta * c)
        assert np.array_equal(gemm(0, nan[0], nan[1], 0, nan[2], **options), np.zeros_like(c))
        empty = gemm(alpha, a[:, :0], b[:0], beta, c, **options)
        assert np.array_equal(empty, beta * c) and empty.dtype == dtype
        assert gemm(alpha, a[:0], b, **options).shape == (0, 7)


@pytest.mark.parametrize("options", [{}, FAMILY], ids=["ladder", "family"])
def test_c_is_overwritten_where_it_may_be(options, device):
    a, b = check.exact_inputs(20, 12, 9)
    c = whole("float32", (20, 12))
    for alpha, beta in ((1, 0), (2, 3), (0, 2), (1, 1)):
        want = alpha * (a @ b) + beta * c
        for order, reused in (("C", True), ("F", False)):
            given_c = np.array(c, order=order)
            got = sgemm(alpha, a, b, beta, given_c, overwrite_c=True, device=device, **options)
            assert np.array_equal(got, want) and (got is given_c) == (reused and (alpha or beta) != 0)
            given_c = cla.to_device(device.queue, np.array(c, order=order))
            operands = (cla.to_device(device.queue, x) for x in (a, b))
            got = sgemm(alpha, *operands, beta, given_c, overwrite_c=1, **options)
            assert np.array_equal(got.get(), want) and (got is given_c) == (reused and (alpha or beta) != 0)
    read_only = np.array(c)
    read_only.flags.writeable = False
    assert sgemm(1, a, b, 1, read_only, overwrite_c=True, device=device, **options) is not read_only


def test_an_operand_is_never_overwritten(any_device):
    """Not even where it is also c."""
    x = whole("float64", (12, 12))
    on_device = cla.to_device(any_device.queue, x)
    got = dgemm(1, on_device, on_device, 2, on_device, overwrite_c=True, **FAMILY)
    assert np.array_equal(got.get(), x @ x + 2 * x) and np.array_equal(on_device.get(), x)


def test_one_launch_does_everything(any_device, monkeypatch):
    """Views, orders, operations, beta and edges need no pass of their own."""
    launched = []
    left = passes.Session.__exit__
    monkeypatch.setattr(
        passes.Session, "__exit__", lambda self, *e: (launched.append([n for n, _ in self.events]), left(self, *e))[1]
    )
    a, b = check.exact_inputs(21, 13, 11, dtype="complex64")
    c = whole("complex64", (21, 13))
    for how in ("C", "F", "block", "transposed block"):
        arrays = [to_device(any_device.queue, x, how) for x in (a.conj().T, b.T, c)]
        got = cgemm(2, *arrays[:2], 3j, arrays[2], 2, 1, **FAMILY)
        assert np.array_equal(got.get(), 2 * (a @ b) + 3j * c)
    assert launched == 4 * [["gemm"]]


def split_wrongly(device, dtype, turn: int, sizes) -> bool:
    """Whether a product in several launches is not exact; operations, views and the side take turns."""
    m, n, k = sizes
    a, b = check.exact_inputs(m, n, k, turn, dtype)
    c, ta, tb = whole(dtype, (m, n)), turn % 3, turn // 2 % 3
    arrays = [APPLIED[ta](a), APPLIED[tb](b), c]
    options = FAMILY | {"edges": "split"}
    if turn % 2:
        arrays = [to_device(device.queue, x, how) for x, how in zip(arrays, ("block", "F", "F"), strict=True)]
    else:
        options["device"] = device
    got = gemm(2, *arrays[:2], -3, arrays[2], ta, tb, **options)
    return not np.array_equal(got.get() if turn % 2 else got, 2 * (a @ b) - 3 * c)


def test_up_to_four_launches_are_exact(any_device):
    for turn, sizes in enumerate([(9, 18, 12), (13, 6, 5)]):
        assert not split_wrongly(any_device, ("float32", "complex64")[turn], turn, sizes), sizes


@pytest.mark.parametrize("dtype", NAMED)
def test_every_combination_of_launches_is_exact(dtype, any_device):
    """Random shapes."""
    if dtype in ("float64", "complex128") and "double" not in any_device.features:
        pytest.skip("no double precision")
    for turn, sizes in enumerate(np.random.default_rng(14).integers(1, 40, (9, 3)).tolist()):
        assert not split_wrongly(any_device, dtype, turn, sizes), sizes


def test_split_is_for_every_type_and_the_rules_choose_the_tile(any_device):
    for dtype in ("float32", "complex64"):
        a, b = check.exact_inputs(40, 21, 19, dtype=dtype)
        assert np.array_equal(matmul(a, b, edges="split", device=any_device), a @ b)
    refused(
        ValueError, ["'split'", "edges must be one of"], matmul, a.real.copy(), b.real.copy(), kernel=3, edges="split"
    )
    for m, n, k in ((0, 3, 2), (3, 2, 0)):
        empty = np.ones((m, k), "f4"), np.ones((k, n), "f4")
        assert np.array_equal(matmul(*empty, edges="split", device=any_device), empty[0] @ empty[1])


def test_transpositions_have_three_spellings(any_device):
    a, b = check.exact_inputs(9, 5, 7, dtype="complex64")
    want = a @ b
    for ta, tb in (("C", 1), (2, "T"), (np.int64(2), True)):
        assert np.array_equal(cgemm(1, a.conj().T, b.T, trans_a=ta, trans_b=tb, device=any_device, **FAMILY), want)
    real, other = check.exact_inputs(9, 5, 7)
    for ta in (1, 2, "T", "C", True):
        assert np.array_equal(sgemm(1, real.T, other, trans_a=ta, device=any_device), real @ other)


# Bad input


def test_types_that_do_not_match(any_device):
    good = {name: np.ones((4, 4), name) for name in NAMED}
    for first, second in itertools.permutations(NAMED, 2):
        able = ".astype" in refused(TypeError, [f"b must be {first}, not {second}"], matmul, good[first], good[second])
        assert able == (second[0] != "c" or first[0] == "c")
        refused(TypeError, [f"c must be {first}, not {second}"], gemm, 1, good[first], good[first], 1, good[second])
        refused(TypeError, [f"a must be {first}, not {second}"], NAMED[first], 1, good[second], good[second])
    refused(
        TypeError, ["a must be float32, float64, complex64 or complex128", "int32"], matmul, np.ones((2, 2), "i4"), 1
    )


def test_factors_that_do_not_fit(any_device):
    x, z = np.ones((4, 4)), np.ones((4, 4), np.complex64)
    refused(TypeError, ["alpha must be a real number, not complex"], dgemm, 1j, x, x)
    refused(TypeError, ["beta must be a number, not str"], cgemm, 1, z, z, "1", z)
    refused(ValueError, ["beta=", "beyond the range of complex64"], cgemm, 1, z, z, 1e39j, z)
    refused(ValueError, ["beyond the range of float64"], dgemm, 10**400, x, x)
    refused(ValueError, ["beta=", "needs c"], cgemm, 1, z, z, 1j)
    refused(ValueError, ["overwrite_c must be True or False", "'yes'"], dgemm, 1, x, x, 1, x, overwrite_c="yes")


def test_what_the_family_does_not_do(any_device):
    x, real = np.ones((4, 4)), np.ones((4, 4), np.float32)
    refused(ValueError, ["kernel 3 multiplies float32", "a is float64", "'auto'"], matmul, x, x, kernel=3)
    refused(ValueError, ["kernel must be one of", "'best'"], matmul, x, x, kernel="best")
    refused(ValueError, ["params needs a kernel", "'family'"], matmul, x, x, params={"TSM": 8})
    refused(ValueError, ["edges='pad'", "a is float64", "'auto'"], matmul, x, x, edges="pad")
    refused(ValueError, ["edges='shift'", "kernel='family'"], matmul, real, real, kernel="family", edges="shift")
    refused(ValueError, ["precision='tf32'", "a is float64"], matmul, x, x, precision="tf32")
    refused(gemmlab.ParameterError, ["no parameter 'TSX'", "TSM"], matmul, x, x, kernel="family", params={"TSX": 8})
    refused(gemmlab.ParameterError, ["micro-tiles of 4"], matmul, x, x, kernel="family", params={"TSM": 30})


def test_a_device_without_double_precision_says_so(any_device):
    single = dataclasses.replace(any_device, features=any_device.features - {"double"})
    for name, instead in (("float64", "float32"), ("complex128", "complex64")):
        x = np.ones((4, 4), name)
        refused(ValueError, [name, "double precision", str(single), instead], matmul, x, x, device=single)
        refused(ValueError, [name, "double precision"], gemm, 1, x, x, device=single)


def test_memory_and_indices_are_counted_in_elements(any_device):
    poor = dataclasses.replace(any_device, memory=2**20, largest=2**19)
    x = np.lib.stride_tricks.as_strided(np.ones(1), (300, 300), (0, 0))
    refused(MemoryError, ["b needs 720,000 bytes", str(poor)], matmul, x, x, device=poor)
    wide = np.lib.stride_tricks.as_strided(np.ones(1), (2**16, 2**15), (0, 0))
    refused(ValueError, ["a has 2,147,483,648 elements", "32 bits"], matmul, wide, wide[: 2**15, :1])


@pytest.mark.parametrize(("dtype", "unit"), [("float64", 2), ("complex64", 1)])
@pytest.mark.parametrize("shares", [1, 3])
def test_kernels_of_warps_serve_batches_parts_and_factors(dtype, unit, shares, any_device):
    warps = {"TSM": 16, "TSN": 16, "TSK": 8, "WPTM": 2, "WPTN": 2, "UNROLL": 8, "WIDTH": 2, "STAGES": 3, "UNIT": unit}
    warps["SHARES"] = shares
    options = {"kernel": "family", "params": warps, "device": any_device}
    a, b = whole(dtype, (37, 29)), whole(dtype, (29, 41), 1)
    pairs = np.stack([a, -a]), np.stack([b, 2 * b])
    assert np.array_equal(matmul(*pairs, **options), pairs[0] @ pairs[1])
    assert np.array_equal(matmul(a, b, edges="split", **options), a @ b)
    alpha, beta = factors(dtype)
    c = whole(dtype, (37, 41), 2)
    got = gemm(alpha, np.ascontiguousarray(a.T), b, beta, c, trans_a=1, **options)
    assert np.array_equal(got, (alpha * (a @ b) + beta * c).astype(dtype))
