"""Where results go: `out` of any layout, batches as in NumPy, events, pools, and a call that is repeated."""

import dataclasses
import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyopencl as cl
import pyopencl.array as cla
import pytest
from configurations import SMALL_TILE
from conftest import in_part
from pyopencl.tools import ImmediateAllocator, MemoryPool
from test_errors import refused
from test_matmul import host, laid_out, to_device
from texts import SMALL

import gemmlab
from gemmlab import check, matmul
from gemmlab.blas import passes, products
from gemmlab.blas.problem import Batch, Problem
from gemmlab.catalog import Limits

F32 = np.float32
FAMILY = {"kernel": "family", "params": SMALL_TILE}
LADDER = {"kernel": 3, "params": {"TS": 16, "WPT": 4}}


def whole(shape, seed=0, dtype=F32) -> np.ndarray:
    """Odd whole numbers, whose products and sums no type rounds."""
    return np.random.default_rng(seed).choice(np.array([-3, -1, 1, 3], dtype), shape)


def framed(shape, how: str, dtype=F32) -> tuple[np.ndarray, np.ndarray]:
    """Memory full of sevens, and a view of this shape in it that lies as `how` says."""
    *batch, rows, cols = shape
    around = np.full((*batch, rows + 3, 2 * (cols + 5)), 7, dtype)
    if how == "C":
        return (x := np.full(shape, 7, dtype)), x
    if how == "F":
        x = np.full((*batch, cols, rows), 7, dtype)
        return x, x.swapaxes(-1, -2)
    if how == "block":
        return around, around[..., 2 : rows + 2, 3 : cols + 3]
    if how == "block of columns":
        around = np.full((*batch, cols + 3, rows + 5), 7, dtype)
        return around, around[..., 1 : cols + 1, 2 : rows + 2].swapaxes(-1, -2)
    return around, around[..., 2 : rows + 2, 3 : 2 * cols + 3 : 2]  # every second column


# out


@pytest.mark.parametrize("options", [{}, FAMILY, LADDER], ids=["auto", "family", "ladder"])
def test_out_of_every_layout(options, device):
    layouts = ("C", "F", "block", "block of columns", "strided")
    cases = [(shape, 7, how) for shape in ((20, 12), (2, 5, 6)) for how in layouts]
    for shape, inner, how in [*cases, ((1, 9), 7, "F"), ((20, 12), 0, "C"), ((20, 12), 0, "block")]:
        a, b = whole((*shape[:-1], inner)), whole((*shape[:-2], inner, shape[-1]), 1)
        memory, out = framed(shape, how)
        expected = memory.copy()
        assert matmul(a, b, out, device=device, **options) is out and np.array_equal(out, a @ b)
        out[...] = 7
        assert np.array_equal(memory, expected), "stored outside of out"
        if how == "strided":
            continue
        memory = cla.to_device(device.queue, memory)
        view = cla.Array(device.queue, shape, F32, data=memory.base_data, strides=out.strides, offset=_first(out))
        given = [cla.to_device(device.queue, x) for x in (a, b)]
        assert matmul(*given, out=view, **options) is view
        out[...] = a @ b
        assert np.array_equal(memory.get(), _root(out)), (shape, inner, how)


def _root(x: np.ndarray) -> np.ndarray:
    return x if x.base is None else _root(x.base)


def _first(x: np.ndarray) -> int:
    """Bytes before the first element of a view."""
    return x.ctypes.data - _root(x).ctypes.data


@pytest.mark.parametrize("dtype", ("float64", "complex64"))
def test_out_in_other_precisions(dtype, any_device):
    for how in ("F", "strided"):
        a, b = check.exact_inputs(9, 7, 5, dtype=dtype)
        _, out = framed((9, 7), how, dtype)
        assert matmul(a, b, out=out, device=any_device, **FAMILY) is out and np.array_equal(out, a @ b)


def test_an_out_that_does_not_fit(device):
    a, b = whole((4, 3)), whole((3, 4), 1)
    for wrong, kind, *words in (
        (np.empty((4, 3), F32), ValueError, "out has the shape (4, 3)", "(4, 4)"),
        (np.empty((1, 4, 4), F32), ValueError, "out has the shape (1, 4, 4)"),
        (np.empty((4, 4)), TypeError, "out must be float32, not float64"),
        ([[0.0] * 4] * 4, TypeError, "out must be a NumPy array", "not list"),
        (cla.empty(device.queue, (4, 4), F32), TypeError, "out on a device, but a, b in NumPy"),
        (np.broadcast_to(F32(1), (4, 4)), ValueError, "out is read-only"),
    ):
        refused(kind, words, matmul, a, b, wrong, device=device)
    x, y = (cla.to_device(device.queue, z) for z in (a, b))
    other = cla.empty(cl.CommandQueue(device.context), (4, 4), F32)
    refused(ValueError, ["out is on another queue than a"], matmul, x, y, other)
    refused(ValueError, ["out has the shape (3, 3)"], matmul, x, y, cla.empty(device.queue, (3, 3), F32))
    scattered = cla.empty(device.queue, (4, 8), F32)[:, ::2]
    refused(ValueError, ["out has the strides"], matmul, x, y, scattered)


