"""The commands: each takes only what it uses, refuses in a sentence, and records what it
measured.
"""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import gemmlab
from gemmlab import catalog, cli
from gemmlab.measurement import tuned
from gemmlab.worker import client, verify

ROOT = Path(__file__).resolve().parents[1]


def command(*arguments, folder: Path) -> subprocess.CompletedProcess:
    """Run ``python -m gemmlab`` far from the checkout."""
    return subprocess.run(
        [sys.executable, "-m", "gemmlab", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=300,
    )


def test_the_command_says_its_version(tmp_path):
    assert command("--version", folder=tmp_path).stdout.strip() == gemmlab.__version__


def test_doctor_tries_every_device(tmp_path, any_device):
    done = command("doctor", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    for device in gemmlab.devices():
        assert f"device {device.index}: {device}" in done.stdout
    assert done.stdout.count("product: right: every element exact") == len(gemmlab.devices())
    assert f"The default is {gemmlab.default_device()}" in done.stdout


def test_doctor_without_a_device_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path / "nowhere"))  # a loader that finds nothing
    done = command("doctor", folder=tmp_path)
    assert done.returncode == 1 and "No OpenCL device works here" in done.stdout
    assert f"{sys.executable} -m pip install" in done.stdout and done.stderr == ""


def test_bench_records_what_it_measured(tmp_path, any_device):
    wanted = ["--kernels", "1,3", "--sizes", "64,100", "--params", "TS=16", "--repeats", "2"]
    done = command("bench", *wanted, "--json", "found.json", "--title", "test", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["title"] == "test" and found["command"].startswith(
        "python -m gemmlab bench --kernels 1,3"
    )
    assert [(r["kernel"], r["m"], r["n"], r["k"]) for r in found["results"]] == [
        (kernel, size, size, size) for kernel in (1, 3) for size in (64, 100)
    ]
    for result in found["results"]:
        assert result["ok"] and result["gflops"] > 0
        assert (result["params"]["TS"], result["repeats"]) == (16, 2)
        assert {"device", "platform", "driver"} <= set(result["device"]) and result["when"]
        assert str(result["m"]) in done.stdout
    assert found["peaks"]["gflops"] > 0 and {"gemmlab", "pyopencl", "numpy", "python"} <= set(
        found["versions"]
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("bench --kernels 1-99", "there is no kernel"),
        ("bench --kernels x", "--kernels"),
        ("bench --sizes big", "--sizes"),
        ("bench --sizes 64x128", "--sizes"),
        ("bench --params TS", "--params"),
        ("bench --device 'no such thing'", "no device fits 'no such thing'"),
        ("bench --kernels 3 --params TS=20,WPT=8", "TS=20 is not a multiple of WPT=8"),
        ("bench --kernels 3 --precision tf32x3", "--precision says what 'auto' chooses from"),
        ("bench --kernels 3 --edges guard", "--edges says what 'auto' chooses from"),
        ("bench --title mine", "--title is for the record"),
        ("bench --tries 3", "unrecognized arguments: --tries"),
        ("bench --sizes 0", "'0' is no positive whole number"),
        ("bench --sizes 8-4", "'8-4' is no positive whole number and no range"),
        ("bench --sizes 8-16:0", "sizes such as 256,512"),
        ("bench --sizes 4x0x5", "must be a positive whole number, not '0'"),
        ("bench --kernels 3-1", "'3-1' is no positive whole number and no range"),
        ("bench --kernels ''", "kernels such as 1-3,10,warp_tiling"),
        ("bench --kernels 1,3 --params TSM=8", "--params has TSM"),
        ("bench --params TS=a", "'TS=a' are no settings"),
        ("bench --repeats 0", "argument --repeats: must be a positive whole number, not '0'"),
        ("worker here:1 --memory-gib -1", "--memory-gib: must be a positive number"),
        ("dance", "invalid choice: 'dance'"),
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
    assert code and said in told.err + told.out


def test_a_refusal_ends_the_process_without_a_traceback(tmp_path):
    done = command("bench", "--kernels", "1", "--title", "mine", folder=tmp_path)
    assert done.returncode == 2 and "--title" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.system
def test_verify_passes(monkeypatch, capsys, any_device):
    """With three kernels; all of them are tested in tests/kernels."""
    monkeypatch.setattr(verify, "catalog", {number: catalog[number] for number in (1, 6, 13)})
    assert cli.main(["verify", "--device", str(any_device.index)]) == 0
    assert "9 passed, 0 failed" in capsys.readouterr().out


def test_verify_tells_what_fails(monkeypatch, capsys, any_device):
    monkeypatch.setattr(
        verify, "trial", lambda *args, **options: client.Outcome({}, problem="wrong on purpose")
    )
    monkeypatch.setattr(verify, "look", lambda *args, **options: None)
    assert cli.main(["verify"]) == 1
    said = capsys.readouterr().out
    assert " 0 passed, " in f" {said.splitlines()[-1]}" and "wrong on purpose" in said
    for number in catalog:
        assert f"kernel {number} {{" in said


def test_bench_leaves_out_what_does_not_fit_and_keeps_the_rest(tmp_path, any_device):
    """Kernel 13 needs a whole tile; nine results were once lost because of it."""
    wanted = ["--kernels", "1,13", "--sizes", "32,160", "--repeats", "1", "--json", "found.json"]
    done = command("bench", *wanted, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "left out: kernel 13 at 32 x 32 x 32: it needs at least" in done.stdout
    found = json.loads((tmp_path / "found.json").read_text())
    assert [(r["kernel"], r["m"]) for r in found["results"]] == [(1, 32), (1, 160), (13, 160)]
    done = command("bench", "--kernels", "13", "--sizes", "32", folder=tmp_path)
    assert done.returncode == 2 and "it needs at least" in done.stderr


@pytest.fixture
def measured(monkeypatch):
    """A list of what is measured; the third measurement is interrupted."""
    seen: list = []
    real = cli._measured

    def measure(given, device, kernel, sizes):
        seen.append(kernel)
        if len(seen) == 2:
            raise MemoryError("made up")
        if len(seen) == 4:
            raise KeyboardInterrupt
        return real(given, device, kernel, sizes)

    monkeypatch.setattr(cli, "_measured", measure)
    return seen


def test_bench_keeps_what_it_has_when_it_fails_or_is_interrupted(tmp_path, measured, capsys):
    file = tmp_path / "found.json"
    wanted = ["--kernels", "1", "--sizes", "16,17,18,19", "--repeats", "1", "--json", str(file)]
    assert cli.main(["bench", *wanted]) == 1
    assert [r["m"] for r in json.loads(file.read_text())["results"]] == [16, 18]
    said = capsys.readouterr().out
    assert "17 x 17 x 17 failed: made up" in said and f"interrupted; {file} holds" in said
    assert len(measured) == 4


@pytest.mark.parametrize("name", ["nowhere/found.json", "folder", "notes.json", "precious.txt"])
def test_bench_looks_at_its_file_before_it_measures(name, tmp_path, measured, capsys):
    (tmp_path / "folder").mkdir()
    (tmp_path / "notes.json").write_text("{}")
    (tmp_path / "precious.txt").write_text("precious")
    wanted = ["--kernels", "1", "--sizes", "16", "--json", str(tmp_path / name)]
    try:
        assert cli.main(["bench", *wanted]) == 2
    except SystemExit as end:  # of argparse
        assert end.code == 2
    assert name.partition("/")[0] in capsys.readouterr().err and not measured
    assert (tmp_path / "precious.txt").read_text() == "precious"


@pytest.mark.parametrize(("passed", "code"), [(2, 0), (1, 1)])
def test_verify_counts_what_only_the_compiler_refuses(
    passed, code, monkeypatch, capsys, any_device
):
    """A kernel may need more registers than the device has for its work-group."""
    right = SimpleNamespace(kernel_ms=1, ok=True, verdict="right")
    outcomes = [client.Outcome({}, right)] * passed
    outcomes += [client.Outcome({}, problem="at most 32", kind="WorkGroupError")] * (3 - passed)
    monkeypatch.setattr(verify, "catalog", {1: catalog[1]})
    monkeypatch.setattr(verify, "trial", lambda *given, **options: outcomes.pop())
    assert cli.main(["verify", "--device", str(any_device.index)]) == code
    said = capsys.readouterr().out
    assert f"{passed} passed, 0 failed; {3 - passed} were refused" in said


def test_verify_without_a_device_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path / "nowhere"))
    done = command("verify", folder=tmp_path)
    assert done.returncode == 2 and "no OpenCL device" in done.stderr


def test_tune_does_what_the_function_does(monkeypatch, capsys):
    given: list = []
    monkeypatch.setattr(tuned, "tune", lambda *arguments: given.append(arguments) or ["a choice"])
    assert cli.main(["tune", "--sizes", "64,1x2x3", "--device", "0"]) == 0
    assert cli.main(["tune"]) == 0
    assert given == [
        ([(64, 64, 64), (1, 2, 3)], "0", "float32"),
        (tuned.USUAL, None, "float32"),
    ]
    assert capsys.readouterr().out.count("a choice") == 2


def test_bench_takes_sizes_that_differ(tmp_path, any_device):
    wanted = ["--kernels", "3,auto", "--sizes", "64x96x32", "--repeats", "2"]
    wanted += ["--json", "found.json"]
    done = command("bench", *wanted, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert [(r["m"], r["n"], r["k"], r["ok"]) for r in found["results"] + found["auto"]] == 2 * [
        (64, 96, 32, True)
    ]


def test_model_prints_the_recorded_ladder_and_one_kernel(capsys):
    assert cli.main(["model", "--chip", "K40m"]) == 0
    table = capsys.readouterr().out
    assert [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")][
        1:
    ] == [str(n) for n in range(1, 11)]
    assert cli.main(["model", "--kernel", "2"]) == 0
    said = capsys.readouterr().out
    assert "local memory" in said and "Instruction issue allows" in said
    assert cli.main(["model", "--kernel", "tensor_cores"]) == 2
    assert "kernel tensor_cores is not recorded" in capsys.readouterr().err
