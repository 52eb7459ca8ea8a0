"""Recording a landscape: complete, continued where it stopped, and no wrong kernel counts."""

import dataclasses
import json
import types

import pytest
import record_landscape
from texts import edited

from gemmlab import catalog, trial
from gemmlab.measurement import peaks
from gemmlab.measurement.landscape import Landscape
from gemmlab.model import Peaks
from gemmlab.sandbox.client import Outcome

SIZE = 64


@pytest.fixture(autouse=True)
def quick_peaks(monkeypatch):
    """The peak is another test's business, and takes seconds."""
    monkeypatch.setattr(peaks, "peaks", lambda device: Peaks(1000.0, 10.0))


def refused(tried: list):
    """A trial that notes what it gets, and measures nothing."""

    def trial(kernel, size, **options):
        tried.append((kernel, options["params"], size))
        return Outcome({}, problem="no")

    return trial


@pytest.mark.system
def test_all_settings_are_recorded_and_continued(any_device, tmp_path, monkeypatch, capsys):
    path = tmp_path / "landscape.json"
    device = ["--device", str(any_device.index)]
    arguments = ["--kernels", "2", "--size", str(SIZE), "--out", str(path), *device]
    record_landscape.main(arguments)
    made, spec = record_landscape.Recording.load(path), catalog[2]
    settings = record_landscape.settings(spec, any_device.limits)
    assert set(made.rows(2)) == {tuple(setting.values()) for setting in settings}
    assert f"kernel 2: {len(settings)} settings, at best" in capsys.readouterr().out
    for params in settings:
        one = made.rate(2, params)
        assert one.gflops > 0 and not one.problem
        assert (one.registers is None) == ("nvidia" not in any_device.features)
    assert made.peak == 1000.0 and made.limits == any_device.limits
    assert made.head["device"] == any_device.facts() and {"command", "date"} <= made.head.keys()

    tried = []
    monkeypatch.setattr(record_landscape, "trial", refused(tried))
    record_landscape.main(arguments)
    assert tried == [], "all is there"
    gone = made.kernels[2]["settings"].pop()
    made.save(path)
    record_landscape.main(arguments)
    assert [list(params.values()) for _, params, _ in tried] == [gone[:1]]
    assert Landscape.load(path).rate(2, {"TS": gone[0]}).problem == "no"


def test_the_compiler_s_registers_belong_to_their_settings(any_device, tmp_path, monkeypatch):
    """On NVIDIA's GPUs all cores compile ahead, and finish in any order."""
    gpu = dataclasses.replace(any_device, name="NVIDIA H200", features=frozenset({"nvidia"}))
    monkeypatch.setattr(
        record_landscape, "registers", lambda kernel, params, *others: (params["TS"], kernel)
    )
    monkeypatch.setattr(record_landscape, "trial", trial_of_a_rate(2e9))
    made = record_landscape.record(gpu, [2, 3], 512, tmp_path / "landscape.json")
    for kernel in (2, 3):
        assert set(made.over_sizes(kernel)) == {256, 512, 1024}
        for values, (gflops, registers, spilled, _) in made.rows(kernel).items():
            assert (gflops, registers, spilled) == (2.0, values[0], kernel)


def trial_of_a_rate(rate: float):
    result = types.SimpleNamespace(ok=True, gflops=rate * 1e-9)
    return lambda kernel, size, **options: Outcome({}, result)


def test_a_file_of_something_else_is_not_continued(any_device, tmp_path):
    path = tmp_path / "landscape.json"
    record_landscape.record(any_device, [2], SIZE, path, seconds=0)
    with pytest.raises(ValueError, match=f"'size': {SIZE}}}, not with .*'size': 128"):
        record_landscape.record(any_device, [2], 128, path)
    data = json.loads(path.read_text())
    path.write_text(json.dumps({**data, "device": {**data["device"], "driver": "older"}}))
    with pytest.raises(ValueError, match="older"):
        record_landscape.record(any_device, [2], SIZE, path)
    path.write_text(json.dumps({"command": "python tools/compare.py", "date": "2026-11-22"}))
    with pytest.raises(ValueError, match="landscape.json is no landscape"):
        record_landscape.record(any_device, [2], SIZE, path)


def test_an_interrupt_loses_nothing(any_device, tmp_path, monkeypatch):
    added, add = [], record_landscape.add

    def add_two(*args):
        add(*args)
        added.append(args)
        if len(added) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(record_landscape, "add", add_two)
    monkeypatch.setattr(record_landscape, "trial", refused([]))
    path = tmp_path / "landscape.json"
    with pytest.raises(KeyboardInterrupt):
        record_landscape.record(any_device, [2], SIZE, path)
    assert len(Landscape.load(path).rows(2)) == 2


def test_a_wrong_kernel_does_not_count(any_device, tmp_path):
    landscape = record_landscape.record(any_device, [1], SIZE, tmp_path / "x.json", seconds=0)
    job = record_landscape.Job(1, {"TS": 16}, SIZE)
    text = edited(1, ("A[k*M + m]", "2 * A[k*M + m]"))
    outcome = trial(1, SIZE, params=job.params, source=text, device=any_device)
    record_landscape.add(landscape, any_device, job, outcome, (10, 0))
    assert "wrong" in landscape.rate(1, job.params).problem and landscape.best(1) is None


def test_occupancy_follows_from_registers_and_local_memory():
    spec, params = catalog[6], catalog[6].defaults  # 16 x 16 work-items, 16.5 KB of local memory
    h200 = types.SimpleNamespace(name="NVIDIA H200")
    assert record_landscape.occupancy(h200, spec, params, 32) == 100
    assert record_landscape.occupancy(h200, spec, params, 128) == 25  # 2 groups of 8 warps of 64
