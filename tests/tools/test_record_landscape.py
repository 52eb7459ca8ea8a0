"""Recording a landscape: complete, continued where it stopped, and no wrong kernel counts."""

import dataclasses
import os
import types

import pytest
import record_landscape
import registers
from texts import edited

from gemmlab import catalog, trial
from gemmlab.measurement import peaks, records
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
    made, spec = Landscape(records.read(path)), catalog[2]
    settings = record_landscape.settings(spec, any_device.limits)
    assert set(made.rows(2)) == {tuple(setting.values()) for setting in settings}
    assert f"kernel 2: {len(settings)} settings, at best" in capsys.readouterr().out
    for params in settings:
        row = made.rate(2, params)
        assert row.gflops > 0 and row.driver == any_device.driver and row.head["command"]
        assert (row.registers is None) == ("nvidia" not in any_device.features)
    assert made.peak == 1000.0 and made.limits == any_device.limits

    tried = []
    monkeypatch.setattr(record_landscape, "trial", refused(tried))
    record_landscape.main(arguments)
    assert tried == [], "all is there"
    other = {"TS": 3}
    monkeypatch.setattr(record_landscape, "settings", lambda *_: [*settings, other])
    record_landscape.main(arguments)
    assert [params for _, params, _ in tried] == [other]
    assert Landscape(records.read(path)).rate(2, other).note == "no"


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
        for row in made.rows(kernel).values():
            assert (row.gflops, row.registers, row.spilled) == (2.0, row.params["TS"], kernel)


def trial_of_a_rate(rate: float):
    result = types.SimpleNamespace(ok=True, gflops=rate * 1e-9)
    return lambda kernel, size, **options: Outcome({}, result)


def test_a_file_of_something_else_is_not_continued(any_device, tmp_path):
    path = tmp_path / "landscape.json"
    record_landscape.record(any_device, [2], SIZE, path, seconds=0)
    with pytest.raises(ValueError, match=f"{SIZE}.*, not with .*128"):
        record_landscape.record(any_device, [2], 128, path)
    path.write_text(path.read_text().replace(any_device.driver, "older"))
    with pytest.raises(ValueError, match="older"):
        record_landscape.record(any_device, [2], SIZE, path)
    path.write_text('[{"title": "calls", "device": "a card", "tables": []}]')
    with pytest.raises(ValueError, match="landscape.json is not a landscape"):
        record_landscape.record(any_device, [2], SIZE, path)


def test_an_interrupt_loses_nothing(any_device, tmp_path, monkeypatch):
    tried = []
    trial = refused(tried)

    def third_time(*args, **options):
        if len(tried) == 2:
            raise KeyboardInterrupt
        return trial(*args, **options)

    monkeypatch.setattr(record_landscape, "trial", third_time)
    path = tmp_path / "landscape.json"
    with pytest.raises(KeyboardInterrupt):
        record_landscape.record(any_device, [2], SIZE, path)
    found = Landscape(records.read(path))
    assert len(found.rows(2)) + len(found.over_sizes(2)) >= 2


def test_a_wrong_kernel_does_not_count(any_device, tmp_path):
    job = record_landscape.Job(1, {"TS": 16}, SIZE)
    text = edited(1, ("A[k*M + m]", "2 * A[k*M + m]"))
    outcome = trial(1, SIZE, params=job.params, source=text, device=any_device)
    (row,) = record_landscape.rows_of(job, outcome, (10, 0), True, any_device)
    assert row["metric"] == "refused" and "wrong" in row["note"] and "median" not in row


def test_nothing_is_timed_while_settings_are_compiled(monkeypatch):
    compiled = []

    def compiling(kernel, params, device, cache):
        compiled.append(params)
        return params, 0

    monkeypatch.setattr(record_landscape, "registers", compiling)
    monkeypatch.setattr(record_landscape, "BATCH", 3)
    monkeypatch.setattr(
        record_landscape, "os", types.SimpleNamespace(environ={}, cpu_count=os.cpu_count)
    )
    device = types.SimpleNamespace(features={"nvidia"})
    jobs = [record_landscape.Job(1, number, 64) for number in range(7)]
    with record_landscape.compiled_in_batches(device, jobs) as used:
        for number, reported in enumerate(used):
            assert reported == (number, 0)
            assert sorted(compiled) == [*range(min(7, number // 3 * 3 + 3))]


def test_registers_are_those_of_gemm():
    line = "Compiling entry function '{}' for 'sm_90'\n {} bytes spill stores\n Used {} registers\n"
    log = line.format("fixup", 8, 36) + line.format("gemm", 4, 233)
    assert registers.in_log(log) == (233, 4)
    assert registers.in_log(line.format("gemm", 0, 40) + line.format("fixup", 8, 36)) == (40, 0)
    assert registers.in_log("") is None
