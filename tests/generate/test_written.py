"""Generated kernels on the devices at hand: exact for every precision, op, beta, edge and tail."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pyopencl as cl
import pytest
from configurations import SMALL_TILE, WARPS, case, covering, is_exact, shared, warped, wrong
from conftest import in_part

import gemmlab
from gemmlab import ParameterError, check, matmul
from gemmlab.blas import plan
from gemmlab.blas.plan import PlanBuilder
from gemmlab.generate import Schedule, write


@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.optimised(False)), 4])
def test_a_covering_sample(device, every):
    """Every pair of values, and a part of them as users compile it; few kernels of warps, since
    they take long to compile.
    """
    for schedules, n in ((covering(), 4), (covering(warped())[::5], 4), (shared(), 2)):
        assert wrong(device, in_part(schedules[::every], n)) == []


def test_a_product_with_split_k_is_repeated_by_threads(any_device):
    """They share a plan's counters. With numbers that round, all agree to the last bit."""
    tile = {"TSM": 16, "TSN": 16, "TSK": 8, "WPTM": 2, "WPTN": 2, "UNROLL": 8, "STAGES": 2}
    options = {"kernel": "family", "params": tile | {"UNIT": 1, "SHARES": 3}, "device": any_device}
    a, b = check.random_inputs(40, 50, 90, dtype="complex64")
    first = matmul(a, b, **options)
    assert check.accuracy(first, a, b).ok
    with ThreadPoolExecutor(2) as pool:
        products = pool.map(lambda _: matmul(a, b, **options), range(16))
        assert all(np.array_equal(c, first) for c in products)


def test_counters_are_zero_after_a_launch(any_device, monkeypatch, fresh):
    """With a negative control: without the line that resets them they are not."""
    s = Schedule("c", unit="warps", split_k=2, **WARPS | {"stages": 2})
    reset, counters = "if (before == SHARES - 1) arrived[tile] = 0;", PlanBuilder.counters
    memory, given = [], case(s)
    monkeypatch.setattr(
        PlanBuilder, "counters", lambda *x: memory.append(counters(*x)) or memory[-1]
    )
    for text, counted in ((write(s), 0), (write(s).replace(reset, ""), s.split_k)):
        monkeypatch.setattr(plan, "_text", lambda s, text=text: text)
        gemmlab.clear_caches()
        assert is_exact(s, any_device, given)
        values = np.full(memory[-1].size // 4, -1, np.int32)
        cl.enqueue_copy(any_device.queue, values, memory[-1])
        assert (values == counted).all()


def test_what_a_device_cannot_run_is_refused_by_name(any_device):
    tight = replace(any_device, limits=replace(any_device.limits, local_memory=100))
    a, b = check.exact_inputs(8, 8, 8)
    with pytest.raises(ParameterError, match="sgemm_.*100"):
        matmul(a, b, kernel="family", params=SMALL_TILE, device=tight)