def test_an_out_that_shares_memory_with_an_operand(device):
    store = whole((12, 4))
    a, apart = store[:4], store[4:8]
    there = cla.to_device(device.queue, store)
    for memory, options in ((store, {"device": device}), (there, {})):
        a = memory[:4]
        for name, operands, out in (
            ("a", (a, memory[8:]), memory[:4]),
            ("a", (a, memory[8:]), memory[3:7]),
            ("b", (a, memory[8:]), memory[5:9]),
            ("a", (a, a), memory[:4].T),
        ):
            refused(ValueError, [f"out shares memory with {name}"], matmul, *operands, out, **options)
        expected = host(there)[:4] @ host(there)[8:]
        matmul(a, memory[8:], memory[4:8], **options)
        assert np.array_equal(host(memory)[4:8], expected)
    assert np.shares_memory(apart, store)


# Batches and vectors

SHAPES = [
    ((3, 5, 4), (3, 4, 6)),
    ((3, 5, 4), (4, 6)),
    ((5, 4), (3, 4, 6)),
    ((2, 1, 5, 4), (3, 4, 6)),
    ((2, 3, 2, 5, 4), (3, 1, 4, 6)),
    ((1, 1, 5, 4), (4, 6)),
    ((0, 5, 4), (4, 6)),
    ((3, 5, 0), (3, 0, 6)),
    ((4,), (4, 6)),
    ((5, 4), (4,)),
    ((4,), (4,)),
    ((4,), (3, 4, 6)),
    ((3, 5, 4), (4,)),
]


@pytest.mark.parametrize("options", [{}, FAMILY, LADDER], ids=["auto", "family", "ladder"])
def test_batches_and_vectors_are_as_in_numpy(options, device):
    for left, right in SHAPES:
        a, b = whole(left), whole(right, 1)
        want = np.matmul(a, b)
        got = matmul(a, b, device=device, **options)
        assert type(got) is type(want) and got.shape == want.shape and np.array_equal(got, want), (left, right)
        got = matmul(*(cla.to_device(device.queue, x) for x in (a, b)), **options)
        assert isinstance(got, cla.Array) and got.shape == want.shape and np.array_equal(got.get(), want), (left, right)
        out = np.full(want.shape, 7, F32)
        assert matmul(a, b, out, device=device, **options) is out and np.array_equal(out, want), (left, right)


@pytest.mark.parametrize("kernel", ["auto", "family", 1])
def test_vectors_of_a_batch_into_an_out_by_columns(kernel, device):
    """The last two dimensions of such a result are no matrix of the product."""
    (a, b), v = check.exact_inputs(6, 8, 7), check.exact_inputs(1, 1, 7)[0][0]
    many = [np.stack([x, 3 * x, -x]) for x in (a, b)]
    for x, y in ((many[0], v), (v, many[1])):
        out = np.full(np.matmul(x, y).shape, np.nan, np.float32, order="F")
        assert matmul(x, y, out, kernel=kernel, device=device) is out and np.array_equal(out, np.matmul(x, y))
        there = cla.to_device(device.queue, np.full(out.shape, np.nan, np.float32, order="F"))
        matmul(*(cla.to_device(device.queue, np.ascontiguousarray(z)) for z in (x, y)), there, kernel=kernel)
        assert np.array_equal(there.get(), np.matmul(x, y))


def test_batches_of_every_layout(device):
    """Matrices by columns, parts of larger ones, and steps that no vector load divides."""
    for (m, n, k), options in itertools.product(((8, 4, 4), (9, 7, 5)), ({}, FAMILY, LADDER)):
        a, b = whole((3, m, k)), whole((3, k, n), 1)
        turned = [np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2) for x in (a, b)]
        assert np.array_equal(matmul(*turned, device=device, **options), a @ b)
        there = [
            cla.to_device(device.queue, np.ascontiguousarray(x.swapaxes(1, 2))).transpose((0, 2, 1)) for x in turned
        ]
        assert np.array_equal(matmul(*there, **options).get(), a @ b)
        around = np.full((4, m + 1, k + 3), np.nan, F32)
        around[1:, 1:, 2:-1] = a
        part = cla.to_device(device.queue, around)[1:, 1:, 2:-1]
        assert np.array_equal(matmul(part, there[1], **options).get(), a @ b)
        backwards = laid_out(a[0], "backwards")
        assert np.array_equal(matmul(backwards, b, device=device, **options), a[0] @ b)


