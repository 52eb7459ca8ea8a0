"""matmul and sgemm: any size, any layout, NumPy or device arrays; a right result or a clear error."""

import itertools
import math
import statistics
import time
from collections import Counter

import numpy as np
import pyopencl as cl
import pyopencl.array as cla
import pytest
from conftest import DEVICES, FULL, NO_SKIP, in_part, lacking
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from texts import SMALL

import gemmlab
from gemmlab import catalog, check, matmul, sgemm
from gemmlab.blas import passes, products

SIZES = (1, 2, 3, 31, 32, 33, 127, 128, 129, 257)


def triples():
    """All sizes against each other in full runs; else 100 in which every pair of M, N, K meets every pair of sizes."""
    if FULL:
        return list(itertools.product(SIZES, repeat=3))
    count = len(SIZES)
    return [(SIZES[i], SIZES[j], SIZES[(i + j) % count]) for i in range(count) for j in range(count)]


def test_the_sample_of_sizes_covers_every_pair():
    chosen = triples()
    for x, y in itertools.combinations(range(3), 2):
        assert {(t[x], t[y]) for t in chosen} == set(itertools.product(SIZES, repeat=2))


#: Kernels that take any size by themselves or by padding; 13 needs a whole tile (see tests/test_edges.py).
ANY_SIZE = [number for number, spec in catalog.items() if spec.edges != "shift" and not spec.tensor]
SOME = in_part(ANY_SIZE, 3)  # for tests that try many operands with each


@pytest.mark.parametrize("number", ANY_SIZE)
def test_sizes(number, some_device):
    wrong = []
    for count, (m, n, k) in enumerate(triples()):
        a, b = check.exact_inputs(m, n, k, seed=count)
        a = np.ascontiguousarray(a) if count % 2 else a  # both orders take turns
        b = np.ascontiguousarray(b) if count // 2 % 2 else b
        c = matmul(a, b, kernel=number, device=some_device)
        verdict = check.exact(c, a, b)
        if not verdict.ok or c.dtype != np.float32 or not c.flags.c_contiguous:
            wrong.append(f"{m} x {n} x {k}: {verdict}")
    assert not wrong


def test_accuracy_on_random_data(device):
    for number, (m, n, k) in itertools.product(SOME, ((129, 33, 257), (31, 257, 1), (1, 1, 2000))):
        for kind in ("uniform", "normal"):
            a, b = check.random_inputs(m, n, k, kind=kind)
            verdict = check.accuracy(matmul(a, b, kernel=number, params=SMALL[number], device=device), a, b)
            assert verdict.ok, (number, m, n, k, kind, verdict)


def test_a_large_product(device):
    a, b = check.exact_inputs(700, 900, 1100)
    assert check.exact_large(matmul(a, b, device=device), a, b)


# Random inputs: one description, drawn by hypothesis, made into arrays here

SETTINGS = ((None, None), (1, {"TS": 4}), (2, {"TS": 8}), (2, None), (3, {"TS": 16, "WPT": 2}), (3, None))
HOST_LAYOUTS = ("C", "F", "strided", "backwards", "upside down", "read-only", "broadcast", "offset")
DEVICE_LAYOUTS = 3 * ("C", "F", "block", "block of columns", "transposed block") + ("every second",)
LENGTHS = st.one_of(st.integers(0, 5), st.integers(1, 40), st.sampled_from((15, 16, 17, 31, 32, 33, 63, 64, 65)))
SCALARS = st.one_of(
    st.sampled_from((0, 1, -1, 2, 0.5, 0.1, True, np.float32(3), np.float64(0.3), np.int64(-2))),
    st.sampled_from((math.nan, math.inf, -math.inf, 0.0, -0.0, 1e-50)),
    st.floats(-100, 100),
)
WRONG_DTYPES = st.sampled_from(("float64", "float16", "int32", "complex64", "bool", "object"))


