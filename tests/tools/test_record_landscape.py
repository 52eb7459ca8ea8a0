"""Recording a landscape: complete, continued where it stopped, and no wrong kernel counts."""

import dataclasses
import json
import multiprocessing
import os
import threading
import time
import types
from collections import Counter

import common
import pytest
import record
import record_landscape
from texts import edited

from gemmlab import catalog
from gemmlab.catalog import sources
from gemmlab.measurement import peaks
from gemmlab.measurement.landscape import Landscape
from gemmlab.model import Peaks

SIZE = 64


@pytest.fixture(autouse=True)
def quick_peaks(monkeypatch):
    """The peak is another test's business, and takes seconds."""
    monkeypatch.setattr(peaks, "peaks", lambda device: Peaks(1000.0, 10.0))


@pytest.mark.system
def test_all_settings_are_recorded_and_continued(any_device, tmp_path, monkeypatch, capsys):
    path = tmp_path / "landscape.json"
    device = ["--device", str(any_device.index)]
    arguments = ["landscape", "--kernels", "2", "--size", str(SIZE), "--out", str(path), *device]
    record.main(arguments)
    found, spec = Landscape.load(path), catalog[2]
    settings = record_landscape.settings(spec, any_device.limits)
    assert set(found.rows(2)) == {tuple(setting.values()) for setting in settings}
    assert f"kernel 2: {len(settings)} settings, at best" in capsys.readouterr().out
    for params in settings:
        one = found.rate(2, params)
        assert one.gflops > 0 and not one.problem
        assert (one.registers is None) == ("nvidia" not in any_device.features)
    assert found.peak == 1000.0 and found.limits == any_device.limits
    assert found.head["device"] == any_device.facts() and {"command", "date"} <= found.head.keys()

    asked = []

    def measured(child, job, turn):
        asked.append(job)
        return {"problem": "no"}

    monkeypatch.setattr(record_landscape, "measured", measured)
    record.main(arguments)
    assert asked == [], "all is there"
    gone = found.kernels[2]["settings"].pop()
    found.save(path)
    record.main(arguments)
    assert [list(job.params.values()) for job in asked] == [gone[:1]]
    assert Landscape.load(path).rate(2, {"TS": gone[0]}).problem == "no"


def test_children_compile_in_parallel_and_share_the_device(any_device, tmp_path, monkeypatch):
    running, most, lock, two = Counter(), Counter(), threading.Lock(), threading.Event()

    def ask(self, step, seconds, **arguments):
        with lock:
            running[step] += 1
            most[step] = max(most[step], running[step])
        if running["compile"] > 1:
            two.set()
        if step == "compile":
            two.wait(60)  # the first child waits for a second one, which may begin late
        time.sleep(0.02)
        with lock:
            running[step] -= 1
        return {"compile": {"used": (40, 0)}, "time": {"ms": [1.0, 3.0, 2.0]}, "check": {}}[step]

    monkeypatch.setattr(common.Child, "ask", ask)
    monkeypatch.setattr(record_landscape.os, "cpu_count", lambda: 4)
    gpu = dataclasses.replace(any_device, kind="GPU", memory=2**34, features=frozenset())
    found = record_landscape.record(gpu, [3, 6], 512, tmp_path / "landscape.json")
    assert most["time"] == 1 and 2 <= most["compile"] <= 4
    rate = record_landscape.rounded(2 * 512**3 / 2e-3 * 1e-9)
    assert {row[0] for row in found.rows(3).values()} == {rate}
    assert set(found.over_sizes(6)) == {256, 512, 1024}
    jobs = [[record_landscape.Job(3, {}, SIZE)]] * 9
    small = dataclasses.replace(gpu, memory=1)
    assert len(record_landscape.children(small, jobs)) == 1, "the matrices of one child must fit"


def test_a_file_of_something_else_is_not_continued(any_device, tmp_path):
    path = tmp_path / "landscape.json"
    record_landscape.record(any_device, [2], SIZE, path, seconds=0)
    with pytest.raises(ValueError, match=f"size {SIZE}, not 128"):
        record_landscape.record(any_device, [2], 128, path)
    data = json.loads(path.read_text())
    path.write_text(json.dumps({**data, "device": {**data["device"], "driver": "older"}}))
    with pytest.raises(ValueError, match="driver older, not "):
        record_landscape.record(any_device, [2], SIZE, path)


@pytest.mark.system
def test_an_interrupt_loses_nothing_and_ends_the_children(any_device, tmp_path, monkeypatch):
    added, add = [], record_landscape.add

    def add_two(*args):
        add(*args)
        added.append(args)
        if len(added) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(record_landscape, "add", add_two)
    path = tmp_path / "landscape.json"
    with pytest.raises(KeyboardInterrupt):
        record_landscape.record(any_device, [2], SIZE, path)
    assert len(Landscape.load(path).rows(2)) == 2
    end = time.monotonic() + 60
    while multiprocessing.active_children() and time.monotonic() < end:
        time.sleep(0.1)
    assert not multiprocessing.active_children()


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (("A[k*M + m]", "2 * A[k*M + m]"), "not the product"),
        (("C[n*M + m] = acc", "C[n*M + m] = acc; if (m + n == 0) C[M*N + 9] = 1.0f"), "outside C"),
        (("C[n*M + m] = acc", "if (m + n > 0) C[n*M + m] = acc"), "not the product"),
        (None, None),
    ],
)
def test_a_wrong_kernel_does_not_count(edit, problem, any_device, monkeypatch):
    text = edited(1, edit) if edit else sources.read(catalog[1].file)
    monkeypatch.setattr(sources, "read", lambda file: text)
    bench = record_landscape.Bench(any_device.index)
    bench.compile(1, {"TS": 16}, SIZE)
    assert min(bench.time()["ms"]) > 0
    found = bench.check()
    assert problem in found["problem"] if problem else found == {}


@pytest.mark.parametrize("number", (3, 13, "warp_tiling"))
def test_a_right_kernel_counts(number, any_device):
    bench, spec = record_landscape.Bench(any_device.index), catalog[number]
    settings = record_landscape.settings(spec, any_device.limits)
    if spec.edges == "shift":
        settings = [setting for setting in settings if max(spec.minimum_sizes(setting)) <= 100]
    bench.compile(number, settings[-1], 100)
    assert min(bench.time()["ms"]) > 0 and bench.check() == {}


class Dangerous:
    """What a child may meet."""

    def die(self):
        os._exit(3)

    def hang(self):
        time.sleep(60)

    def fail(self):
        raise ValueError("no")

    def answer(self, number):
        return {"number": number}


def test_a_child_that_dies_or_hangs_is_an_answer():
    child = common.Child(Dangerous)
    assert "code 3" in child.ask("die", 60)["problem"]
    assert "took over 0.5 s" in child.ask("hang", 0.5)["problem"]
    assert "ValueError: no" in child.ask("fail", 60)["problem"]
    assert child.ask("answer", 60, number=5) == {"number": 5}
    child.close()
    with pytest.raises(RuntimeError, match="does not start"):
        common.Child(os.abort).ask("answer", 60)  # otherwise each setting would seem not to run


def test_occupancy_follows_from_registers_and_local_memory():
    spec, params = catalog[6], catalog[6].defaults  # 16 x 16 work-items, 16.5 KB of local memory
    h200 = types.SimpleNamespace(name="NVIDIA H200")
    assert record_landscape.occupancy(h200, spec, params, None) is None
    assert record_landscape.occupancy(h200, spec, params, 32) == 100
    assert record_landscape.occupancy(h200, spec, params, 128) == 25  # 2 groups of 8 warps of 64
