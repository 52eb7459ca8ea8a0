"""Recording a landscape: what it holds, that it goes on where it stopped, and that a wrong kernel does not count."""

import dataclasses
import io
import json
import sys
import threading
import time
import types
from collections import Counter

import pytest
from texts import edited

from gemmlab import catalog
from gemmlab.bench import landscape, peaks, recorder
from gemmlab.bench.landscape import Landscape
from gemmlab.catalog import sources
from gemmlab.model import Peaks
from gemmlab.opencl import ptx

SIZE = 64


@pytest.fixture(autouse=True)
def quick_peaks(monkeypatch):
    """The peak is another test's business, and takes seconds."""
    monkeypatch.setattr(peaks, "peaks", lambda device: Peaks(1000.0, 10.0))


def test_all_settings_are_recorded_and_no_setting_twice(any_device, tmp_path, monkeypatch):
    path = tmp_path / "landscape.json"
    assert recorder.record(any_device, [2], SIZE, path=path, command="python -m gemmlab record") == path
    found, spec = Landscape.load(path), catalog[2]
    chosen = landscape.choice(spec, any_device.limits)
    assert set(found.rows(2)) == {tuple(setting.values()) for setting in chosen}
    for params in chosen:
        record = found.rate(2, params)
        assert record.gflops > 0 and not record.problem and record.current
        assert (record.registers is None) == ("nvidia" not in any_device.features)
    assert found.peak == 1000.0 and found.limits == any_device.limits and found.title == any_device.name
    assert found.head["device"] == any_device.facts() and found.head["command"] == "python -m gemmlab record"

    asked = []
    monkeypatch.setattr(recorder._Crew, "_measure", lambda self, child, job: asked.append(job) or {"problem": "no"})
    recorder.record(any_device, [2], SIZE, path=path)
    assert asked == [], "all is there"
    gone = found.kernels[2]["settings"].pop()
    found.save(path)
    recorder.record(any_device, [2], SIZE, path=path)
    assert [list(job.params.values()) for job in asked] == [gone[:1]]
    assert Landscape.load(path).rate(2, {"TS": gone[0]}).problem == "no"


def test_children_compile_side_by_side_and_take_turns_on_the_device(any_device, tmp_path, monkeypatch):
    running, most, lock, two = Counter(), Counter(), threading.Lock(), threading.Event()

    def ask(self, step, **arguments):
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

    monkeypatch.setattr(recorder._Child, "ask", ask)
    monkeypatch.setattr(recorder.os, "cpu_count", lambda: 4)
    gpu = dataclasses.replace(any_device, kind="GPU", memory=2**34, features=frozenset())
    found = Landscape.load(recorder.record(gpu, [3], SIZE, path=tmp_path / "landscape.json"))
    assert most["time"] == 1 and 2 <= most["compile"] <= 4
    assert {row[0] for row in found.rows(3).values()} == {recorder._rounded(2 * SIZE**3 / 2e-3 * 1e-9)}
    small = recorder._Crew(dataclasses.replace(gpu, memory=1), [[recorder.Job(3, {}, SIZE)]] * 9)
    assert len(small._children) == 1, "the matrices of one child must fit"


def test_the_defaults_are_recorded_over_sizes(any_device, tmp_path, monkeypatch):
    monkeypatch.setattr(recorder._Crew, "_measure", lambda self, child, job: {"ms": [job.size / 100], "used": (40, 0)})
    path = tmp_path / "landscape.json"
    recorder.record(any_device, [1, 6], 512, path=path)
    found = Landscape.load(path)
    for kernel in (1, 6):
        rates = found.over_sizes(kernel)
        assert set(rates) == {256, 512, 1024} and rates[1024] == pytest.approx(4 * rates[512], rel=1e-3)
        start = catalog[kernel].fit(any_device.limits)
        assert found.rate(kernel, start).gflops == rates[512] and found.rate(kernel, start).registers == 40


def test_a_file_of_something_else_is_not_continued(any_device, tmp_path):
    path = tmp_path / "landscape.json"
    recorder.record(any_device, [2], SIZE, seconds=0, path=path)
    with pytest.raises(ValueError, match=f"recorded with size {SIZE}, not 128; give another file"):
        recorder.record(any_device, [2], 128, path=path)
    data = json.loads(path.read_text())
    path.write_text(json.dumps({**data, "device": {**data["device"], "driver": "older"}}))
    with pytest.raises(ValueError, match="recorded with the driver .*older, not "):
        recorder.record(any_device, [2], SIZE, path=path)


