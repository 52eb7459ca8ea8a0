"""kernel="auto": the table says legal things, the nearest row is taken, and the search finds what
is fastest.
"""

import dataclasses
import json
import statistics
import time

import numpy as np
import pytest

from gemmlab import catalog, check, matmul
from gemmlab.catalog import Limits
from gemmlab.generate import selection

ROOMY = Limits("a roomy device", 8192, (8192,) * 3, 2**20)


def rows():
    return [
        (k, name, row)
        for k, lists in selection.table().items()
        for name, known in lists.items()
        for row in known
    ]


@pytest.mark.parametrize(("kind", "name", "row"), rows())
def test_every_row_is_legal_and_was_measured(kind, name, row):
    """And stands in a list that its kernel's strategy belongs to."""
    assert kind in selection.FALLBACK
    fixed = selection.PRECISIONS.get(name)
    if fixed:
        assert (
            catalog[row["kernel"]].tensor
            and selection.implied(name, row["kernel"]).items() <= row["params"].items()
        )
    else:
        assert name in (selection.EDGES[catalog[row["kernel"]].edges], "ragged", selection.WHOLE)
        assert not catalog[row["kernel"]].tensor
    assert list(row["params"]) == list(catalog[row["kernel"]].defaults), (
        "parameters that came later are filled in"
    )
    assert catalog[row["kernel"]].problems(row["params"], ROOMY) == []
    assert min(selection.dimensions(row["size"])) > 0 and row["gflops"] > 0
    grain = {"pad": 64, selection.WHOLE: 4}.get(name, 1)
    assert all(side % grain == 0 for side in selection.dimensions(row["size"]))


def test_the_nearest_size_is_taken(any_device):
    gpu = dataclasses.replace(
        any_device, kind="GPU", platform="NVIDIA CUDA", limits=ROOMY, units=132
    )
    for edges, name in selection.EDGES.items():
        known = selection.table()["nvidia"][name]
        assert len(known) >= 4
        for row in known:
            chosen, params = selection.choose(gpu, selection.dimensions(row["size"]), edges)
            assert (chosen, dict(params)) == (row["kernel"], row["params"])
        odd = 100_001  # beyond all rows, and no whole tiles
        assert selection.choose(gpu, (odd, odd, odd), edges)[0] == known[-1]["kernel"]
        if edges != "shift":
            assert selection.choose(gpu, (1, 1, 1), edges)[0] == known[0]["kernel"]


def test_whole_sizes_take_the_rows_for_them(any_device):
    gpu = dataclasses.replace(
        any_device, kind="GPU", platform="NVIDIA CUDA", limits=ROOMY, units=132
    )
    known = selection.table()["nvidia"][selection.WHOLE]
    assert any(isinstance(row["size"], list) for row in known)
    for row in known:
        sizes = selection.dimensions(row["size"])
        assert selection.choose(gpu, sizes) == (row["kernel"], tuple(row["params"].items()))
        assert selection.choose(gpu, tuple(size + 64 for size in sizes))[0] == row["kernel"]
        awkward = selection.choose(gpu, (sizes[0] + 1, *sizes[1:]))
        assert any(
            awkward == (r["kernel"], tuple(r["params"].items()))
            for r in selection.table()["nvidia"]["ragged"]
        )


