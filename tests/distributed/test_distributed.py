"""Products of Dask arrays and of matrices in files, in this process."""

import os
import pickle

import numpy as np
import pyopencl as cl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

dask = pytest.importorskip("dask")

import dask.array as da  # noqa: E402
import zarr  # noqa: E402

from gemmlab import check, default_device, distributed  # noqa: E402
from gemmlab.distributed import blocks, stored  # noqa: E402
from gemmlab.distributed.products import DTYPES  # noqa: E402


@pytest.fixture(autouse=True)
def here(any_device):
    """In this thread, and on some device."""
    with dask.config.set(scheduler="sync"):
        yield


@pytest.fixture(params=[False, True], ids=["of the device", "of the host"])
def own_memory(request, monkeypatch):
    """Whether the device is treated as if blocks had to be copied to it, as to a GPU."""
    monkeypatch.setattr(blocks, "has_own_memory", lambda device: request.param)
    return request.param


def ones(*shape, dtype="f4"):
    return da.ones(shape, dtype=dtype)


def in_chunks(rows, columns, *arrays):
    return [da.from_array(x, chunks=(rows, columns)) for x in arrays]


@st.composite
def cases(draw):
    """a and b of small whole numbers, and Dask arrays of them with uneven chunks, some empty."""
    m, n, k = (draw(st.integers(1, 70)) for _ in range(3))
    batch = draw(st.sampled_from([(), (), (), (2,), (3, 1)]))
    dtype, rng = draw(st.sampled_from(DTYPES)), np.random.default_rng(draw(st.integers(0, 99)))
    kind = draw(st.sampled_from(["both", "both", "row", "column"]))
    shapes = ((k,) if kind == "row" else (*batch, m, k)), ((k,) if kind == "column" else (k, n))
    a, b = (rng.integers(-3, 4, shape).astype(dtype) for shape in shapes)
    if dtype.kind == "c":
        a, b = a + 1j * np.flip(a), b - 1j * np.flip(b)
    cuts = st.lists(st.integers(0, 70), max_size=2)
    lazy = []
    for x in (a, b):
        ends = [[0, *sorted(min(size, end) for end in draw(cuts)), size] for size in x.shape]
        lazy.append(da.from_array(x, chunks=tuple(tuple(np.diff(one).tolist()) for one in ends)))
    return a, b, lazy


@settings(max_examples=20, deadline=None)
@given(cases())
def test_random_products(case):
    a, b, lazy = case
    c = distributed.matmul(*lazy)
    wanted = a @ b
    assert (c.shape, c.dtype) == (wanted.shape, a.dtype)
    np.testing.assert_array_equal(c.compute(), wanted)


def test_a_product_is_lazy_and_its_sums_are_a_tree(monkeypatch):
    """No task gets more than two products, whatever K is cut into."""
    added, total = [], blocks.total
    monkeypatch.setattr(blocks, "total", lambda parts, **_: added.append(parts) or total(parts))
    a, b = check.exact_inputs(50, 30, 100)
    c = distributed.matmul(*in_chunks(20, 10, a), *in_chunks(10, 15, b))
    assert c.chunks == ((20, 20, 10), (15, 15))
    assert not any(isinstance(parts, list) for parts in added), "nothing is computed yet"
    np.testing.assert_array_equal(c[5:25, 20:].compute(), (a @ b)[5:25, 20:])
    assert max(len(parts) for parts in added if isinstance(parts, list)) == 2


