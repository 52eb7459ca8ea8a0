"""The commands: each refuses in a sentence, and records what it measured."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import run_python

import gemmlab
from gemmlab import cli
from gemmlab.measurement import records, timing, tuned


def command(*arguments, folder: Path):
    """Run ``python -m gemmlab`` far from the checkout."""
    return run_python("-m", "gemmlab", *arguments, folder=folder)


@pytest.fixture
def no_devices(tmp_path, monkeypatch):
    """A loader that finds nothing."""
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path / "nowhere"))


def test_without_a_device_commands_fail_and_doctor_says_what_to_do(tmp_path, no_devices):
    done = command("doctor", folder=tmp_path)
    assert done.returncode == 1 and "No OpenCL device works here" in done.stdout
    assert "sudo apt install" in done.stdout and done.stderr == ""
    assert "conda install" in done.stdout and "unset OCL_ICD_VENDORS" in done.stdout
    for name in ("verify", "bench"):
        done = command(name, folder=tmp_path)
        assert done.returncode == 2 and "no OpenCL device" in done.stderr


#: Small arguments for each command, its exit status, and a word that it prints.
COMMANDS = {
    "doctor": ("", {0, 3}, "{device}"),
    "bench": ("--kernels 1,auto --sizes 16 --repeats 1 --device {index}", {0}, "16 x 16 x 16"),
    "tune": ("--sizes 16 --device {index}", {0, 2}, "{device}"),  # 2: a CPU has no candidates
    "forget": ("", {0}, "gemmlab"),
    "model": ("--kernel 2", {0}, "Kernel 2"),
    "verify": ("--kernels 1,6,13 --device {index}", {0}, "9 passed, 0 failed"),
    "worker": ("tcp://10.0.0.1:8786 --device {index}", {2}, "--host"),  # see tests/distributed
    "notebooks": ("mine --student", {0}, "00_start_here.ipynb"),
    "grades": ("nobody.json", {2}, "nobody.json"),
}


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_each_command_runs_in_a_fresh_process(name, tmp_path, any_device):
    if name == "worker":
        pytest.importorskip("dask")
    arguments, statuses, word = COMMANDS[name]
    folder = {"XDG_CACHE_HOME": str(tmp_path)} if name == "forget" else {}  # it deletes files there
    given = shlex.split(arguments.format(index=any_device.index))
    done = run_python("-m", "gemmlab", name, *given, folder=tmp_path, **folder)
    said = done.stdout + done.stderr
    assert done.returncode in statuses and "Traceback" not in said, said
    assert word.format(device=any_device.name) in said


def test_a_command_ends_in_silence_when_nobody_reads_on(tmp_path):
    """As in `gemmlab model | head -1`."""
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as pipe:
        arguments = [sys.executable, "-m", "gemmlab", "model", "--kernel", "1"]
        done = subprocess.run(arguments, stdout=pipe, stderr=subprocess.PIPE, cwd=tmp_path)
    assert done.stderr == b""


def test_bench_records_what_it_measured(tmp_path, any_device):
    wanted = ["--kernels", "1,13,auto", "--sizes", "64,64x96x32", "--repeats", "2"]
    done = command("bench", *wanted, "--json", "rates.json", "--title", "test", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("left out: ") == 2, "kernel 13 needs a whole tile"
    rows = records.read(tmp_path / "rates.json")
    assert {row.title for row in rows} == {"test"}
    head = rows[0].head
    assert head["command"].startswith("python -m gemmlab bench --kernels 1,13,auto")
    assert {"gemmlab", "pyopencl", "numpy", "python"} <= set(head["versions"])
    assert any(row.metric == "peak GFLOPS" and row.median > 0 for row in rows)
    shapes = [(64, 64, 64), (64, 96, 32)]
    run_by_matmul = [gemmlab.auto(n, m, k, any_device).kernel for m, n, k in shapes]
    for series, kernels in (("ladder", [1, 1]), ("auto", run_by_matmul)):
        rates = [row for row in rows if (row.series, row.metric) == (series, "GFLOPS")]
        assert sorted((row.m, row.n, row.k) for row in rates) == sorted(shapes)
        assert sorted(row.kernel for row in rates) == sorted(kernels)
        assert all(0 < row.low <= row.median <= row.high and row.runs == 2 for row in rates)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("bench --kernels 1,99", "there is no kernel 99"),
        ("bench --kernels 13 --sizes 32", "nothing was measured"),
        ("bench --sizes 64x128", "--sizes"),
        ("bench --sizes 16,x", "'x'"),
        ("bench --sizes 4x0x5", "'4x0x5'"),
        ("bench --device 'no such thing'", "no device fits 'no such thing'"),
        ("bench --repeats 0", "--repeats"),
        ("model --kernel tensor_cores", "kernel tensor_cores is not recorded"),
    ],
)  # fmt: skip
def test_a_command_refuses_in_a_sentence(
    arguments, said, tmp_path, monkeypatch, capsys, any_device
):
    monkeypatch.chdir(tmp_path)
    try:
        code = cli.main(shlex.split(arguments))
    except SystemExit as end:  # of argparse
        code = end.code
    told = capsys.readouterr()
    assert code == 2 and said in told.err and "Traceback" not in told.err


@pytest.fixture
def measured(monkeypatch):
    """A list of what is measured; the second measurement fails, the fourth is interrupted."""
    seen: list = []
    real = timing.measure

    def measure(kernel, *more, **options):
        seen.append(kernel)
        if len(seen) == 2:
            raise MemoryError("made up")
        if len(seen) == 4:
            raise KeyboardInterrupt
        return real(kernel, *more, **options)

    monkeypatch.setattr(timing, "measure", measure)
    return seen


def test_bench_keeps_what_it_has_when_it_fails_or_is_interrupted(
    tmp_path, measured, capsys, any_device
):
    file = tmp_path / "rates.json"
    wanted = ["--kernels", "1", "--sizes", "16,17,18,19", "--repeats", "1", "--json", str(file)]
    assert cli.main(["bench", *wanted]) == 2
    assert [row.m for row in records.read(file) if row.metric == "GFLOPS"] == [16, 18]
    said = capsys.readouterr()
    assert "17 x 17 x 17 failed: made up" in said.out and "interrupted" in said.err


RECORD = '[{"command": "python tools/compare.py", "date": "2026-11-22", "tables": []}]'
PRECIOUS = ("", "my notes", "[]", '{"precious": 1}')


@pytest.mark.parametrize("name", ["nowhere/x.json", "x.json"])
@pytest.mark.parametrize("text", [*PRECIOUS, RECORD])
def test_bench_looks_at_its_file_before_it_measures(
    name, text, tmp_path, measured, capsys, any_device
):
    """Only a record is overwritten."""
    (tmp_path / "x.json").write_text(text)
    wanted = ["--kernels", "1", "--sizes", "16", "--json", str(tmp_path / name)]
    if (name, text) == ("x.json", RECORD):
        assert cli.main(["bench", *wanted]) == 0 and measured
        return
    with pytest.raises(SystemExit, match="2"):  # of argparse
        cli.main(["bench", *wanted])
    assert name.partition("/")[0] in capsys.readouterr().err and not measured
    assert (tmp_path / "x.json").read_text() == text


@pytest.mark.system
def test_tune_does_what_the_function_does(monkeypatch, capsys):
    given: list = []
    monkeypatch.setattr(tuned, "tune", lambda *arguments: given.append(arguments) or ["a choice"])
    assert cli.main(["tune", "--sizes", "64,1x2x3", "--device", "0"]) == 0
    assert cli.main(["tune"]) == 0
    usual = (tuned.USUAL, None, "float32")
    assert given == [([(64, 64, 64), (1, 2, 3)], "0", "float32"), usual]
    assert capsys.readouterr().out.count("a choice") == 2


def test_model_prints_the_recorded_ladder_and_one_kernel(capsys):
    assert cli.main(["model", "--chip", "K40m"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert [row.split("|")[1].strip() for row in rows[1:]] == [str(n) for n in range(1, 11)]
    assert cli.main(["model", "--kernel", "2"]) == 0
    said = capsys.readouterr().out
    assert "local memory" in said and "Instruction issue allows" in said