def noted(monkeypatch) -> list[str]:
    """The names of what is launched from now on, where nothing is repeated that was launched before."""
    names, launch = [], passes.Session.launch
    monkeypatch.setattr(passes.Session, "launch", lambda self, *what: (names.append(what[0]), launch(self, *what))[1])
    products._kept.cache_clear()
    return names


def test_a_batch_is_one_launch_where_its_matrices_lie_at_equal_distances(any_device, monkeypatch):
    launched = noted(monkeypatch)
    for left_shape, right_shape, launches in (
        ((3, 5, 4), (3, 4, 6), 1), ((3, 5, 4), (4, 6), 1), ((2, 3, 5, 4), (2, 3, 4, 6), 1), ((2, 3, 5, 4), (3, 4, 6), 2)
    ):  # fmt: skip
        arrays = [cla.to_device(any_device.queue, whole(shape)) for shape in (left_shape, right_shape)]
        launched.clear()
        matmul(*arrays, **FAMILY)
        assert launched == launches * ["gemm"]


def test_a_batch_on_paper():
    assert Batch.over((4,), (6,), (0,)) == Batch(4, (6, 0), ((0, 0),))
    assert Batch.over((2, 4), (24, 4), (6, 6)).starts == ((0, 0), (24, 6))
    assert Batch.over((2, 1, 4), (24, 0, 6), (0, 0, 0)) == Batch(8, (6, 0), ((0, 0),))
    many = Batch.over((100_000,), (2,), (0,))
    pairs = list(many.launches())
    assert [p.number for _, p in pairs] == [65535, 100_000 - 65535] and pairs[1][0] == (2 * 65535, 0)
    assert pairs[1][1].first == 65535 and len(list(many.products())) == 100_000


def test_batches_that_do_not_fit(any_device):
    refused(ValueError, ["(3, 4, 4)", "(2, 4, 4)", "before the last two"], matmul, whole((3, 4, 4)), whole((2, 4, 4)))
    refused(ValueError, ["the columns of a (4)", "rows of b (5)"], matmul, whole((3, 4, 4)), whole((3, 5, 4)))
    refused(ValueError, ["the columns of a (4)", "rows of b (5)"], matmul, whole(4), whole(5))
    refused(ValueError, ["a must have 2 dimensions, not 3"], gemmlab.sgemm, 1, whole((3, 4, 4)), whole((4, 4)))


# Events, memory, threads


def test_other_queues_are_waited_for_and_the_result_has_an_event(device):
    queue, other = cl.CommandQueue(device.context), cl.CommandQueue(device.context)
    a, b = whole((40, 30)), whole((30, 20), 1)
    x, y = (cla.to_device(queue, z) for z in (np.zeros_like(a), b))
    gate = cl.UserEvent(device.context)
    written = cl.enqueue_copy(other, x.base_data, a, is_blocking=False, wait_for=[gate])
    other.flush()
    x.add_event(written)
    result = matmul(x, y)
    queue.flush()
    assert len(result.events) == 1
    assert result.events[0].command_execution_status != cl.command_execution_status.COMPLETE
    gate.set_status(cl.command_execution_status.COMPLETE)
    assert np.array_equal(result.get(), a @ b)
    for _ in range(20):
        matmul(x, y, result)
    assert len(result.events) == 1 and np.array_equal(result.get(), a @ b)


def test_an_operands_allocator_is_used(device):
    queue, asked = cl.CommandQueue(device.context), []
    pool = MemoryPool(ImmediateAllocator(queue))

    def allocate(size_bytes):
        asked.append(size_bytes)
        return pool.allocate(size_bytes)

    a, b = whole((33, 20)), whole((20, 17), 1)
    result = matmul(cla.to_device(queue, a, allocate), cla.to_device(queue, b), **LADDER)
    assert 4 * 33 * 17 in asked and result.allocator is allocate and np.array_equal(result.get(), a @ b)


def test_calls_of_many_sizes_keep_memory_bounded(any_device, monkeypatch):
    monkeypatch.setattr(passes, "HELD", 2**20)
    queue = cl.CommandQueue(any_device.context)
    store = cla.to_device(queue, whole((120, 120)))
    sizes = np.random.default_rng(0).integers(1, 120, (400, 3))
    for m, n, k in sizes:
        last = matmul(store[:m, :k], store[:k, :n], **LADDER)
    pool = passes.pool_of(queue)
    assert pool.managed_bytes <= 2**21
    assert np.array_equal(last.get(), store.get()[:m, :k] @ store.get()[:k, :n])
    assert products._remembered.cache_info().currsize <= 1024
    gemmlab.clear_caches()