@pytest.mark.parametrize(("copied", "rows"), [("", 16), ("b", 16), ("ab", 16), ("ab", 10)])
def test_blocks_in_the_memory_of_a_device(copied, rows, monkeypatch):
    """As to a GPU; where the chunks of k differ, blocks are cut, and are NumPy arrays then."""
    monkeypatch.setattr(blocks, "has_own_memory", lambda device: True)
    a, b = check.exact_inputs(50, 70, 64)
    (x,), (y,) = in_chunks(30, 16, a), in_chunks(rows, 40, b)
    x, y = (distributed.to_device(z) if name in copied else z for name, z in (("a", x), ("b", y)))
    c = distributed.matmul(x, y)
    (kept,) = dask.compute(c.to_delayed()[0, 0])
    assert isinstance(kept, blocks.DeviceBlock if (copied, rows) == ("ab", 16) else np.ndarray)
    assert check.exact(distributed.to_host(c).compute(), a, b).ok
    sent = pickle.loads(pickle.dumps(blocks.copy_to_device(a)))
    assert sent.shape == a.shape and dask.sizeof.sizeof(sent) >= a.nbytes
    np.testing.assert_array_equal(sent + blocks.copy_to_device(a), 2 * a)


def in_files(folder, a, b):
    """a as a Zarr array, b as a view of a mapped file."""
    x = zarr.open(str(folder / "a.zarr"), mode="w", shape=a.shape, chunks=(40, 40), dtype=a.dtype)
    x[:] = a
    np.save(folder / "b.npy", np.pad(np.asfortranarray(b), ((3, 2), (1, 4))))
    return x, np.load(folder / "b.npy", mmap_mode="r")[3:-2, 1:-4]


def test_matrices_in_files(tmp_path, own_memory):
    a, b = check.exact_inputs(150, 130, 170)
    x, y = in_files(tmp_path, a, b)
    c = distributed.matmul(x, y, chunks=(64, 70, 50))
    assert c.chunks == ((64, 64, 22), (70, 60)) and c.dtype == a.dtype
    c.to_zarr(str(tmp_path / "c.zarr"))
    assert check.exact(np.asarray(zarr.open(str(tmp_path / "c.zarr"), mode="r")), a, b).ok
    whole = distributed.matmul(x, y)
    sizes = distributed.choose_blocks(150, 130, 170)
    assert whole.chunks == da.core.normalize_chunks(sizes[:2], whole.shape)
    assert check.exact(whole.compute(), a, b).ok


def test_a_mapped_array_is_sent_by_name(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(10**4, dtype=np.float32).reshape(100, 100))
    view = np.load(tmp_path / "x.npy", mmap_mode="r").T[::-1, 5:]
    sent = pickle.dumps(stored.Mapped(view))
    assert len(sent) < 1000
    np.testing.assert_array_equal(pickle.loads(sent)[3:7, 2:9], view[3:7, 2:9])


# Faults


def chunk_files(array):
    """The files of a Zarr array's chunks, in order."""
    files = sorted(path for path in array.rglob("*") if path.is_file())
    return [path for path in files if not path.name.startswith(".") and path.suffix != ".json"]


def test_a_chunk_that_cannot_be_read_is_named(tmp_path, own_memory):
    a, b = check.exact_inputs(100, 90, 160)
    x, y = in_files(tmp_path, a, b)
    rows = distributed.matmul(x, y, chunks=(40, 90, 40))
    damaged = chunk_files(tmp_path / "a.zarr")[6]  # rows 40 to 80, columns 80 to 120
    damaged.write_bytes(damaged.read_bytes()[:9])
    with pytest.raises(distributed.BlockError, match=r"block \(1, 0\) .*, step 2 along k"):
        rows.to_zarr(str(tmp_path / "c.zarr"), fill_value=np.nan)
    c = zarr.open(str(tmp_path / "c.zarr"), mode="r")
    assert np.isnan(c[40:80]).all(), "what is missing is not a number"
    np.testing.assert_array_equal(rows[:40].compute(), (a @ b)[:40])
    np.testing.assert_array_equal(rows[80:].compute(), (a @ b)[80:])


def test_a_file_that_has_become_too_short_is_named(tmp_path, own_memory):
    x, y = in_files(tmp_path, *check.exact_inputs(100, 90, 160))
    product = distributed.matmul(x, y, chunks=(100, 90, 40))
    os.truncate(tmp_path / "b.npy", 1000)
    with pytest.raises(distributed.BlockError, match="step 0 along k"):
        product.compute()
    os.remove(tmp_path / "b.npy")
    with pytest.raises(distributed.BlockError, match=r"b\.npy"):
        product.compute()


