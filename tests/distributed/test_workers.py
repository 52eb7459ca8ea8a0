"""Products on several worker processes: right, where they should be, and still right when a worker
is killed.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import DEVICES, FULL, lacking
from hypothesis import given, settings

dask = pytest.importorskip("dask")

import dask.array as da  # noqa: E402
import zarr  # noqa: E402
from dask.distributed import Client, LocalCluster, Nanny, wait  # noqa: E402
from distributed_cases import as_dask, products  # noqa: E402

from gemmlab import check, distributed  # noqa: E402


@pytest.fixture(scope="module")
def device():
    if not DEVICES:
        lacking("no OpenCL device")
    return next(iter(DEVICES.values()))


def exact_arrays(m, n, k, *, chunks):
    """Matrices of small whole numbers as Dask arrays, made by the workers, with a and b for the
    check.
    """
    a, b = check.exact_inputs(m, n, k)
    return da.from_array(a, chunks=chunks), da.from_array(b, chunks=chunks), a, b


def test_two_workers(device, tmp_path):
    """A product of arrays and one of files; each worker is a process that has its device."""
    with distributed.cluster([device, device], dashboard=False) as client:
        found = distributed.survey(client)
        assert len({each["process"] for each in found.values()} - {os.getpid()}) == 2
        assert {each["device"] for each in found.values()} == {str(device)}
        x, y, a, b = exact_arrays(300, 200, 250, chunks=100)
        assert check.exact(distributed.matmul(x, y).compute(), a, b).ok
        np.save(tmp_path / "a.npy", a)
        z = zarr.open(str(tmp_path / "b.zarr"), mode="w", shape=b.shape, dtype=b.dtype)
        z[:] = b
        mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
        c = distributed.matmul(mapped, z, chunks=(150, 100, 100))
        c.to_zarr(str(tmp_path / "c.zarr"))
        assert check.exact(np.asarray(zarr.open(str(tmp_path / "c.zarr"), mode="r")), a, b).ok


def test_blocks_of_files_fit_the_least_worker(device, tmp_path):
    """Their sizes were once chosen for the memory of this machine, and each worker died."""
    x = zarr.open(str(tmp_path / "x.zarr"), mode="w", shape=(16384, 16384), dtype="float32")
    with distributed.cluster([device], memory_bytes=2**30, dashboard=False):
        c = distributed.matmul(x, x)
    rows, columns = (max(sizes) for sizes in c.chunks)
    assert 2**20 < 16 * rows * columns < 2**29
    with (
        distributed.cluster([device], memory_bytes=2**26, dashboard=False),
        pytest.raises(ValueError, match="start workers with more memory"),
    ):
        distributed.matmul(x, x)


@pytest.mark.system
def test_system_a_worker_of_another_machine(device):
    """`python -m gemmlab worker` takes part in a scheduler that somebody else has started, and ends
    with it.
    """
    with (
        LocalCluster(n_workers=0, dashboard_address=None) as scheduler,
        Client(scheduler) as client,
    ):
        options = [client.scheduler.address, "--device", str(device.index)]
        command = [sys.executable, "-m", "gemmlab", "worker", *options]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(command, **pipes, text=True)
        try:
            client.wait_for_workers(1, timeout=60)
            assert str(device) in process.stdout.readline()
            x, y, a, b = exact_arrays(200, 200, 200, chunks=100)
            assert check.exact(distributed.matmul(x, y).compute(), a, b).ok
            client.shutdown()
            assert process.wait(60) is not None
        finally:
            process.kill()


# A cluster takes seconds to start, so that what needs the same one shares it.


@pytest.mark.system
def test_system_two_workers_and_one_without_a_device(device, tmp_path):
    with distributed.cluster([device] * 2, dashboard=False) as client:
        memory_does_not_depend_on_the_size_of_matrices_in_files(client, tmp_path)
        random_products()
        a_product_stays_with_the_workers_that_have_a_device(client)


@pytest.mark.system
def test_system_four_workers(device):
    with distributed.cluster([device] * 4) as client:
        random_products()
        a_large_product_by_a_random_vector()
        a_block_that_fails_on_a_worker_is_named()
        a_worker_killed_in_the_middle(client)


@settings(max_examples=100 if FULL else 6, deadline=None, derandomize=True)
@given(products())
def random_products(case):
    a, b, cuts = case
    c = distributed.matmul(*as_dask(a, b, cuts)).compute()
    np.testing.assert_array_equal(c, a @ b)


def a_large_product_by_a_random_vector():
    """C x = A (B x) with whole numbers, each side computed by Dask in float64: no matrix is ever in
    one place.
    """
    size, chunk = 1024, 256
    a, b = (
        da.random.default_rng(seed).integers(0, 2, (size, size), chunks=chunk) * 2 - 1
        for seed in (1, 2)
    )
    a, b = a.astype(np.float32).persist(), b.astype(np.float32).persist()
    x = np.random.default_rng(3).integers(-9, 10, size).astype(np.float64)
    c = distributed.matmul(a, b)
    left, right = dask.compute(c.astype(float) @ x, a.astype(float) @ (b.astype(float) @ x))
    np.testing.assert_array_equal(left, right)


def a_product_stays_with_the_workers_that_have_a_device(client):
    """In a cluster with other workers the resource keeps all of a product away from these, fused or
    not.
    """
    without = {"nthreads": 2, "env": {"GEMMLAB_DEVICE": "none"}}
    client.cluster.worker_spec["other"] = {"cls": Nanny, "options": without}
    client.sync(client.cluster._correct_state)
    client.wait_for_workers(3)
    own = {address for address, w in client.scheduler_info()["workers"].items() if w["resources"]}
    assert len(own) == 2
    x, y, a, b = exact_arrays(400, 400, 400, chunks=100)
    c = client.persist(distributed.matmul(x, y), resources={distributed.RESOURCE: 1})
    wait(c)
    assert {worker for places in client.who_has(c).values() for worker in places} <= own
    assert check.exact(c.compute(), a, b).ok


def a_worker_killed_in_the_middle(client):
    """The product is right all the same."""
    x, y, a, b = exact_arrays(800, 800, 800, chunks=200)
    future = client.compute(distributed.matmul(x, y))
    time.sleep(0.2)
    os.kill(next(iter(distributed.survey(client).values()))["process"], signal.SIGKILL)
    assert check.exact(future.result(timeout=120), a, b).ok


def a_block_that_fails_on_a_worker_is_named():
    x = da.ones((200, 200), chunks=100, dtype=np.float32)
    with pytest.raises(
        distributed.BlockError, match=r"block \(\d, \d\) of the product, step \d along k .*kernel"
    ):
        distributed.matmul(x, x, kernel=99).compute()
    assert (distributed.matmul(x, x).compute() == 200).all(), "the worker goes on"


def memory_does_not_depend_on_the_size_of_matrices_in_files(client, folder):
    """A product twelve times as large as the memory that its blocks are said to need, beside what
    libraries have.
    """
    if not Path("/proc/self/clear_refs").exists():
        return  # the peak of a process can be read on Linux alone
    size, side, depth = 1536, 384, 96
    of_blocks = 4 * (2 * depth * 2 * side + 3 * side * side)
    options = {"mode": "w", "shape": (size, size), "chunks": (side, depth), "dtype": np.float32}
    a, b = (zarr.open(str(folder / f"{name}.zarr"), **options) for name in "ab")
    a[:], b[:] = check.exact_inputs(size, size, size)
    # compiles
    distributed.matmul(a, b, chunks=(side, side, depth)).to_zarr(str(folder / "first.zarr"))
    before, here = client.run(peak_of_memory, reset=True), peak_of_memory(reset=True)
    distributed.matmul(a, b, chunks=(side, side, depth)).to_zarr(str(folder / "c.zarr"))
    grown = [peak - before[worker] for worker, peak in client.run(peak_of_memory).items()]
    assert max(grown) < of_blocks + 10e6 < 3 * a.nbytes / 2
    assert peak_of_memory() - here < 10e6, "the scheduler lives in this process, and sees no block"


def peak_of_memory(reset: bool = False) -> int:
    """The most bytes that this process has had in memory since it began, or since the last
    reset.
    """
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    (line,) = (
        x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith("VmHWM")
    )
    return 1024 * int(line.split()[1])


@pytest.mark.parametrize("devices", [[], "pocl", 0])
def test_devices_are_a_list(devices):
    with pytest.raises(ValueError, match="devices must be a list"), distributed.cluster(devices):
        pass