def test_an_interrupt_loses_nothing_and_ends_the_children(any_device, tmp_path, monkeypatch):
    crews, added = [], []
    real_crew, real_add = recorder._Crew, recorder._add

    def crew(*args):
        crews.append(real_crew(*args))
        return crews[-1]

    def add(*args):
        real_add(*args)
        added.append(args)
        if len(added) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(recorder, "_Crew", crew)
    monkeypatch.setattr(recorder, "_add", add)
    path = tmp_path / "landscape.json"
    with pytest.raises(KeyboardInterrupt):
        recorder.record(any_device, [2], SIZE, path=path)
    assert len(Landscape.load(path).rows(2)) == 2
    for thread in crews[0]._threads:
        thread.join(timeout=60)
        assert not thread.is_alive()
    assert all(child._process.poll() is not None for child in crews[0]._children)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (("A[k*M + m]", "2 * A[k*M + m]"), "not the product"),
        (("C[n*M + m] = acc", "C[n*M + m] = acc; if (m + n == 0) C[M*N + 9] = 1.0f"), "outside C"),
        (("C[n*M + m] = acc", "if (m + n > 0) C[n*M + m] = acc"), "not the product"),
    ],
)
def test_a_wrong_kernel_does_not_count(edit, said, any_device, monkeypatch):
    text = edited(1, edit)
    monkeypatch.setattr(sources, "read", lambda file: text)
    bench = recorder._Bench(any_device)
    bench.compile(1, {"TS": 16}, SIZE)
    assert min(bench.time()["ms"]) > 0
    assert said in bench.check()["problem"]


@pytest.mark.parametrize(
    ("runs", "kept"),
    [
        ([50.0], [50.0]),  # slow: once is enough
        ([11.0, 11.05], [11.05]),
        ([11.0, 13.0, 11.0, 11.1, 11.0, 11.0], [13.0, 11.0, 11.1, 11.0, 11.0]),  # disturbed: more of them
        ([1.0] * 6, [1.0] * 5),
    ],
)
def test_runs_that_disagree_are_repeated(runs, kept, any_device, monkeypatch):
    bench, left = recorder._Bench(any_device), iter(runs)
    bench._inputs = types.SimpleNamespace(exact=(), random=())
    product = types.SimpleNamespace(run=lambda: [("gemm", next(left))])
    monkeypatch.setattr(bench, "_of", lambda operands: product)
    assert bench.time() == {"ms": kept} and list(left) == []


@pytest.mark.parametrize("size", (SIZE, 100))
@pytest.mark.parametrize("number", (3, 10, 13, "warp_tiling"))
def test_a_right_kernel_counts(number, size, any_device):
    bench, spec = recorder._Bench(any_device), catalog[number]
    settings = landscape.choice(spec, any_device.limits)
    params = [s for s in settings if spec.edges != "shift" or max(spec.minimum_sizes(s)) <= size][-1]
    bench.compile(number, params, size)
    assert min(bench.time()["ms"]) > 0 and bench.check() == {}


def test_a_child_that_dies_or_hangs_is_an_answer(any_device, monkeypatch):
    child = recorder._Child(any_device)
    child._command = [sys.executable, "-c", "print({}, flush=True); input(); exit(3)"]
    assert "code 3" in child.ask("compile")["problem"]
    child._command = [sys.executable, "-c", "import time; print({}, flush=True); time.sleep(60)"]
    monkeypatch.setitem(recorder.LIMITS, "check", 0.5)
    assert "took over 0.5 s" in child.ask("check")["problem"]
    child.close()
    assert child.ask("compile") == {"problem": "interrupted"}


def test_children_that_do_not_start_are_no_answer(any_device, tmp_path, monkeypatch):
    """Or the file would say of every setting that it does not run."""
    monkeypatch.setattr(recorder.sys, "executable", "false")
    path = tmp_path / "landscape.json"
    with pytest.raises(RuntimeError, match="does not start: the step 'start' ended its process with code 1"):
        recorder.record(any_device, [2], SIZE, path=path)
    assert not Landscape.load(path).rows(2)


def test_a_child_answers_every_request(any_device):
    requests = [
        {"step": "compile", "kernel": 2, "params": {"TS": 16}, "size": SIZE},
        {"step": "time"},
        {"step": "check"},
        {"step": "compile", "kernel": 3, "params": {"TS": 20, "WPT": 8}, "size": SIZE},
    ]
    answers = io.StringIO()
    lines = io.StringIO("".join(json.dumps(request) + "\n" for request in requests))
    recorder._serve(lines, answers, recorder._Bench(any_device))
    greeting, compiled, timed, checked, refused = map(json.loads, answers.getvalue().splitlines())
    assert greeting == {} and set(compiled) == {"used"} and min(timed["ms"]) > 0 and checked == {}
    assert "TS=20 is not a multiple of WPT=8" in refused["problem"]


def test_occupancy_follows_from_registers_and_local_memory(any_device):
    spec, params = catalog[6], catalog[6].defaults  # 16 x 16 work-items, 16.5 KB of local memory
    h200 = type("H200", (), {"name": "NVIDIA H200"})()
    assert recorder.occupancy(h200, spec, params, None) is None
    assert recorder.occupancy(h200, spec, params, 32) == 100
    assert recorder.occupancy(h200, spec, params, 128) == 25  # 2 work-groups of 8 warps of 64


def test_a_build_log_names_registers_and_spills():
    log = "ptxas info    : 0 bytes gmem\n    0 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads\n"
    assert ptx.in_log(log + "ptxas info    : Used 40 registers, 8192 bytes smem") == (40, 16)
    assert ptx.in_log("Used 40 registers") == (40, 0) and ptx.in_log("") is None
