"""A call like one before: the same launches on other memory, checked as strictly and just as right."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyopencl as cl
import pyopencl.array as cla
import pytest
from pyopencl.tools import ImmediateAllocator, MemoryPool
from test_errors import refused
from test_out_and_batches import whole

import gemmlab
from gemmlab import matmul
from gemmlab.blas import passes, products

WAYS = {
    "ladder": {"kernel": 3},
    "guards": {"kernel": 12},
    "family": {"kernel": "family"},
    "auto": {},
}


@pytest.fixture
def queue(any_device):
    gemmlab.clear_caches()
    yield cl.CommandQueue(any_device.context)
    gemmlab.clear_caches()


def put(queue, *arrays, allocator=None):
    return [cla.to_device(queue, x, allocator) for x in arrays]


@pytest.mark.parametrize("way", WAYS)
def test_the_second_call_works_nothing_out(way, queue, monkeypatch):
    """By rows and by columns, with passes before and after the product, in the same memory or in other memory."""
    options, cases = WAYS[way], []
    for seed, turned in enumerate(("", "a", "b")):
        a, b = whole((37, 21), seed), whole((21, 45), seed + 9)
        x, y = put(queue, a.T.copy() if turned == "a" else a, b.T.copy() if turned == "b" else b)
        cases.append((x.T if turned == "a" else x, y.T if turned == "b" else y, a, b))
    for x, y, *_ in cases:
        matmul(x, y, **options)
    monkeypatch.setattr(products, "_product", lambda *_, **__: pytest.fail("it was worked out again"))
    for x, y, a, b in cases:
        results = [matmul(x, y, **options), matmul(x.copy(), 2 * y, **options), matmul(x, y, **options)]
        for result, factor in zip(results, (1, 2, 1), strict=True):
            assert len(result.events) == 1 and result.flags.c_contiguous
            assert np.array_equal(result.get(), factor * (a @ b))


def test_operands_that_share_memory_at_one_call_and_not_at_the_next(queue):
    a, b = whole((24, 24)), whole((24, 24), 1)
    x, y = put(queue, a, b)
    both = put(queue, np.concatenate([a, b]))[0]
    for _ in range(3):
        for p, q, left, right in ((x, x, a, a), (x, y, a, b), (y, x, b, a), (y, y, b, b)):
            assert np.array_equal(matmul(p, q).get(), left @ right)
        assert np.array_equal(matmul(both[:24], both[24:]).get(), a @ b)
        out = put(queue, np.zeros((24, 24), np.float32))[0]
        assert matmul(x, y, out) is out and np.array_equal(out.get(), a @ b)


def test_what_is_refused_is_refused_again(queue):
    x, y, out = put(queue, whole((16, 16)), whole((16, 16), 1), whole((16, 16), 2))
    for _ in range(3):
        matmul(x, y, kernel=1)
        matmul(x, y, kernel=3, params={})
        matmul(x, y, kernel=3, params={"TS": 16, "WPT": 4})
        refused(TypeError, ["TS"], matmul, x, y, kernel=3, params={"TS": 16.0, "WPT": 4})
        matmul(x, y, out)
        refused(ValueError, ["out shares memory with a"], matmul, x, y, x)
        refused(ValueError, ["kernel", "True"], matmul, x, y, kernel=True)
        refused(ValueError, ["edges must be"], matmul, x, y, edges="none")
        refused(ValueError, ["another queue"], matmul, x, y.with_queue(cl.CommandQueue(queue.context)))
        refused(ValueError, ["has no queue"], matmul, x.with_queue(None), y)
        refused(TypeError, ["float32, not float64"], matmul, x, y.astype(np.float64))


def test_the_default_device_is_asked_for_again(monkeypatch):
    a, b = whole((16, 16)), whole((16, 16), 1)
    for _ in range(2):
        monkeypatch.delenv("GEMMLAB_DEVICE", raising=False)
        assert np.array_equal(matmul(a, b), a @ b)
        for found in gemmlab.devices():
            monkeypatch.setenv("GEMMLAB_DEVICE", str(found.index))
            assert np.array_equal(matmul(a, b), a @ b)
        monkeypatch.setenv("GEMMLAB_DEVICE", "no such thing")
        refused(gemmlab.NoDeviceError, ["no such thing"], matmul, a, b)


def test_other_queues_are_waited_for_and_an_allocator_is_asked(queue):
    a, b = whole((20, 30)), whole((30, 10), 1)
    other, asked = cl.CommandQueue(queue.context), []
    pool = MemoryPool(ImmediateAllocator(queue))

    def allocate(size_bytes):
        asked.append(size_bytes)
        return pool.allocate(size_bytes)

    for turn in range(3):
        (x,), (y,) = put(queue, np.zeros_like(a)), put(queue, b, allocator=allocate if turn else None)
        gate = cl.UserEvent(queue.context)
        x.add_event(cl.enqueue_copy(other, x.base_data, a, is_blocking=False, wait_for=[gate]))
        other.flush()
        asked.clear()
        result = matmul(x, y, kernel=3)
        gate.set_status(cl.command_execution_status.COMPLETE)
        assert np.array_equal(result.get(), a @ b)
        assert (4 * 20 * 10 in asked) == (turn > 0) and result.allocator is (allocate if turn else None)


def test_threads_that_share_a_queue(queue):
    a, b = whole((40, 33)), whole((33, 50), 1)

    def work(factor):
        x, y = put(queue, factor * a, b)
        results = [matmul(x, y, **options) for options in (WAYS["ladder"], WAYS["family"]) for _ in range(10)]
        return all(np.array_equal(result.get(), factor * (a @ b)) for result in results)

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(work, np.arange(1, 9, dtype=np.float32)))


def test_a_thousand_calls_take_no_more_memory(queue):
    a, b = whole((33, 20)), whole((20, 17), 1)
    x, y = put(queue, a, b)
    pool = passes.pool_of(queue)
    for turn in range(1000):
        last = matmul(x, y, kernel=3)
        if turn == 10:
            queue.finish()
            before = pool.managed_bytes
    assert pool.managed_bytes <= before and np.array_equal(last.get(), a @ b)


@pytest.fixture
def quiet(queue, monkeypatch):
    """Launches without an event, as on devices where that is quicker."""
    monkeypatch.setattr(products.enqueue, "pays", lambda *call: True)
    return queue


@pytest.mark.parametrize("way", WAYS)
def test_an_event_is_made_for_who_asks(way, quiet, monkeypatch):
    """Another queue can wait for a result of launches without events, and for one that is overwritten later."""
    a, b, other = whole((37, 21)), whole((21, 45), 1), cl.CommandQueue(quiet.context)
    x, y = put(quiet, a, b)
    matmul(x, y, **WAYS[way])
    asked = []
    made = cl.enqueue_marker
    monkeypatch.setattr(cl, "enqueue_marker", lambda *call: asked.append(call) or made(*call))
    results = [matmul(x, y, **WAYS[way]) for _ in range(3)]
    assert not asked
    later = [out.with_queue(other) for out in results]
    assert len(asked) == 3 and all(np.array_equal(out.get(), a @ b) for out in (*later, *results))
    for out in results:
        matmul(x, 2 * y, out, **WAYS[way])
        assert len(out.events) == 1 and np.array_equal((out + out).get(), 4 * (a @ b))


def test_results_without_events_are_operands(quiet, monkeypatch):
    """On their own queue at once, and on another one after waiting."""
    a, other = whole((24, 24)), cl.CommandQueue(quiet.context)
    (x,) = put(quiet, a)
    square = [matmul(x, x) for _ in range(2)][-1]
    matmul(square, x)
    monkeypatch.setattr(products, "_product", lambda *_, **__: pytest.fail("it was worked out again"))
    assert np.array_equal(matmul(square, x).get(), a @ a @ a)
    monkeypatch.undo()
    moved = square.with_queue(other)
    assert np.array_equal(matmul(moved, moved).get(), a @ a @ a @ a)


def test_what_cannot_be_launched_is_refused_in_words(queue):
    program = cl.Program(queue.context, "__kernel void f() {}").build()
    launch = products.enqueue.without_event(cl.Kernel(program, "f"), (3,), (2,))
    with pytest.raises(cl.Error, match="WORK_GROUP"):
        launch(queue)