def test_groups_that_share_tiles_are_as_many_a_compute_unit(any_device):
    """The rows were found on 132: a device with half or a quarter of them gets half or a quarter of
    the groups.
    """
    known = [
        row for row in selection.table()["nvidia"][selection.WHOLE] if row["params"].get("GROUPS")
    ]
    assert known and {row["units"] for row in known} == {132}
    for units, part in ((132, 1), (66, 2), (33, 4)):
        gpu = dataclasses.replace(
            any_device, kind="GPU", platform="NVIDIA CUDA", limits=ROOMY, units=units
        )
        for row in known:
            number, params = selection.choose(gpu, selection.dimensions(row["size"]))
            assert (number, dict(params)) == (
                row["kernel"],
                row["params"] | {"GROUPS": row["params"]["GROUPS"] // part},
            )
    assert selection._scaled({"params": {"GROUPS": 264}, "units": 132}, 1)["GROUPS"] == 2
    assert (
        selection._scaled({"params": {"GROUPS": 16}, "units": 132}, 1)["GROUPS"] == 1
    )  # never 0: that means another thing
    for row in (
        {"params": {"GROUPS": 0}, "units": 132},
        {"params": {"GROUPS": 16}, "units": 0},
        {"params": {}},
    ):
        assert selection._scaled(row, 8) == row["params"]


@pytest.fixture
def tables(monkeypatch):
    """Another table in place of the recorded one."""
    real = selection.table

    def put(**lists):
        rows = {
            name: [{"gflops": 1.0, **row} for row in lists.get(name, [])]
            for name in (selection.WHOLE, *REST)
        }
        monkeypatch.setattr(selection, "table", lambda: {"nvidia": rows})
        selection._nearest.cache_clear()

    yield put
    selection._nearest.cache_clear()
    assert real().keys() >= {"nvidia"}


REST = tuple(selection.EDGES.values())


def test_without_rows_for_whole_sizes_those_for_padding_are_taken(any_device, tables):
    """As on devices whose rows are older."""
    gpu = dataclasses.replace(
        any_device, kind="GPU", platform="NVIDIA CUDA", limits=ROOMY, units=132
    )
    padded = {"size": 1024, "kernel": 3, "params": {"TS": 16, "WPT": 4}}
    awkward = {"size": 1000, "kernel": 12, "params": {"TS": 16, "WPT": 4}}
    whole = {"size": 1024, "kernel": "warp_tiling", "params": catalog["warp_tiling"].defaults}
    tables(pad=[padded], ragged=[awkward])
    assert (
        selection.choose(gpu, (1024, 1024, 1024))[0] == 3
        and selection.choose(gpu, (1023, 1024, 1024))[0] == 12
    )
    tables(pad=[padded], ragged=[awkward], whole=[whole])
    assert (
        selection.choose(gpu, (1024, 1024, 1024))[0] == "warp_tiling"
        and selection.choose(gpu, (1023, 1024, 1024))[0] == 12
    )
    assert selection.choose(gpu, (1024, 1024, 1023))[0] == "warp_tiling", (
        "K may be anything for this kernel"
    )
    tables(pad=[padded])
    assert selection.choose(gpu, (1023, 1024, 1024))[0] == 3


def test_the_nearest_shape_is_taken(any_device, tables):
    gpu = dataclasses.replace(
        any_device, kind="GPU", platform="NVIDIA CUDA", limits=ROOMY, units=132
    )
    shapes = {8: 1024, 16: [64, 8192, 8192], 24: [8192, 64, 8192], 32: [256, 256, 65536]}
    tables(whole=[{"size": size, "kernel": 1, "params": {"TS": ts}} for ts, size in shapes.items()])

    def taken(*sizes):
        return dict(selection.choose(gpu, sizes)[1])["TS"]

    assert [taken(*selection.dimensions(size)) for size in shapes.values()] == list(shapes)
    assert (
        taken(96, 4800, 9600) == 16 and taken(4800, 96, 9600) == 24 and taken(96, 96, 96_000) == 32
    )
    assert taken(2400, 2400, 2400) == 8 and taken(48, 48, 48) == 8


def test_distance_counts_doublings():
    assert selection.distance(1024, (1024, 1024, 1024)) == 0
    assert selection.distance(1024, (2048, 512, 1024)) == 2
    assert selection.distance([64, 8192, 1], (128, 1024, 8)) == 1 + 3 + 3
    assert selection.distance(1024, (3000, 1000, 1)) == pytest.approx(
        selection.distance([3000, 1000, 1], (1024, 1024, 1024))
    )
    assert selection.distance(1024, (0, 1024, 1024)) == 10  # an empty product has a kernel too
    assert selection.dimensions(7) == (7, 7, 7) and selection.dimensions(
        [1, 2, 3]
    ) == selection.dimensions((1, 2, 3)) == (1, 2, 3)


def test_rows_are_completed_with_parameters_that_came_later(tmp_path, monkeypatch):
    old = {
        "size": 512,
        "kernel": 11,
        "gflops": 1.0,
        "params": {"RX": 16, "RY": 4, "WIDTH": 16, "GX": 2, "GY": 4},
    }
    (tmp_path / "auto.json").write_text(json.dumps({"nvidia": {"pad": [old], "device": "a chip"}}))
    monkeypatch.setattr(selection.sources, "folder", lambda name: tmp_path)
    found = selection.table.__wrapped__()["nvidia"]
    assert found["pad"][0]["params"] == catalog[11].defaults | old["params"] | {"TRANSPOSED": 1}
    assert (
        set(found) == {selection.WHOLE, *selection.EDGES.values(), "tf32", "tf32x3"}
        and found[selection.WHOLE] == []
    )


def test_a_strategy_that_cannot_serve_a_size_names_one_that_can(device):
    a, b = check.exact_inputs(3, 200, 50)
    with pytest.raises(
        ValueError,
        match="3 rows of a and 200 columns of b; edges='pad' and edges='guard' serve any",
    ):
        matmul(a, b, edges="shift", device=device)
    with pytest.raises(ValueError, match="M=200 is less|N=3 is less"):
        matmul(a, b, kernel=13, device=device)
    for edges in ("pad", "guard", "auto"):
        assert check.exact(matmul(a, b, edges=edges, device=device), a, b).ok


def test_edges_and_kernel_must_agree(device):
    a, b = check.exact_inputs(40, 50, 60)
    with pytest.raises(
        ValueError, match="edges='shift', but kernel 12 is for edges='guard'; kernel=13 fits"
    ):
        matmul(a, b, kernel=12, edges="shift", device=device)
    for wrong in ("Pad", None, 3):
        with pytest.raises(
            ValueError, match="edges must be one of 'pad', 'guard', 'shift', 'auto'"
        ):
            matmul(a, b, edges=wrong, device=device)
    for kernel, edges in ((12, "guard"), (12, "auto"), (3, "pad")):
        assert check.exact(matmul(a, b, kernel=kernel, edges=edges, device=device), a, b).ok


def test_an_empty_product_needs_no_tile(device):
    for edges in selection.EDGES:
        assert matmul(
            np.ones((0, 5), np.float32), np.ones((5, 7), np.float32), edges=edges, device=device
        ).shape == (
            0,
            7,
        )
        assert not matmul(
            np.ones((3, 0), np.float32), np.ones((0, 7), np.float32), edges=edges, device=device
        ).any()


@pytest.mark.parametrize(
    ("kind", "platform", "name"),
    [("GPU", "NVIDIA CUDA", "nvidia"), ("GPU", "AMD", "gpu"), ("CPU", "Intel(R) OpenCL", "intel"),
     ("CPU", "Portable Computing Language", "pocl"), ("CPU", "Else", "cpu")],
)  # fmt: skip
def test_kinds_of_devices(any_device, kind, platform, name):
    assert (
        selection.kind(
            dataclasses.replace(any_device, kind=kind, platform=platform, version="", name="a chip")
        )
        == name
    )
    on_amd = dataclasses.replace(
        any_device, kind=kind, platform=platform, version="PoCL 3.1", name="cpu-AMD EPYC"
    )
    assert selection.kind(on_amd) == (f"{name} on AMD" if name in ("intel", "pocl") else name)
    old = dataclasses.replace(
        any_device, kind="CPU", platform="Portable Computing Language", version="PoCL 3.0-rc2"
    )
    assert selection.kind(old) == "pocl 3.0"


def test_a_device_for_which_no_row_is_legal_gets_kernel_3_that_fits(any_device, tables):
    """The rows of the table that stand for it, whatever they are, ask for more than it has."""
    large = {"size": 512, "kernel": 7, "params": catalog[7].defaults}
    tables(pad=[large], whole=[large], ragged=[large])
    tiny = Limits("a tiny device", 16, (16, 16, 16), 1024, 1)
    tiny = dataclasses.replace(any_device, kind="GPU", platform="NVIDIA CUDA", limits=tiny)
    for edges, expected in (("pad", 3), ("guard", 12), ("auto", 3)):
        number, params = selection.choose(tiny, (512, 512, 512), edges)
        assert number == expected and catalog[number].problems(dict(params), tiny.limits) == []


def test_auto_is_right_at_every_scale(device):
    for sizes in [(1, 1, 1), (3, 200, 50), (129, 65, 257), (300, 300, 300)]:
        a, b = check.exact_inputs(*sizes)
        for x, y in ((a, b), (np.ascontiguousarray(a), np.ascontiguousarray(b))):
            assert check.exact(matmul(x, y, device=device), a, b).ok, sizes


def test_matmul_side_by_side_with_numpy(device, capsys):
    """Printed, not asserted: whole calls at 1024 cubed, NumPy arrays in and out, in alternating
    rounds.

    NumPy's threads wait busily for a while after its last call, so each round begins with a pause
    and a warm-up.
    """
    a, b = (np.ascontiguousarray(x) for x in check.random_inputs(1024, 1024, 1024))
    c = matmul(a, b, device=device)
    assert check.accuracy(c, a, b).ok
    times = {"gemmlab": [], "NumPy": []}
    for name, call in (
        ("gemmlab", lambda: matmul(a, b, device=device)),
        ("NumPy", lambda: a @ b),
    ) * 3:
        time.sleep(0.1)
        call()
        for _ in range(10):
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    ours, numpy = (statistics.median(t) * 1e3 for t in times.values())
    with capsys.disabled():
        print(
            f"\nmatmul at 1024 on {device}: {ours:.1f} ms, NumPy {numpy:.1f} ms, ratio "
            f"{numpy / ours:.2f}"
        )