@st.composite
def calls(draw):
    """What a call of sgemm is made of."""
    m, n, k = (draw(LENGTHS) for _ in range(3))
    on_device = draw(st.booleans())
    layouts = st.sampled_from(DEVICE_LAYOUTS if on_device else HOST_LAYOUTS)
    shapes, dtypes = [(m, k), (k, n), (m, n)], ["float32"] * 3
    if draw(st.integers(0, 14)) == 0:  # sometimes a wrong type
        dtypes[draw(st.integers(0, 2))] = draw(WRONG_DTYPES)
    if draw(st.integers(0, 19)) == 0:  # sometimes shapes that do not match
        which = draw(st.integers(0, 2))
        shapes[which] = (shapes[which][0] + draw(st.integers(0, 1)), shapes[which][1] + 1)
    return {
        "shapes": shapes,
        "on_device": on_device,
        "layouts": [draw(layouts) for _ in shapes],
        "dtypes": dtypes,
        "trans": (draw(st.booleans()), draw(st.booleans())),
        "alpha": draw(SCALARS),
        "beta": draw(SCALARS),
        "special": draw(st.sampled_from((None, None, None, "nan", "inf"))),
        "setting": draw(st.sampled_from(SETTINGS)),
        "device": draw(st.sampled_from(sorted(DEVICES) or [""])),
        "with_c": draw(st.integers(0, 14)) > 0,
        "seed": draw(st.integers(0, 2**32)),
    }


def values(rng, shape, special) -> np.ndarray:
    x = (rng.random(shape) * 2 - 1).astype(np.float32)
    if special and x.size:
        for _ in range(int(rng.integers(0, 3))):
            x[tuple(rng.integers(0, size) for size in shape)] = rng.choice(
                {"nan": [np.nan], "inf": [np.inf, -np.inf]}[special]
            )
    return x


def laid_out(x: np.ndarray, how: str) -> np.ndarray:
    """The same values (for "broadcast" those of the first row), in memory as `how` says."""
    rows, cols = x.shape
    if how == "strided":
        wide = np.full((3 * rows + 1, 2 * cols + 1), 99, x.dtype)
        wide[1::3, 1::2] = x
        return wide[1::3, 1::2]
    if how == "backwards":
        return np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1]
    if how == "upside down":
        return np.asfortranarray(x[::-1])[::-1]
    if how == "read-only":
        return np.frombuffer(x.tobytes(), x.dtype).reshape(x.shape)
    if how == "broadcast":
        return np.broadcast_to(x[:1], x.shape) if rows else x
    if how == "offset":
        around = np.full((rows + 2, cols + 3), 99, x.dtype)
        around[1:-1, 1:-2] = x
        return around[1:-1, 1:-2]
    return np.array(x, order=how)


def to_device(queue, x: np.ndarray, how: str) -> cla.Array:
    rows, cols = x.shape
    if how in "CF":
        return cla.to_device(queue, np.array(x, order=how))
    if how == "every second":
        wide = np.full((rows, 2 * cols), 99, x.dtype)
        wide[:, ::2] = x
        return cla.to_device(queue, wide)[:, ::2] if x.size else cla.to_device(queue, x)
    around = np.full((rows + 3, cols + 5), 99, x.dtype)
    around[2:-1, 3:-2] = x
    if how == "transposed block":
        return cla.to_device(queue, np.array(around.T, order="C")).T[2 : rows + 2, 3 : cols + 3]
    return cla.to_device(queue, np.array(around, order="F" if "columns" in how else "C"))[2 : rows + 2, 3 : cols + 3]


def expected(alpha, a, b, beta, c):
    """The result in float64 by NumPy, and how far off float32 may be.

    The bound of `check`, times |alpha|; then one rounding for each of alpha, the product with it, beta C
    and the sum, each relative to what has been summed.
    """
    alpha, beta = float(np.float32(alpha)), float(np.float32(beta))
    m, n, k = a.shape[0], b.shape[1], a.shape[1]
    out, off = np.zeros((m, n)), np.zeros((m, n))
    with np.errstate(invalid="ignore", over="ignore"):
        if alpha != 0 and k:
            a64, b64 = a.astype(np.float64), b.astype(np.float64)
            out = out + alpha * (a64 @ b64)
            off = off + abs(alpha) * (check.bound(a, b, arbitrary=True) + check.EPS * (np.abs(a64) @ np.abs(b64)))
        if beta != 0:
            out = out + beta * c.astype(np.float64)
            off = off + check.EPS * np.abs(beta * c.astype(np.float64))
    return out, off + check.TINY


def agrees(got: np.ndarray, want: np.ndarray, off: np.ndarray) -> bool:
    """NaN where NaN is expected, the same infinities, all else within its bound."""
    finite = np.isfinite(want)
    with np.errstate(invalid="ignore"):
        near = np.abs(got.astype(np.float64) - want) <= off
    return bool(np.where(finite, near, np.isnan(want) & np.isnan(got) | (want == got)).all())