def test_threads_with_queues_of_their_own(device):
    """The same compiled kernels, set up and launched by several threads at once."""
    a, b = whole((48, 32)), whole((32, 64), 1)

    def work(seed):
        queue = cl.CommandQueue(device.context)
        x, y = (cla.to_device(queue, z * F32(seed)) for z in (a, b))
        results = [matmul(x, y, **options) for options in (FAMILY, LADDER) for _ in range(5)]
        return all(np.array_equal(r.get(), (a * F32(seed)) @ (b * F32(seed))) for r in results)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(1, 5)))


def test_repeated_calls_are_right_whatever_changes_between_them(device):
    """A product that was worked out before serves other memory, but no other layout, type or number."""
    a, b = whole((24, 24)), whole((24, 24), 1)
    x, y = (cla.to_device(device.queue, z) for z in (a, b))
    for _ in range(2):
        for p, q, left, right in ((x, y, a, b), (y, x, b, a), (x.T, y, a.T, b), (x[:20], y[:, :9], a[:20], b[:, :9])):
            assert np.array_equal(matmul(p, q).get(), left @ right)
            assert np.array_equal(matmul(p, q, kernel="family").get(), left @ right)
        moved = to_device(device.queue, a, "block")
        assert np.array_equal(matmul(moved, y).get(), a @ b)


# Kernels of the ladder


TAKES_BATCHES = [n for n, spec in gemmlab.catalog.items() if not (spec.tensor or spec.takes_workspace)]


@pytest.mark.parametrize("number", in_part(TAKES_BATCHES, 5))
def test_a_batch_of_whole_tiles_is_one_launch_of_the_ladder(number, any_device, monkeypatch):
    spec = gemmlab.catalog[number]
    params = spec.complete(SMALL[number])
    (rows, cols, depth), turned = spec.tiles(params), spec.wants_transposed(params)
    n, m, k = 2 * rows, cols, 2 * depth
    launched = noted(monkeypatch)
    for left, right in (((3, m, k), (3, k, n)), ((m, k), (3, k, n)), ((2, 3, m, k), (2, 3, k, n))):
        a, b = whole(left), whole(right, 1)
        x = a.swapaxes(-1, -2).copy() if turned else a  # so that no pass is needed
        x, y = (cla.to_device(any_device.queue, z) for z in (x, b))
        x = x.transpose((*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)) if turned else x
        launched.clear()
        assert np.array_equal(matmul(x, y, kernel=number, params=params).get(), a @ b)
        assert launched == ["gemm"], (left, right)


def test_a_batch_of_warp_tiles(any_device, monkeypatch):
    """Kernel 15 takes any sizes whose rows its vectors divide; others go through padded copies, one by one."""
    number = next(n for n, spec in gemmlab.catalog.items() if spec.file.endswith("warp_tiling.cl"))
    params = {"TSM": 32, "TSN": 32, "TSK": 8, "WPTM": 4, "WPTN": 4, "TRANSPOSED": 0, "ASYNC": 0}
    launched = noted(monkeypatch)
    for (m, n, k), launches in (((32, 32, 16), 1), ((35, 44, 19), 1), ((35, 43, 19), 3)):
        for left, right in (((3, m, k), (3, k, n)), ((m, k), (3, k, n))):
            a, b = whole(left), whole(right, 1)
            launched.clear()
            x, y = (cla.to_device(any_device.queue, z) for z in (a, b))
            assert np.array_equal(matmul(x, y, kernel=number, params=params).get(), a @ b)
            assert launched.count("gemm") == launches


def test_which_kernel_of_the_ladder_a_batch_takes(any_device, monkeypatch):
    """On paper, on a GPU: one whose tiles fit the results and that takes the operands as they lie; else the family."""
    limits = Limits("a GPU", 1024, (1024, 1024, 64), 48 * 1024)
    gpu = dataclasses.replace(any_device, kind="GPU", platform="NVIDIA CUDA", limits=limits, units=132)
    monkeypatch.setattr(products, "_kernel", lambda number, params, *_: (gemmlab.catalog[number], dict(params)))

    def taken(number, sizes, device=gpu):
        m, n, k = sizes
        batch = Batch(number, (m * k, k * n), ((0, 0),))
        return products._for_a_batch(Problem.compact(*sizes), batch, device, device.context)

    for number, sizes in itertools.product((2, 64, 1000), ((64, 64, 64), (250, 64, 33), (256, 512, 128), (2048,) * 3)):
        if (found := taken(number, sizes)) is None:
            assert sizes != (2048, 2048, 2048)
            continue
        spec, params = found
        assert all(tile <= size for tile, size in zip(spec.tiles(params)[:2], sizes, strict=False))
        assert not spec.workspace(params) and spec.problems(params, limits) == []
    assert taken(1000, (8, 8, 64)) is None and taken(64, (256, 256, 256), any_device) is None
