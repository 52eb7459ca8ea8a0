"""NumPy operands through pinned memory, in strips, with tiny pieces; see also `test_calls`."""

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from layouts import whole

import gemmlab
from gemmlab import matmul
from gemmlab.blas import plan, staging
from gemmlab.blas.run import session_of

LADDER = {"kernel": 3, "params": {"TS": 16, "WPT": 4}}


@pytest.fixture
def staged(monkeypatch):
    """A stand-in for a device that does not share the host's memory: every product is staged."""
    computed, compute = [], staging.Staging.compute
    monkeypatch.setattr(
        staging.Staging,
        "compute",
        lambda self, queue, parts: computed.append(len(parts)) or compute(self, queue, parts),
    )
    monkeypatch.setattr(
        staging, "staging_for", lambda device: staging.staging_of(device.context, device)
    )
    sizes = {"STRIP": 16, "STRIPS": 4, "PIECE": 1000, "THREADS": 2, "WORTHWHILE": 0}
    for name, value in sizes.items():
        monkeypatch.setattr(staging, name, value)
    staging.staging_of.cache_clear()
    yield lambda device: dataclasses.replace(device, kind="GPU")
    staging.staging_of.cache_clear()
    assert computed, "nothing was staged"


def test_a_product_over_an_operand_is_computed_elsewhere(staged, any_device):
    """The first strips would overwrite what the last ones read."""
    square, options = whole((40, 40)), {"device": staged(any_device), **LADDER}
    expected = square @ square
    assert gemmlab.sgemm(1, square, square, 0, square, overwrite_c=True, **options) is square
    assert np.array_equal(square, expected)


def test_threads_and_errors_keep_memory_bounded(staged, any_device, monkeypatch):
    device = staged(any_device)

    def is_right(seed):
        a, b = whole((60, 20), seed), whole((20, 40), seed + 1)
        return np.array_equal(matmul(a, b, device=device, **LADDER), a @ b)

    gemmlab.clear_caches()
    pool = session_of(device.queue, device).pool
    assert all(map(is_right, range(5)))
    active, one = pool.active_bytes, pool.managed_bytes
    with monkeypatch.context() as patch:
        patch.setattr(plan.KernelLaunch, "__call__", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            is_right(0)
    with ThreadPoolExecutor(2) as threads:
        assert all(threads.map(is_right, range(100)))
    # two products at a time at most
    assert pool.active_bytes == active and pool.managed_bytes <= 2 * one
