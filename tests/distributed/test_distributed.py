"""Products of Dask arrays and of matrices in files, in this process; `test_workers` has those on
many.
"""

import pickle
import warnings

import numpy as np
import pyopencl as cl
import pytest
from hypothesis import given, settings

dask = pytest.importorskip("dask")

import dask.array as da  # noqa: E402
import zarr  # noqa: E402
from distributed_cases import as_dask, products  # noqa: E402

from gemmlab import check, default_device, distributed  # noqa: E402
from gemmlab.distributed import blocks, stored  # noqa: E402


@pytest.fixture(autouse=True)
def here(any_device):
    """In this thread, and on some device."""
    with dask.config.set(scheduler="sync"):
        yield


@pytest.fixture
def with_memory_of_its_own(monkeypatch):
    """Treat the device as if blocks had to be copied to it, as to a GPU."""
    monkeypatch.setattr(blocks, "has_own_memory", lambda device: True)


def ones(*shape, dtype="f4"):
    return da.ones(shape, dtype=dtype)


def whole_numbers(*shape, seed=0, dtype="float32") -> np.ndarray:
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(dtype)


@settings(max_examples=15, deadline=None)
@given(products(dtypes=(np.dtype("float32"),)))
def test_random_products(case):
    a, b, cuts = case
    c = distributed.matmul(*as_dask(a, b, cuts))
    wanted = a @ b
    assert (c.shape, c.dtype) == (wanted.shape, a.dtype)
    assert (c._meta.ndim, c._meta.dtype) == (wanted.ndim, a.dtype)
    np.testing.assert_array_equal(c.compute(), wanted)


def test_a_product_is_lazy_and_its_blocks_are_those_of_the_operands():
    a, b = whole_numbers(50, 40), whole_numbers(40, 30)
    c = distributed.matmul(da.from_array(a, chunks=(20, 10)), da.from_array(b, chunks=(10, 15)))
    assert c.chunks == ((20, 20, 10), (15, 15))
    sums = [key for key in c.__dask_graph__() if str(key[0]).startswith("sum")]
    assert len(sums) > 6, "sums over k have tasks of their own"
    np.testing.assert_array_equal(c[5:25, 20:].compute(), (a @ b)[5:25, 20:])


def test_sums_over_k_are_a_tree(monkeypatch):
    """No task gets more than two products, whatever K is cut into."""
    most = []
    monkeypatch.setattr(blocks, "total", lambda parts, **_: most.append(len(parts)) or sum(parts))
    a, b = whole_numbers(8, 110), whole_numbers(110, 8)
    c = distributed.matmul(da.from_array(a, chunks=(8, 10)), da.from_array(b, chunks=(10, 8)))
    np.testing.assert_array_equal(c.compute(), a @ b)
    assert most and max(most) == 2


@pytest.mark.parametrize("stays", [False, True])
def test_blocks_in_the_memory_of_a_device(with_memory_of_its_own, stays):
    a, b = whole_numbers(50, 64), whole_numbers(64, 70)
    x, y = da.from_array(a, chunks=(30, 10)), da.from_array(b, chunks=(10, 40))
    if stays:
        x, y = distributed.to_device(x), distributed.to_device(y)
    c = distributed.matmul(x, y)
    (kept,) = dask.compute(c.to_delayed()[0, 0])
    assert isinstance(kept, blocks.DeviceBlock if stays else np.ndarray)
    np.testing.assert_array_equal(distributed.to_host(c).compute(), a @ b)
    assert len(blocks._under_way) <= blocks.AHEAD
    default_device().queue.finish()
    blocks._forget_done()
    assert not blocks._under_way, "no operand is kept for longer than it takes"


def test_a_block_on_a_device_travels_as_a_numpy_array(with_memory_of_its_own):
    x = whole_numbers(30, 20)
    block = blocks.on_device(x)
    copy = pickle.loads(pickle.dumps(block))
    assert isinstance(copy._block, np.ndarray) and copy.stays and copy.shape == (30, 20)
    assert dask.sizeof.sizeof(block) >= x.nbytes
    np.testing.assert_array_equal(copy + block, 2 * x)


