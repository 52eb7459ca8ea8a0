"""Products on several worker processes, also when one of them is killed."""

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("dask")

import dask.array as da
import zarr
from dask.distributed import Nanny, wait
from test_distributed import in_files

from gemmlab import check, distributed


def test_two_workers(any_device, tmp_path):
    """A product of arrays and one of files; each worker is a process that has its device."""
    with distributed.cluster([any_device, any_device], dashboard=False) as client:
        found = distributed.survey(client)
        assert len({each["process"] for each in found.values()} - {os.getpid()}) == 2
        assert {each["device"] for each in found.values()} == {str(any_device)}
        a, b = check.exact_inputs(300, 200, 250)
        lazy = (da.from_array(x, chunks=100) for x in (a, b))
        assert check.exact(distributed.matmul(*lazy).compute(), a, b).ok
        c = distributed.matmul(*in_files(tmp_path, a, b), chunks=(150, 100, 100))
        c.to_zarr(str(tmp_path / "c.zarr"))
        assert check.exact(np.asarray(zarr.open(str(tmp_path / "c.zarr"), mode="r")), a, b).ok


def test_blocks_of_files_fit_the_least_worker(any_device, tmp_path):
    """Their sizes were once chosen for the memory of this machine, and each worker died."""
    x = zarr.open(str(tmp_path / "x.zarr"), mode="w", shape=(16384, 16384), dtype="float32")
    with distributed.cluster([any_device], memory_bytes=2**30, dashboard=False):
        c = distributed.matmul(x, x)
    rows, columns = (max(sizes) for sizes in c.chunks)
    assert 2**20 < 16 * rows * columns < 2**29
    with (
        distributed.cluster([any_device], memory_bytes=2**26, dashboard=False),
        pytest.raises(ValueError, match="start workers with more memory"),
    ):
        distributed.matmul(x, x)


# A cluster takes seconds to start, so that what needs the same one shares it.


@pytest.mark.system
def test_system_two_workers_and_one_without_a_device(any_device, tmp_path):
    with distributed.cluster([any_device] * 2, dashboard=False) as client:
        memory_does_not_depend_on_the_size_of_matrices_in_files(client, tmp_path)
        a_product_stays_with_the_workers_that_have_a_device(client)


@pytest.mark.system
def test_system_three_workers(any_device, tmp_path):
    with distributed.cluster([any_device] * 3) as client:
        workers_killed_in_the_middle(client, tmp_path)


def a_product_stays_with_the_workers_that_have_a_device(client):
    """The resource keeps all of a product away from others, fused or not."""
    without = {"nthreads": 2, "env": {"GEMMLAB_DEVICE": "none"}}
    client.cluster.worker_spec["other"] = {"cls": Nanny, "options": without}
    client.sync(client.cluster._correct_state)
    client.wait_for_workers(3)
    own = {address for address, w in client.scheduler_info()["workers"].items() if w["resources"]}
    assert len(own) == 2
    a, b = check.exact_inputs(400, 400, 400)
    lazy = (da.from_array(x, chunks=100) for x in (a, b))
    c = client.persist(distributed.matmul(*lazy), resources={distributed.RESOURCE: 1})
    wait(c)
    assert {worker for places in client.who_has(c).values() for worker in places} <= own
    assert check.exact(c.compute(), a, b).ok


def workers_killed_in_the_middle(client, folder):
    """The products of arrays and of files are right all the same."""
    a, b = check.exact_inputs(800, 800, 800)
    lazy = distributed.matmul(*(da.from_array(x, chunks=200) for x in (a, b)))
    of_files = distributed.matmul(*in_files(folder, a, b), chunks=(100, 100, 50))
    for c in (lazy, of_files):
        found = distributed.survey(client)
        future = client.compute(c.to_zarr(str(folder / f"{c.name}.zarr"), compute=False))
        time.sleep(0.2)
        for worker in list(found.values())[:2]:
            os.kill(worker["process"], signal.SIGKILL)
        future.result(timeout=240)
        stored = np.asarray(zarr.open(str(folder / f"{c.name}.zarr"), mode="r"))
        assert check.exact(stored, a, b).ok
        client.wait_for_workers(3, timeout=240)  # they are started again


def memory_does_not_depend_on_the_size_of_matrices_in_files(client, folder):
    """A product twelve times as large as the memory that its blocks need by `stored`."""
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
    assert peak_of_memory() - here < 10e6, "the scheduler is in this process, and sees no block"


def peak_of_memory(reset: bool = False) -> int:
    """The most bytes of this process since it began, or since the last reset."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    (line,) = (
        x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith("VmHWM")
    )
    return 1024 * int(line.split()[1])


def test_devices_are_a_list():
    for devices in ([], "pocl", 0):
        with pytest.raises(ValueError, match="must be a list"), distributed.cluster(devices):
            pass