def test_a_block_that_fails_is_named_and_an_error_of_opencl_travels(monkeypatch):
    """OpenCL's own exception cannot be pickled; what it says can."""

    def fails(*_, **__):
        cl.Buffer(default_device().context, 0, size=0)

    monkeypatch.setattr(blocks, "matmul", fails)
    x = da.ones((20, 30), chunks=10, dtype=np.float32)
    said = r"block \(\d, \d\) .* step \d .*10 x 10 times 10 x 10.*INVALID_BUFFER_SIZE"
    with pytest.raises(distributed.BlockError, match=said) as caught:
        distributed.matmul(x, x.T).compute()
    sent = pickle.loads(pickle.dumps(caught.value))
    assert str(sent) == str(caught.value) and caught.value.__context__ is None


# What is refused


@pytest.mark.parametrize(
    ("a", "b", "error", "words"),
    [
        (ones(3, 4), np.ones((4, 3), "f4"), TypeError, "b .*from_array"),
        (ones(3, 4, dtype="f8"), ones(4, 3), TypeError, "b .*float64.*float32"),
        (ones(3, 4, dtype=int), ones(4, 3, dtype=int), TypeError, "a .*int64"),
        (ones(3, 4), ones(3, 4), ValueError, r"4.*3"),
        (ones(4, 4)[ones(4) > 0], ones(4, 4), ValueError, r"a .*compute_chunk_sizes\(\)"),
    ],
)
def test_what_it_refuses(a, b, error, words):
    with pytest.raises(error, match=words):
        distributed.matmul(a, b)


def test_chunks_are_three_numbers_for_files(tmp_path):
    with pytest.raises(ValueError, match="chunks"):
        distributed.matmul(ones(4, 4), ones(4, 4), chunks=(2, 2, 2))
    x, y = in_files(tmp_path, *check.exact_inputs(9, 8, 7))
    for chunks in ((2, 2), (2, 2, 0), 8, 0, ()):
        with pytest.raises(ValueError, match="chunks"):
            distributed.matmul(x, y, chunks=chunks)


sides = st.integers(1, 10**6)


@given(st.tuples(sides, sides, sides), st.integers(1, 40), st.integers(2**20, 2**40))
def test_chosen_blocks_fit_the_memory_and_keep_all_workers_busy(sizes, workers, memory_bytes):
    found = distributed.choose_blocks(*sizes, "float64", memory_bytes=memory_bytes, workers=workers)
    rows, columns, depth = found
    assert all(1 <= block <= size for block, size in zip(found, sizes, strict=True))
    assert 8 * (2 * depth * (rows + columns) + 3 * rows * columns) <= memory_bytes
    number = -(-sizes[0] // rows) * -(-sizes[1] // columns)
    assert number >= 2 * workers or max(rows, columns) <= 64


@pytest.mark.skipif(os.name == "nt", reason="Windows has no limit of file sizes")
def test_a_full_disk_leaves_no_damaged_block(tmp_path, own_memory):
    """Files may grow to 8 kB: blocks of zeros compress to less, and the last one does not."""
    import resource

    a, b = check.random_inputs(256, 64, 64)
    a[:192] = 0
    c = distributed.matmul(*in_files(tmp_path, a, b), chunks=(64, 64, 64))
    expected = c.compute()  # compiles
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, before[1]))
    try:
        with pytest.raises(OSError):
            c.to_zarr(str(tmp_path / "c.zarr"), fill_value=np.nan)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    found = zarr.open(str(tmp_path / "c.zarr"), mode="r")
    assert np.isnan(found[192:]).all() and not np.isnan(expected).any()
    for rows in (slice(0, 64), slice(64, 128), slice(128, 192)):
        assert np.isnan(found[rows]).all() or (found[rows] == expected[rows]).all()