def test_the_comparison_notices_what_is_wrong():
    want = np.array([[1.0, np.nan, np.inf]])
    off = np.full((1, 3), 1e-6)
    assert agrees(np.float32([[1, np.nan, np.inf]]), want, off)
    for wrong in (
        [1.1, np.nan, np.inf],
        [np.nan, np.nan, np.inf],
        [1, 0, np.inf],
        [1, np.nan, -np.inf],
        [1, np.nan, 9],
    ):
        assert not agrees(np.float32([wrong]), want, off)


#: What a drawn call may be refused with, and a part of the message.
def refusal(call) -> tuple[type[Exception], str] | None:
    names, (ta, tb) = "abc", call["trans"]
    shapes, with_c = call["shapes"], call["with_c"]
    for name, dtype in zip(names[: 2 + with_c], call["dtypes"], strict=False):
        if dtype != "float32":
            return TypeError, f"{name} must be float32, not {dtype}"
    if not with_c and np.float32(call["beta"]) != 0:
        return ValueError, "needs c"
    (m, k), (k2, n) = shapes[0][:: -1 if ta else 1], shapes[1][:: -1 if tb else 1]
    if k != k2:
        return ValueError, f"the columns of a ({k}) must be as many as the rows of b ({k2})"
    if with_c and shapes[2] != (m, n):
        return ValueError, f"c has the shape {shapes[2]}, expected {(m, n)}"
    return None


def make(call):
    """The arrays of a call: on the host, and as they are handed over."""
    rng = np.random.default_rng(call["seed"])
    (ta, tb), shapes = call["trans"], list(call["shapes"])
    # shapes say op(a) and op(b); the arrays lie transposed where asked
    shapes[0], shapes[1] = shapes[0][:: -1 if ta else 1], shapes[1][:: -1 if tb else 1]
    call["shapes"] = shapes
    queue = DEVICES[call["device"]].queue
    hosts, given_arrays = [], []
    for shape, how, dtype in zip(shapes, call["layouts"], call["dtypes"], strict=True):
        x = values(rng, shape, call["special"])
        x = np.broadcast_to(x[:1], shape) if how == "broadcast" and shape[0] else x
        hosts.append(np.array(x))
        if call["on_device"]:
            y = to_device(queue, x, how)
            given_arrays.append(y if dtype in ("float32", "object") else cla.to_device(queue, x.astype(dtype)))
            assert dtype != "float32" or y.shape == shape
        else:
            y = laid_out(x, how)
            given_arrays.append(y if dtype == "float32" else y.astype(dtype))
    if call["on_device"]:
        call["dtypes"] = ["float32" if dtype == "object" else dtype for dtype in call["dtypes"]]
    return hosts, given_arrays


def host(x) -> np.ndarray:
    return x.get() if isinstance(x, cla.Array) else x


def run_and_compare(call) -> str:
    """Make one call and compare; say what came of it."""
    (a, b, c), (ga, gb, gc) = make(call)
    (ta, tb), (number, params) = call["trans"], call["setting"]
    options = {} if number is None else {"kernel": number, "params": params}
    if not call["on_device"]:
        options["device"] = DEVICES[call["device"]]
    refused = refusal(call)
    alpha, beta = call["alpha"], call["beta"]
    try:
        result = sgemm(alpha, ga, gb, beta, gc if call["with_c"] else None, ta, tb, **options)
    except (TypeError, ValueError) as error:
        scattered = "every second" in call["layouts"] and "one dimension of a device array must be contiguous"
        assert refused or (scattered and scattered in str(error)), f"{error} was not to be expected"
        if refused:
            assert isinstance(error, refused[0]) and refused[1] in str(error)
        return "refused"
    assert refused is None, f"{refused} was to be expected"
    want, off = expected(alpha, a.T if ta else a, b.T if tb else b, beta, c)
    assert type(result) is (cla.Array if call["on_device"] else np.ndarray)
    assert result.shape == want.shape and result.dtype == np.float32 and result.flags.c_contiguous
    got = host(result)
    assert agrees(got, want, off), f"sgemm({alpha}, {a.shape}, {b.shape}, {beta}): {got} instead of {want}"
    for before, after, dtype in zip((a, b, c), (ga, gb, gc), call["dtypes"], strict=True):
        if call["on_device"]:
            assert result.queue == after.queue
        else:
            assert not np.shares_memory(result, after)
            assert dtype != "float32" or np.array_equal(before, after, equal_nan=True), "an argument was modified"
    if alpha == 1 and beta == 0 and not (ta or tb):
        assert np.array_equal(host(matmul(ga, gb, **options)), got, equal_nan=True)
    return "right, on a device" if call["on_device"] else "right, NumPy"


