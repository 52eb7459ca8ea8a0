"""kernel="auto": the table says legal things, the nearest row is taken, and the search finds what is fastest."""

import dataclasses
import statistics
import time

import numpy as np
import pytest

from gemmlab import auto, catalog, check, matmul
from gemmlab.catalog import Limits

ROOMY = Limits("a roomy device", 8192, (8192,) * 3, 2**20)


def rows():
    return [(kind, row) for kind, known in auto.table().items() for row in known]


@pytest.mark.parametrize(("kind", "row"), rows())
def test_every_row_is_legal_and_was_measured(kind, row):
    assert kind in auto.FALLBACK
    assert catalog[row["kernel"]].problems(row["params"], ROOMY) == []
    assert row["size"] > 0 and row["gflops"] > 0


def test_the_nearest_size_is_taken(any_device):
    gpu = dataclasses.replace(any_device, kind="GPU", platform="NVIDIA CUDA", limits=ROOMY)
    known = auto.table()["nvidia"]
    for row in known:
        number, params = auto.choose(gpu, float(row["size"]))
        assert (number, dict(params)) == (row["kernel"], row["params"])
    assert auto.choose(gpu, 1.0)[0] == known[0]["kernel"] and auto.choose(gpu, 1e6)[0] == known[-1]["kernel"]


@pytest.mark.parametrize(
    ("kind", "platform", "name"),
    [("GPU", "NVIDIA CUDA", "nvidia"), ("GPU", "AMD", "gpu"), ("CPU", "Intel(R) OpenCL", "intel"),
     ("CPU", "Portable Computing Language", "pocl"), ("CPU", "Else", "cpu")],
)  # fmt: skip
def test_kinds_of_devices(any_device, kind, platform, name):
    assert auto.kind(dataclasses.replace(any_device, kind=kind, platform=platform)) == name


def test_a_device_for_which_no_row_is_legal_gets_kernel_3_that_fits(any_device):
    tiny = dataclasses.replace(any_device, limits=Limits("a tiny device", 16, (16, 16, 16), 1024, 1))
    number, params = auto.choose(tiny, 512.0)
    assert number == 3 and catalog[3].problems(dict(params), tiny.limits) == []


def test_auto_is_right_at_every_scale(device):
    for sizes in [(1, 1, 1), (3, 200, 50), (129, 65, 257), (300, 300, 300)]:
        a, b = check.exact_inputs(*sizes)
        for x, y in ((a, b), (np.ascontiguousarray(a), np.ascontiguousarray(b))):
            assert check.exact(matmul(x, y, device=device), a, b).ok, sizes


def test_the_search_finds_the_fastest_and_never_takes_a_wrong_one(any_device):
    """On a made-up device that likes kernel 7 with WIDTH 2, and on which kernel 9 fails."""

    def run(kernel, params):
        if kernel == 9:
            return 0.0
        return (
            100.0
            + (50 if kernel == 7 else 0)
            + 10
            - 5 * abs(params.get("WIDTH", 2) - 2)
            - abs(params.get("TSM", 64) - 64) / 4
        )

    said = []
    row = auto.search(any_device, 512, run, per_kernel=2, say=said.append)
    assert row["kernel"] == 7 and row["params"]["WIDTH"] == 2 and row["params"]["TSM"] == 64
    assert row["size"] == 512 and row["gflops"] == 160 and len(said) == len(catalog) + 1


def test_matmul_side_by_side_with_numpy(device, capsys):
    """Printed, not asserted: whole calls at 1024 cubed, NumPy arrays in and out, in alternating rounds.

    NumPy's threads wait busily for a while after its last call, so each round begins with a pause and a warm-up.
    """
    a, b = (np.ascontiguousarray(x) for x in check.random_inputs(1024, 1024, 1024))
    c = matmul(a, b, device=device)
    assert check.accuracy(c, a, b).ok
    times = {"gemmlab": [], "NumPy": []}
    for name, call in (("gemmlab", lambda: matmul(a, b, device=device)), ("NumPy", lambda: a @ b)) * 3:
        time.sleep(0.1)
        call()
        for _ in range(10):
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    ours, numpy = (statistics.median(t) * 1e3 for t in times.values())
    with capsys.disabled():
        print(f"\nmatmul at 1024 on {device}: {ours:.1f} ms, NumPy {numpy:.1f} ms, ratio {numpy / ours:.2f}")