@pytest.mark.parametrize("kind", ["zarr", "mapped", "both"])
@pytest.mark.parametrize("own_memory", [False, True])
def test_matrices_in_files(tmp_path, kind, own_memory, monkeypatch):
    monkeypatch.setattr(blocks, "has_own_memory", lambda device: own_memory)
    a, b = check.exact_inputs(150, 130, 170)
    x, y = in_files(tmp_path, a, b, kind)
    c = distributed.matmul(x, y, chunks=(64, 70, 50))
    assert c.chunks == ((64, 64, 22), (70, 60)) and c.dtype == a.dtype
    c.to_zarr(str(tmp_path / "c.zarr"))
    assert check.exact(np.asarray(zarr.open(str(tmp_path / "c.zarr"), mode="r")), a, b).ok


def in_files(folder, a, b, kind):
    """a and b as Zarr arrays or as mapped files, b as a view of a larger one."""
    x = zarr.open(str(folder / "a.zarr"), mode="w", shape=a.shape, chunks=(40, 40), dtype=a.dtype)
    x[:] = a
    if kind == "zarr":
        y = zarr.open(str(folder / "b.zarr"), mode="w", shape=b.shape, chunks=(40, 40), dtype="f4")
        y[:] = b
        return x, y
    np.save(folder / "b.npy", np.pad(b, ((3, 2), (1, 4))))
    y = np.load(folder / "b.npy", mmap_mode="r")[3:-2, 1:-4]
    if kind == "mapped":
        np.save(folder / "a.npy", np.asfortranarray(a))
        x = np.load(folder / "a.npy", mmap_mode="r")
    return x, y


class Unreadable:
    """A matrix whose steps along k cannot be read from the third one on."""

    def __init__(self, a):
        self.a, self.shape, self.dtype, self.ndim = a, a.shape, a.dtype, a.ndim

    def __getitem__(self, part):
        if part[1].start >= 80:
            raise OSError("checksum mismatch")
        return self.a[part]


@pytest.mark.parametrize("own_memory", [False, True])
def test_files_that_cannot_be_read_are_named(tmp_path, own_memory, monkeypatch):
    monkeypatch.setattr(blocks, "has_own_memory", lambda device: own_memory)
    a, b = check.exact_inputs(100, 90, 160)
    x, y = in_files(tmp_path, a, b, "mapped")
    message = r"block \(0, 0\) of the product, step 2 along k .*checksum mismatch"
    with pytest.raises(distributed.BlockError, match=message):
        distributed.matmul(Unreadable(a), y, chunks=(100, 90, 40)).compute()
    assert check.exact(distributed.matmul(x, y, chunks=(50, 90, 40)).compute(), a, b).ok
    product = distributed.matmul(x, y, chunks=(100, 90, 40))
    with open(tmp_path / "b.npy", "r+b") as file:
        file.truncate(1000)
    with pytest.raises(distributed.BlockError, match="step 0 along k"):
        product.compute()


def test_a_mapped_array_is_sent_by_name(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(10**6, dtype=np.float32).reshape(1000, 1000))
    view = np.load(tmp_path / "x.npy", mmap_mode="r").T[::-1, 5:]
    sent = pickle.dumps(stored.Mapped(view))
    assert len(sent) < 1000
    np.testing.assert_array_equal(pickle.loads(sent)[3:7, 2:9], view[3:7, 2:9])


def test_a_block_that_fails_is_named(monkeypatch):
    def fails(*_, **__):
        raise MemoryError("no room")

    monkeypatch.setattr(blocks, "matmul", fails)
    x = da.ones((20, 30), chunks=10, dtype=np.float32)
    said = r"block \(\d, \d\) .* step \d .*10 x 10 times 10 x 10.*no room"
    with pytest.raises(distributed.BlockError, match=said):
        distributed.matmul(x, x.T).compute()


