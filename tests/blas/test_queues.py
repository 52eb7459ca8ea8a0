"""Device arrays are multiplied on their own queue, without waiting; what is kept is bounded."""

import gc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyopencl as cl
import pyopencl.array as cla
import pytest
from configurations import SMALL_TILE
from layouts import whole

import gemmlab
from gemmlab import gemm, matmul
from gemmlab.blas import run
from gemmlab.opencl.devices import of_queue

GENERATED = {"kernel": "family", "params": SMALL_TILE}
LADDER = {"kernel": 3, "params": {"TS": 16, "WPT": 4}}
EVERY = ({}, GENERATED, LADDER)


@pytest.mark.parametrize("options", EVERY, ids=["auto", "generated", "ladder"])
def test_events_of_other_queues_are_waited_for_and_the_result_has_one(options, device):
    """On a queue of the user's own, in a context of the user's own."""
    context = cl.Context([device.cl])
    queue, other = cl.CommandQueue(context), cl.CommandQueue(context)
    a, b = whole((40, 30)), whole((30, 20), 1)
    x, y = (cla.to_device(queue, z) for z in (np.zeros_like(a), b))
    matmul(x, y, **options)  # compiled
    gate = cl.UserEvent(context)
    written = cl.enqueue_copy(other, x.base_data, a, is_blocking=False, wait_for=[gate])
    other.flush()
    x.add_event(written)
    result = matmul(x, y, **options)
    queue.flush()
    (event,) = result.events
    assert event.command_execution_status != cl.command_execution_status.COMPLETE, "it has waited"
    gate.set_status(cl.command_execution_status.COMPLETE)
    assert result.queue == queue and np.array_equal(result.get(), a @ b)
    for _ in range(20):
        matmul(x, y, result, **options)
    assert len(result.events) == 1
    assert np.array_equal(result.get(), a @ b)
    assert np.array_equal(matmul(result, y.T.copy(), device=device.index).get(), a @ b @ b.T)


def test_threads_share_kernels_plans_and_queues(device):
    """A plan's kernels have one set of arguments, which one thread at a time may set."""
    small, large = (whole((21, 30)), whole((30, 17), 1)), (whole((150, 160)), whole((160, 140), 1))
    shared = cl.CommandQueue(device.context)

    def is_right(turn: int) -> bool:
        factor, options = np.float32(1 + turn % 5), EVERY[turn // 4 % 3]
        a, b = (small, large)[turn % 2]
        x = a * factor
        if turn % 4 < 2:
            out = np.empty((len(a), b.shape[1]), np.float32) if turn % 3 else None
            return np.array_equal(matmul(x, b, out, device=device, **options), x @ b)
        queue = shared if turn % 8 < 4 else cl.CommandQueue(device.context)
        got = matmul(cla.to_device(queue, x), cla.to_device(queue, b), **options)
        return np.array_equal(got.get(), x @ b)

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(is_right, range(96), timeout=300))


def test_pools_hold_a_bounded_amount_of_memory(any_device, monkeypatch):
    """After products of many sizes, on either side; the results are kept alive by nobody."""
    monkeypatch.setattr(run, "HELD", 2**20)
    queue = cl.CommandQueue(any_device.context)
    store = cla.to_device(queue, whole((200, 200)))
    host = store.get()
    for m, n, k in np.random.default_rng(0).integers(1, 200, (50, 3)):
        last = matmul(store[:m, :k], store[:k, :n], **LADDER)
        matmul(host[:m, :k], host[:k, :n], device=any_device, **LADDER)
    assert np.array_equal(last.get(), host[:m, :k] @ host[:k, :n])
    del last
    matmul(store[:1, :1], store[:1, :1], **LADDER)
    gc.collect()
    sessions = run.session_of(queue, of_queue(queue)), run.session_of(any_device.queue, any_device)
    for pool in (session.pool for session in sessions):
        assert pool.managed_bytes - pool.active_bytes <= 2**20 + 2 * 4 * 6 * 208**2


def test_plans_are_remembered_up_to_a_bound_and_forgotten_on_request(any_device):
    a, b = whole((5, 6)), whole((6, 7), 1)
    gemmlab.clear_caches()
    cache = run.session_of(any_device.queue, any_device).plan
    for _ in range(3):
        matmul(a.copy(), b, device=any_device)
    assert cache.cache_info().misses == 1
    most = cache.cache_info().maxsize
    x = np.ones((1, 1), np.float32)
    for alpha in range(1, most + 20):
        gemmlab.sgemm(alpha, x[:, :0], x[:0], device=any_device)
    assert cache.cache_info().currsize == most <= 1024
    gemmlab.clear_caches()
    assert run.session_of(any_device.queue, any_device).plan.cache_info().currsize == 0


def test_a_product_with_itself_and_a_sum_over_an_operand(device):
    x = whole((33, 33))
    there, want = cla.to_device(device.queue, x), x @ x + 2 * x
    for options in EVERY:
        assert np.array_equal(matmul(x, x, device=device, **options), x @ x)
        own = x.copy()
        assert gemm(1, own, own, 2, own, overwrite_c=True, device=device, **options) is own
        assert np.array_equal(own, want)
        assert np.array_equal(matmul(there, there.T, **options).get(), x @ x.T)
        got = gemm(1, there, there, 2, there, overwrite_c=True, **options)
        assert np.array_equal(got.get(), want)
        assert np.array_equal(there.get(), x), "an operand is not overwritten, not even as c"


def test_accuracy_on_random_data(device):
    for dtype in ("float32", "float64", "complex64", "float16"):
        for kind, sizes in (("uniform", (129, 33, 257)), ("normal", (1, 1, 2000))):
            a, b = gemmlab.check.random_inputs(*sizes, kind=kind, dtype=dtype)
            for options in EVERY if dtype == "float32" else EVERY[:2]:
                got = matmul(a, b, device=device, **options)
                assert gemmlab.check.accuracy(got, a, b).ok, (dtype, kind, options)


def test_nan_and_infinity_propagate_as_in_numpy(device):
    """Past zero padding, too: an infinity in the last row or column meets the zeros there."""
    for options in (*EVERY, {"edges": "pad"}, {"edges": "split"}):
        for i, j, value in ((0, 0, np.nan), (36, 40, np.inf), (0, 40, np.inf)):
            a, b = whole((37, 41)), whole((41, 43), 1)
            a[i, j], b[j, 5], b[(j + 7) % 41, 42] = value, 0, np.inf
            with np.errstate(invalid="ignore"):
                want = a @ b
            got = matmul(a, b, device=device, **options)
            assert np.array_equal(got, want, equal_nan=True), options
