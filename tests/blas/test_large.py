"""Matrices that 32-bit indices cannot count, with a limit that small ones exceed."""

import dataclasses

import numpy as np
import pyopencl.array as cla
import pytest

from gemmlab import clear_caches, gemm, matmul
from gemmlab.blas import layout
from gemmlab.blas.arrays import DTYPES

pytestmark = pytest.mark.optimised(False)

LIMIT = 1000
M, N, K = 40, 48, 8


@pytest.fixture
def limited(monkeypatch):
    """Results of 1,000 elements need 64-bit indices."""
    clear_caches()
    monkeypatch.setattr(layout, "INDEX_LIMIT", LIMIT)
    yield
    clear_caches()


def operands(dtype, *sizes):
    """Arrays of whole numbers, exact in every type."""
    rng = np.random.default_rng(0)
    made = [rng.integers(-3, 4, size).astype(dtype) for size in sizes]
    return [x + x.dtype.type(1j) * x[::-1] if x.dtype.kind == "c" else x for x in made]


@pytest.mark.parametrize("dtype", [str(dtype) for dtype in DTYPES])
@pytest.mark.parametrize("kernel", ["auto", "family", "packed"])
@pytest.mark.parametrize("on_device", [False, True])
def test_results_are_right(dtype, kernel, on_device, device, limited):
    if kernel == "packed" and (device.kind != "CPU" or np.dtype(dtype).kind == "c"):
        pytest.skip("it multiplies real numbers on CPUs")
    if np.dtype(dtype).char in "dD" and "double" not in device.features:
        pytest.skip("no double precision")
    a, b, c = operands(dtype, (M, K), (K, N), (M, N))
    (batch,), options = operands(dtype, (3, M, K)), {"kernel": kernel, "device": device}
    put = (lambda x: cla.to_device(device.queue, x)) if on_device else np.array

    def same(got, expected) -> bool:
        return np.array_equal(got.get() if on_device else got, expected)

    assert same(matmul(put(a), put(b), **options), a @ b)
    assert same(gemm(2, put(a), put(b), 3, put(c), **options), 2 * (a @ b) + 3 * c)
    there = put(c)
    got = gemm(2, put(a), put(b), -1, there, overwrite_c=True, **options)
    assert got is there and same(got, 2 * (a @ b) - c)
    assert same(gemm(0, put(a), put(b), 3, put(c), **options), 3 * c)
    whole = put(np.zeros((M, N + 5), dtype))
    matmul(put(a), put(b), out=whole[:, :N], **options)
    assert same(whole, np.pad(a @ b, ((0, 0), (0, 5))))
    more = np.stack([b, 2 * b, -b])
    assert same(matmul(put(batch), put(more), **options), batch @ more)


def test_what_cannot_be_counted_is_refused(device, limited):
    wide, tall = operands("f4", (M, N), (N, K))
    a, b = operands("f4", (M, K), (K, N))
    cases = [(name, {"kernel": "family"}) for name in ("a", "b")]
    if device.kind == "CPU":
        cases += [(name, {"kernel": "packed"}) for name in ("a", "b")]
    for name, options in [*cases, ("a", {"kernel": 3, "params": {"TS": 8, "WPT": 2}})]:
        pair = (wide, tall) if name == "a" else (tall.T, wide.T)
        with pytest.raises(ValueError, match=f"^{name} .*32 bits"):
            matmul(*pair, device=device, **options)
    for x, y in ((a, b), (np.stack([a, a]), np.stack([b, b]))):
        with pytest.raises(ValueError, match="^the result .*32 bits"):
            matmul(x, y, kernel=3, params={"TS": 8, "WPT": 2}, device=device)


@pytest.mark.parametrize("kernel", ["auto", "family", 3])
def test_sizes_beyond_32_bits_are_refused_before_any_memory_is_taken(kernel, device):
    roomy = dataclasses.replace(device, memory=2**50, largest=2**50)
    one, long = np.ones((1, 1), "f4"), 2**31
    for name, (x, y) in {
        "m": (np.broadcast_to(one, (long, 1)), one),
        "n": (one, np.broadcast_to(one, (1, long))),
        "k": (np.broadcast_to(one, (1, long)), np.broadcast_to(one, (long, 1))),
    }.items():
        with pytest.raises(ValueError, match=f"{name}=2,147,483,648"):
            matmul(x, y, kernel=kernel, device=roomy)