@pytest.mark.filterwarnings("ignore:Increasing number of chunks")  # Dask says that, too
def test_chunks_that_make_small_tasks_get_a_warning_that_names_better_ones():
    whole = ones(1000, 1000)
    a, b = whole.rechunk((100, 50)), whole.rechunk((50, 100))
    with pytest.warns(UserWarning, match=r"2,000 products .*a\.rechunk\(\(512, 512\)\)"):
        distributed.matmul(a, b)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        distributed.matmul(a.rechunk((512, 512)), b.rechunk((512, 512)))


@pytest.mark.parametrize(
    ("a", "b", "error", "words"),
    [
        (ones(3, 4), np.ones((4, 3), "f4"), TypeError, r"b must be a Dask array.*from_array\(b"),
        (3, ones(4, 3), TypeError, "a must be a Dask array.*not int"),
        (ones(3, 4, dtype="f8"), ones(4, 3), TypeError, "b must be float64 as a is, not float32"),
        (ones(3, 4, dtype=int), ones(4, 3, dtype=int), TypeError, "a must be float32.*not int64"),
        (ones(3, 4), ones(3, 4), ValueError, r"columns of a \(4\).*rows of b \(3\)"),
        (ones(), ones(3, 4), ValueError, "a must have at least 1 dimension"),
        (ones(2, 3, 4), ones(5, 4, 3), ValueError, "."),
    ],
)
def test_what_it_refuses(a, b, error, words):
    with pytest.raises(error, match=words):
        distributed.matmul(a, b)


def test_an_error_of_opencl_travels():
    """Its own exception cannot be pickled; what it says can."""

    def fails():
        cl.Buffer(default_device().context, 0, size=0)

    x = np.ones((2, 3))
    with pytest.raises(distributed.BlockError, match="INVALID_BUFFER_SIZE") as caught:
        blocks.attempted(fails, (0, 0, 0), x, x)
    sent = pickle.loads(pickle.dumps(caught.value))
    assert str(sent) == str(caught.value) and caught.value.__context__ is None


def test_chunks_of_unknown_sizes_are_refused():
    x = da.ones((40, 40), chunks=10, dtype=np.float32)
    with pytest.raises(ValueError, match=r"compute_chunk_sizes\(\)"):
        distributed.matmul(x[x[:, 0] > 0], x)
    with pytest.raises(ValueError, match="chunks=.* is for matrices in files"):
        distributed.matmul(x, x, chunks=(10, 10, 10))


@pytest.mark.parametrize(
    "sizes", [(100, 100, 100), (10_000, 200, 50_000), (65_536, 65_536, 65_536), (1, 7, 10**6)]
)
@pytest.mark.parametrize("workers", [1, 3, 16])
def test_chosen_blocks_fit_the_memory_and_keep_all_workers_busy(sizes, workers):
    memory_bytes = 2**28
    found = distributed.choose_blocks(*sizes, "float64", memory_bytes=memory_bytes, workers=workers)
    rows, columns, depth = found
    assert all(1 <= block <= size for block, size in zip(found, sizes, strict=False))
    assert 8 * (2 * depth * (rows + columns) + 3 * rows * columns) <= memory_bytes
    number = -(-sizes[0] // rows) * -(-sizes[1] // columns)
    assert number >= 2 * workers or max(rows, columns) <= 64


def test_a_product_of_files_chooses_blocks_by_itself(tmp_path):
    a, b = check.exact_inputs(70, 90, 110)
    c = distributed.matmul(*in_files(tmp_path, a, b, "mapped"))
    assert c.chunks == da.core.normalize_chunks(distributed.choose_blocks(70, 90, 110)[:2], c.shape)
    assert check.exact(c.compute(), a, b).ok


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"m": 0}, "m must be a positive whole number"),
        ({"workers": 1.5}, "workers must"),
        ({"memory_bytes": 99}, "not enough"),
    ],
)
def test_block_sizes_refuse_what_makes_no_sense(given, words):
    with pytest.raises(ValueError, match=words):
        distributed.choose_blocks(**({"m": 9, "n": 9, "k": 9, "memory_bytes": 1e9} | given))
