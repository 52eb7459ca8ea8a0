"""NumPy operands through pinned memory, in strips: forced on processors, too, with tiny pieces and strips."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from test_out_and_batches import framed, whole

import gemmlab
from gemmlab import check, matmul
from gemmlab.blas import passes, products, staging

LADDER = {"kernel": 3, "params": {"TS": 16, "WPT": 4}}


@pytest.fixture
def staged(monkeypatch):
    """Every product is staged, in up to four strips of 16 rows or more, by pieces of 1000 bytes and two threads."""
    monkeypatch.setattr(staging, "pays", lambda *_: True)
    for name, value in (("STRIP", 16), ("STRIPS", 4), ("PIECE", 1000), ("THREADS", 2)):
        monkeypatch.setattr(staging, name, value)
    staging.staging_of.cache_clear()
    yield
    staging.staging_of.cache_clear()


def test_every_layout(staged, device):
    """Taller, wider, flat and deep products; operands and results by rows, by columns, and with gaps."""
    layouts = ("C", "F", "block", "strided")
    for turn, (m, n, k) in enumerate(((70, 33, 21), (33, 71, 9), (1, 300, 3), (200, 17, 1), (40, 40, 300))):
        a, b = whole((m, k)), whole((k, n), 1)
        for which, (of_a, of_b, of_out) in enumerate(itertools.product(layouts, repeat=3)):
            if (which + turn) % 5:
                continue
            (_, x), (_, y), (memory, out) = framed(a.shape, of_a), framed(b.shape, of_b), framed((m, n), of_out)
            x[...], y[...], expected = a, b, memory.copy()
            assert matmul(x, y, out, device=device, **LADDER) is out
            assert np.array_equal(out, a @ b), (m, n, k, of_a, of_b, of_out)
            out[...] = 7
            assert np.array_equal(memory, expected), "stored outside of out"


def test_other_types_batches_vectors_and_gemm(staged, any_device):
    options = {"device": any_device}
    for dtype in ("float64", "complex64"):
        a, b = check.exact_inputs(50, 30, 20, dtype=dtype)
        assert np.array_equal(matmul(a, b, **options), a @ b)
        assert np.array_equal(gemmlab.gemm(2, a, b.conj().T, 0, None, 0, 2, **options), 2 * a @ b)
    a, b, c = whole((45, 30)), whole((30, 20), 1), whole((45, 20), 2)
    assert np.array_equal(gemmlab.sgemm(2, a, b, 3, c, **options), 2 * a @ b + 3 * c)
    assert np.array_equal(gemmlab.sgemm(2, b, a, 0, None, 1, 1, **options), 2 * b.T @ a.T)
    for x, y in ((whole((3, 9, 7)), whole((7, 5), 1)), (whole(30), b), (a, whole(30)), (whole(30), whole(30, 1))):
        assert np.array_equal(matmul(x, y, **options), x @ y)
    square = whole((40, 40))
    expected = square @ square
    assert gemmlab.sgemm(1, square, square, 0, square, overwrite_c=True, **options) is square
    assert np.array_equal(square, expected), "the first strips were written over what the last ones read"


def test_strips_cover_a_side_and_have_whole_tiles():
    for length in (1, 511, 1023, 1024, 4096, 5000, 100_001):
        parts = staging.strips(length)
        assert [x for part in parts for x in range(length)[part]] == list(range(length))
        assert len(parts) <= staging.STRIPS
        assert all((part.stop - part.start) % staging.STRIP == 0 for part in parts[:-1])


def test_pieces_follow_each_other_row_by_row():
    x = np.arange(7 * 11, dtype=np.float32).reshape(7, 11)
    for size_bytes in (4, 12, 44, 100, 1000):
        found = np.full(x.size, -1, np.float32)
        for at, part in staging.pieces(x, size_bytes):
            assert part.nbytes <= size_bytes
            found[at // 4 : at // 4 + part.size] = part.ravel()
        assert np.array_equal(found.reshape(x.shape), x)


def test_threads_and_many_calls_keep_memory_bounded(staged, any_device):
    pool = passes.pool_of(any_device.queue)

    def work(seed):
        a, b = whole((60, 20), seed), whole((20, 40), seed + 1)
        return np.array_equal(matmul(a, b, device=any_device, **LADDER), a @ b)

    with ThreadPoolExecutor(2) as threads:
        assert all(threads.map(work, range(20)))
        before = pool.active_bytes, pool.managed_bytes
        assert all(threads.map(work, range(100)))
    assert (pool.active_bytes, pool.managed_bytes) == before


def test_after_an_error_nobody_reads_or_writes_and_the_next_call_is_right(staged, any_device, monkeypatch):
    a, b = whole((64, 20)), whole((20, 40), 1)
    with monkeypatch.context() as patch:
        patch.setattr(products, "_multiply", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            matmul(a, b, device=any_device, **LADDER)
    assert np.array_equal(matmul(a, b, device=any_device, **LADDER), a @ b)


def test_it_is_for_large_arrays_on_devices_with_memory_of_their_own(any_device):
    large = np.empty((2**11, 2**11), np.float32)
    if any_device.kind == "CPU":
        assert not staging.pays(any_device, large, large)
    assert not staging.pays(any_device, large[:10])
