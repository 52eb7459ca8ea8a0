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
    return [(k, name, row) for k, lists in auto.table().items() for name, known in lists.items() for row in known]


@pytest.mark.parametrize(("kind", "name", "row"), rows())
def test_every_row_is_legal_and_was_measured(kind, name, row):
    """And stands in a list that its kernel's strategy belongs to."""
    assert kind in auto.FALLBACK
    assert name in (auto.EDGES[catalog[row["kernel"]].edges], "awkward")
    assert catalog[row["kernel"]].problems(row["params"], ROOMY) == []
    assert row["size"] > 0 and row["gflops"] > 0


def test_the_nearest_size_is_taken(any_device):
    gpu = dataclasses.replace(any_device, kind="GPU", platform="NVIDIA CUDA", limits=ROOMY)
    for edges, name in auto.EDGES.items():
        known = auto.table()["nvidia"][name]
        assert len(known) >= 5
        for row in known:
            chosen, params = auto.choose(gpu, (row["size"],) * 3, edges)
            assert (chosen, dict(params)) == (row["kernel"], row["params"])
        odd = 100_001  # beyond all rows, and no whole tiles
        assert auto.choose(gpu, (odd, odd, odd), edges)[0] == known[-1]["kernel"]
        if edges != "shift":
            assert auto.choose(gpu, (1, 1, 1), edges)[0] == known[0]["kernel"]


def test_whole_tiles_take_the_rows_without_edges(any_device):
    gpu = dataclasses.replace(any_device, kind="GPU", platform="NVIDIA CUDA", limits=ROOMY)
    row = auto.table()["nvidia"]["rows"][-1]
    whole = catalog[row["kernel"]].multiples(row["params"])
    sizes = tuple(-(-4096 // multiple) * multiple for multiple in whole)
    assert auto.choose(gpu, sizes) == (row["kernel"], tuple(row["params"].items()))
    assert auto.choose(gpu, (sizes[0] + 1, *sizes[1:])) != auto.choose(gpu, sizes)


def test_a_strategy_that_cannot_serve_a_size_names_one_that_can(device):
    a, b = check.exact_inputs(3, 200, 50)
    with pytest.raises(ValueError, match="3 rows of a and 200 columns of b; edges='pad' and edges='guard' serve any"):
        matmul(a, b, edges="shift", device=device)
    with pytest.raises(ValueError, match="M=200 is less|N=3 is less"):
        matmul(a, b, kernel=13, device=device)
    for edges in ("pad", "guard", "auto"):
        assert check.exact(matmul(a, b, edges=edges, device=device), a, b).ok


def test_edges_and_kernel_must_agree(device):
    a, b = check.exact_inputs(40, 50, 60)
    with pytest.raises(ValueError, match="edges='shift', but kernel 12 is for edges='guard'; kernel=13 fits"):
        matmul(a, b, kernel=12, edges="shift", device=device)
    for wrong in ("Pad", None, 3):
        with pytest.raises(ValueError, match="edges must be one of 'pad', 'guard', 'shift', 'auto'"):
            matmul(a, b, edges=wrong, device=device)
    for kernel, edges in ((12, "guard"), (12, "auto"), (3, "pad")):
        assert check.exact(matmul(a, b, kernel=kernel, edges=edges, device=device), a, b).ok


def test_an_empty_product_needs_no_tile(device):
    for edges in auto.EDGES:
        assert matmul(np.ones((0, 5), np.float32), np.ones((5, 7), np.float32), edges=edges, device=device).shape == (
            0,
            7,
        )
        assert not matmul(np.ones((3, 0), np.float32), np.ones((0, 7), np.float32), edges=edges, device=device).any()


@pytest.mark.parametrize(
    ("kind", "platform", "name"),
    [("GPU", "NVIDIA CUDA", "nvidia"), ("GPU", "AMD", "gpu"), ("CPU", "Intel(R) OpenCL", "intel"),
     ("CPU", "Portable Computing Language", "pocl"), ("CPU", "Else", "cpu")],
)  # fmt: skip
def test_kinds_of_devices(any_device, kind, platform, name):
    assert auto.kind(dataclasses.replace(any_device, kind=kind, platform=platform, version="", name="a chip")) == name
    on_amd = dataclasses.replace(any_device, kind=kind, platform=platform, version="PoCL 3.1", name="cpu-AMD EPYC")
    assert auto.kind(on_amd) == (f"{name} on AMD" if name in ("intel", "pocl") else name)
    old = dataclasses.replace(any_device, kind="CPU", platform="Portable Computing Language", version="PoCL 3.0-rc2")
    assert auto.kind(old) == "pocl 3.0"


def test_a_device_for_which_no_row_is_legal_gets_kernel_3_that_fits(any_device):
    tiny = dataclasses.replace(any_device, limits=Limits("a tiny device", 16, (16, 16, 16), 1024, 1))
    for edges, expected in (("pad", 3), ("guard", 12), ("auto", 3)):
        number, params = auto.choose(tiny, (512, 512, 512), edges)
        assert number == expected and catalog[number].problems(dict(params), tiny.limits) == []


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
    assert row["size"] == 512 and row["gflops"] == 160 and len(said) == len(auto.candidates("pad")) + 1


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
