"""The search finds what is fastest and right, says what fails, and writes it down."""

import json
import types

import pytest

import gemmlab
from gemmlab import catalog, cli
from gemmlab.bench import libraries, timing, tuning
from gemmlab.catalog import sources
from gemmlab.family import selection
from gemmlab.opencl import launch


def test_the_search_finds_the_fastest_and_never_takes_a_wrong_one(any_device):
    """On a made-up device that likes kernel 7 with WIDTH 2, and on which kernel 9 fails."""

    def rate(setting, sizes):
        kernel, params = setting
        assert sizes == (512, 512, 512)
        if kernel == 9:
            return tuning.Rate(0.0, "it does not compile\nat all")
        likes = 160 if kernel == 7 else 110
        return tuning.Rate(likes - 5 * abs(params.get("WIDTH", 2) - 2) - abs(params.get("TSM", 64) - 64) / 4)

    said = []
    row = tuning.Search(any_device, rate, tries=2, say=said.append).best(512)
    assert row["kernel"] == 7 and row["params"]["WIDTH"] == 2 and row["params"]["TSM"] == 64
    assert (row["size"], row["gflops"], row["units"]) == (512, 160, any_device.units)
    assert [line for line in said if "9" in line.split()[1] and line.endswith("does not count: it does not compile")]


def test_a_search_among_some_kernels_keeps_what_is_known_if_that_is_faster(any_device):
    """And one that runs ahead is told all that will be run, before it is run."""
    announced, ran = [], []
    known = selection.choose(any_device, (512, 512, 512), "pad")
    other = next(number for number in (3, 6) if number != known[0])

    def rate(setting, sizes):
        kernel, params = setting
        ran.append(setting)
        return tuning.Rate(100.0 if (kernel, tuple(params.items())) == known else 50.0 + params.get("WPT", 0))

    def among_some(rate, **options):
        return tuning.Search(any_device, rate, tries=2, say=lambda text: None, edges="pad", **options).best(512)

    row = among_some(rate, among=[other], ahead=announced.extend)
    assert (row["kernel"], tuple(row["params"].items())) == known and row["gflops"] == 100
    assert {kernel for kernel, _ in ran} == {other, known[0]}
    assert all(setting in announced for setting in ran if setting != (known[0], dict(known[1])))
    assert [ran.count(setting) for setting in ran] == [1] * len(ran), "nothing is run twice"
    faster = among_some(lambda setting, sizes: tuning.Rate(200.0 if setting[0] == other else 100.0), among=[other])
    assert faster["kernel"] == other and faster["gflops"] == 200
    assert among_some(rate, among=[])["gflops"] == 100  # all of them, the known one too


def test_a_search_at_a_shape(any_device):
    def at(size, say, *among):
        return tuning.Search(
            any_device, lambda *setting: tuning.Rate(1.0), tries=1, say=say, edges="auto", among=among
        ).best(size)

    row = at((64, 256, 128), lambda text: None, "warp_tiling")
    assert row["size"] == [64, 256, 128]
    assert catalog[row["kernel"]].problems(row["params"], any_device.limits) == []
    said = []  # one row of C: no tile of kernel 13 is that small
    row = at((1, 256, 128), said.append, 13, "warp_tiling")
    assert row["size"] == [1, 256, 128] and len(said) == 2


@pytest.mark.parametrize(
    ("size", "edges", "name"),
    [
        (1024, "auto", "whole"),
        ([64, 8192, 8192], "auto", "whole"),
        (1000, "auto", "whole"),
        (1002, "auto", "ragged"),
        ([64, 8192, 8191], "auto", "ragged"),
        (1024, "pad", "pad"),
        (1024, "guard", "guard"),
        (1000, "shift", "shift"),
    ],
)
def test_the_list_that_a_row_belongs_to(size, edges, name):
    assert tuning.list_of(size, edges) == name


def test_a_search_records_each_row_in_its_list(tmp_path, any_device, monkeypatch):
    """Whole sizes by themselves, old rows of other sizes kept, shapes behind cubes."""

    def at(search, size):
        return {"size": size if isinstance(size, int) else list(size), "among": search.among}

    monkeypatch.setattr(tuning.Search, "best", at)
    file, kind = tmp_path / "auto.json", selection.kind(gemmlab.default_device())
    kept = [{"size": 101, "kernel": 1}, {"size": 1002, "kernel": 1}]
    file.write_text(json.dumps({kind: {"ragged": kept, "commands": ["before"]}, "other": {"rows": []}}))
    wanted = ["tune", str(file), "--edges", "auto", "--kernels", "3,warp_tiling", "--sizes", "1002,64x128x64,512"]
    assert cli.main(wanted) == 0
    found = json.loads(file.read_text())
    assert [row["size"] for row in found[kind]["whole"]] == [512, [64, 128, 64]]
    assert found[kind]["ragged"] == [kept[0], {"size": 1002, "among": [3, "warp_tiling"]}]
    assert found["other"] == {"rows": []} and len(found[kind]["commands"]) == 2


def test_a_search_by_calls_checks_what_is_ahead_and_takes_nothing_wrong(tmp_path, any_device, monkeypatch):
    rates = {16: 5.0, 24: 9.0, 32: 7.0, 40: 3.0, 48: 8.0, 64: 20.0}
    checked = []

    def ours(m, n, k, device, kernel, params, precision, rounds):
        if params["TS"] == 48:
            raise MemoryError("too large")
        return [rates[params["TS"]]] * rounds

    def measure(kernel, m, n, k, params, device, repeats):
        checked.append(params["TS"])
        return types.SimpleNamespace(ok=params["TS"] != 24, verdict="wrong")

    monkeypatch.setattr(libraries, "ours", ours)
    monkeypatch.setattr(timing, "measure", measure)
    rate = tuning.ByCalls(any_device, "float32")
    found = [rate((3, {"TS": side}), (64, 64, 64)) for side in rates]
    assert [r.gflops for r in found] == [5.0, 0.0, 7.0, 3.0, 0.0, 20.0] and checked == [16, 24, 32, 64]
    assert [r.problem for r in found] == ["", "wrong", "", "", "too large", ""]


def test_building_ahead_leaves_what_fails_to_the_trial(any_device, monkeypatch):
    built = []
    real = launch.kernel
    monkeypatch.setattr(launch, "kernel", lambda *args: built.append(args) or real(*args))
    tuning._compile(any_device.index, (3, {"TS": 16, "WPT": 4}))
    tuning._compile(any_device.index, (3, {"TS": 20}))  # no legal parameters
    monkeypatch.setattr(sources, "read", lambda file: "no OpenCL C")
    tuning._compile(any_device.index, (3, {"TS": 12, "WPT": 4}))
    assert [args[1]["TS"] for args in built] == [16, 20, 12]