@pytest.mark.filterwarnings("ignore:(invalid|overflow)")
def test_random_calls_are_right_or_refused(capsys):
    if not DEVICES:
        lacking("no OpenCL device")
    outcomes, examples = Counter(), 10_000 if FULL else 1000 if NO_SKIP else 400

    @settings(max_examples=examples, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(calls())
    def run(call):
        outcomes[run_and_compare(call)] += 1

    run()
    with capsys.disabled():
        print(f"\nrandom calls: {dict(outcomes)}")
    right = min(outcomes[kind] for kind in ("right, on a device", "right, NumPy"))
    assert right >= examples / 4 and outcomes["refused"] >= examples / 12


# What BLAS promises


def on_both_sides(device, *arrays):
    """The same arrays in NumPy and on the device, each with the options of a call."""
    yield arrays, {"device": device}
    yield tuple(cla.to_device(device.queue, x) for x in arrays), {}


@pytest.mark.parametrize("k", (0, 1, 33))
def test_beta_0_never_reads_c_and_alpha_0_never_reads_a_and_b(k, device):
    rng = np.random.default_rng(0)
    a, b, c = values(rng, (17, k), None), values(rng, (k, 33), None), values(rng, (17, 33), None)
    nan = [np.full_like(x, np.nan) for x in (a, b, c)]
    for (a_, b_, c_, na, nb, nc), options in on_both_sides(device, a, b, c, *nan):
        product = host(sgemm(2, a_, b_, 0, None, **options))
        assert np.isfinite(product).all()
        assert np.array_equal(host(sgemm(2, a_, b_, 0, nc, **options)), product)
        assert np.array_equal(host(sgemm(2, a_, b_, -0.0, nc, **options)), product)
        assert np.array_equal(host(sgemm(0, na, nb, 0.5, c_, **options)), c * np.float32(0.5))
        assert np.array_equal(host(sgemm(0, na, nb, 1, c_, **options)), c)
        assert np.array_equal(host(sgemm(0, na, nb, 0, nc, **options)), np.zeros_like(c))


def test_c_is_not_modified_and_the_result_is_new(device):
    rng = np.random.default_rng(0)
    a, b, c = (values(rng, shape, None) for shape in ((40, 20), (20, 30), (40, 30)))
    kept = [x.copy() for x in (a, b, c)]
    for arrays, options in on_both_sides(device, a, b, c):
        for factors in ((1, 1), (2, 0), (0, 1), (0, 0), (1, 0)):
            result = sgemm(factors[0], arrays[0], arrays[1], factors[1], arrays[2], **options)
            result.fill(np.float32(7))
            assert all(np.array_equal(host(x), before) for x, before in zip(arrays, kept, strict=True)), factors


def test_nan_and_infinity_propagate_as_in_numpy(device):
    """Also past zero padding: an infinity in the last row or column meets the zeroes added there."""
    for number in in_part((n for n, spec in catalog.items() if not spec.tensor), 3):
        for i, j, value in itertools.product((0, 36), (0, 40), (np.nan, np.inf, -np.inf)):
            rng = np.random.default_rng(0)
            a, b = values(rng, (37, 41), None), values(rng, (41, 43), None)
            a[i, j] = value
            b[j, 5] = 0
            b[(j + 7) % 41, 42] = np.inf
            with np.errstate(invalid="ignore"):
                want = a @ b
            got = matmul(a, b, kernel=number, params=SMALL[number], device=device)
            assert np.array_equal(np.isnan(got), np.isnan(want))
            assert np.array_equal(got[np.isinf(want)], want[np.isinf(want)])
            assert np.isfinite(got[np.isfinite(want)]).all()
            assert np.isnan(want).any() and np.isfinite(want).any()


@pytest.mark.parametrize("shape", [(0, 0, 0), (0, 3, 2), (3, 0, 2), (3, 2, 0), (0, 0, 5), (1, 1, 0), (1, 1, 1)])
def test_empty_and_tiny(shape, device):
    m, n, k = shape
    a, b, c = np.ones((m, k), np.float32), np.ones((k, n), np.float32), np.full((m, n), 5, np.float32)
    for (a_, b_, c_), options in on_both_sides(device, a, b, c):
        for number in SOME:
            result = matmul(a_, b_, kernel=number, params=SMALL[number], **options)
            assert type(result) is type(a_) and result.dtype == np.float32
            assert np.array_equal(host(result), np.full((m, n), k, np.float32))
        result = sgemm(2, a_, b_, 3, c_, **options)
        assert np.array_equal(host(result), np.full((m, n), 2 * k + 15, np.float32))


def test_transposing_is_as_in_scipy(device):
    a, b = check.exact_inputs(34, 45, 23)
    for ta, tb in itertools.product((False, True, 0, 1, np.True_), repeat=2):
        stored = (a.T if ta else a), (b.T if tb else b)
        for order in "CF":
            given_arrays = [np.array(x, order=order) for x in stored]
            got = sgemm(1.0, *given_arrays, trans_a=ta, trans_b=tb, device=device)
            assert check.exact(got, a, b).ok


@pytest.fixture
def forgetting():
    """Products are worked out anew, and those of the test are forgotten after it."""
    caches = products._remembered, products._kept
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


@pytest.mark.parametrize(
    "m, n, k, params",
    [
        (64, 32, 48, {}),
        (67, 45, 33, {"WIDTH": 1}),
        (131, 70, 16, {"WIDTH": 1, "SPLIT": 8}),
        (68, 132, 16, {"SPLIT": 8}),
        (130, 66, 16, {"TRANSPOSED": 1}),
    ],
)
def test_two_transposed_operands_need_no_pass(m, n, k, params, some_device, monkeypatch, forgetting):
    """What "auto" takes on a GPU multiplies them in the opposite order, and stores the transpose of the result."""
    made = []
    original = passes.Session.launch

    def launch(self, name, bound):
        made.append(name)
        original(self, name, bound)

    small = {"TSM": 32, "TSN": 32, "TSK": 8, "WPTM": 4, "WPTN": 4, "TRANSPOSED": 0, **params}
    chosen = "warp_tiling", tuple(catalog["warp_tiling"].complete(small).items())
    monkeypatch.setattr(passes.Session, "launch", launch)
    monkeypatch.setattr(products.packed, "takes", lambda *call: False)
    monkeypatch.setattr(products.choice, "choose", lambda *call: chosen)
    a, b = check.exact_inputs(m, n, k)
    c = np.ones((m, n), np.float32)
    for x, y in itertools.product("CF", repeat=2):
        made.clear()
        u, v = np.array(a, order=x), np.array(b, order=y)
        assert check.exact(matmul(u, v, device=some_device), a, b).ok, (x, y)
        if (x, y) == ("F", "F") and not params.get("TRANSPOSED") and (n % 4 == 0 or params.get("WIDTH") == 1):
            assert made == ["gemm"]
        assert np.array_equal(sgemm(2, u, v, 3, c, device=some_device), 2 * (a @ b) + 3), (x, y)


# Device arrays


def test_results_stay_on_the_queue_of_the_operands(device):
    """A queue of the user's own, in a context of the user's own: kernels are built for it."""
    a, b = check.exact_inputs(20, 30, 40)
    for context in (device.context, cl.Context([device.cl])):
        queue = cl.CommandQueue(context)  # without profiling, as most are
        result = matmul(*(cla.to_device(queue, np.ascontiguousarray(x)) for x in (a, b)))
        assert isinstance(result, cla.Array) and result.queue == queue and result.context == context
        assert check.exact(result.get(), a, b).ok
        again = matmul(result, cla.to_device(queue, np.eye(30, dtype=np.float32)))
        assert np.array_equal(again.get(), a @ b)


def test_a_device_may_be_named_if_it_is_the_arrays_own(device):
    x = cla.to_device(device.queue, np.eye(3, dtype=np.float32))
    assert np.array_equal(matmul(x, x, device=device.index).get(), np.eye(3))


def test_a_product_with_itself(device):
    x = check.exact_inputs(33, 1, 33)[0]
    on_device = cla.to_device(device.queue, x)
    assert np.array_equal(matmul(x, x, device=device), x @ x)
    assert np.array_equal(matmul(on_device, on_device).get(), x @ x)
    assert np.array_equal(matmul(on_device, on_device.T).get(), x @ x.T)
    assert np.array_equal(sgemm(1, on_device, on_device, 1, on_device).get(), x @ x + x)


def test_no_pass_is_made_that_the_layout_spares(device, monkeypatch):
    """Two C-ordered operands of whole tiles need nothing but the kernel, on either side."""
    made = []
    launch = passes.Session._launch
    monkeypatch.setattr(
        passes.Session,
        "_launch",
        lambda self, file, name, *rest: (made.append(name), launch(self, file, name, *rest)),
    )
    a, b = check.exact_inputs(64, 32, 96)
    for order, needed in (("CC", set()), ("FC", {"transpose"}), ("CF", {"transpose"})):
        x, y = np.array(a, order=order[0]), np.array(b, order=order[1])
        for (x_, y_), options in on_both_sides(device, x, y):
            for number in (1, 2, 3):
                made.clear()
                result = matmul(x_, y_, kernel=number, params={"TS": 32}, **options)
                assert check.exact(host(result), a, b).ok
                assert set(made) == needed, (order, number, type(x_))


@pytest.mark.parametrize("transposed", (0, 1))
def test_kernel_11_takes_every_layout_and_transposes_what_it_must(transposed, device, monkeypatch):
    """With TRANSPOSED = 0 two C-ordered operands need nothing but the kernel; with 1 an F-ordered a does not."""
    made = []
    original = passes.Session.multiply

    def multiply(self, *args, **options):
        out = original(self, *args, **options)
        made.extend(name for name, _ in self.events)
        return out

    monkeypatch.setattr(passes.Session, "multiply", multiply)
    params = {"RX": 4, "RY": 2, "RK": 2, "WIDTH": 4, "GX": 2, "GY": 4, "TRANSPOSED": transposed}
    for m, n, k in ((32, 48, 64), (37, 29, 41)):
        whole = m == 32
        a, b = check.exact_inputs(m, n, k)
        for x in HOST_LAYOUTS:
            if x == "broadcast":  # its values are others
                continue
            for y in "CF":
                made.clear()
                got = matmul(laid_out(a, x), laid_out(b, y), kernel=11, params=params, device=device)
                assert check.exact(got, a, b).ok, (x, y)
                if whole and x in "CF":
                    needed = (y == "F") + ((x == "C") == bool(transposed))
                    assert sorted(made) == ["gemm"] + needed * ["transpose"], (x, y)
        for x, y in itertools.product(dict.fromkeys(DEVICE_LAYOUTS[:5]), repeat=2):
            arrays = to_device(device.queue, a, x), to_device(device.queue, b, y)
            assert check.exact(matmul(*arrays, kernel=11, params=params).get(), a, b).ok, (x, y)


def test_many_threads_share_the_kernels(device):
    from concurrent.futures import ThreadPoolExecutor

    def one(seed):
        a, b = check.exact_inputs(20 + seed % 7, 33, 40, seed)
        return check.exact(matmul(a, b, device=device, kernel=1 + seed % 3), a, b).ok

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(one, range(80)))


# Host time


def test_host_time_of_matmul_on_device_arrays(device, capsys):
    """What matmul adds to the bare launch, with everything built: aim 150 microseconds, the guard is generous."""
    a, b = check.exact_inputs(64, 64, 64)
    queue = device.queue
    da, db = (cla.to_device(queue, np.ascontiguousarray(x)) for x in (a, b))
    out = cla.empty(queue, (64, 64), np.float32)
    kernel = gemmlab.kernel(3, None, device)

    def median(call) -> float:
        times = []
        for _ in range(400):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
            queue.finish()
        return statistics.median(times) * 1e6

    result = matmul(da, db, kernel=3)
    bare = [median(lambda: kernel(64, 64, 64, db.data, da.data, out.data, queue)) for _ in range(2)][1]
    whole = median(lambda: matmul(da, db, kernel=3))
    with capsys.disabled():
        print(
            f"\nhost time of matmul on {device}: {whole:.0f} us, the bare launch {bare:.0f} us: {whole - bare:.0f} more"
        )
    assert check.exact(result.get(), a, b).ok and check.exact(out.get(), a, b).ok
    assert whole - bare < 1e6
