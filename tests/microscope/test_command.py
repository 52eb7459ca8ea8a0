"""`python -m clscope` in a process of its own, and the README's examples."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.metadata import metadata
from pathlib import Path

import numpy as np
import pytest
from microscope.corpus import MISTAKES, RIGHT, Case

import clscope

RACES = {
    case.name: case for case in MISTAKES if case.name in
    ("sum: no barrier inside the tree", "blur: no barrier", "histogram: no barrier before counting")
}  # fmt: skip
RACE = RACES["sum: no barrier inside the tree"]
SUM = next(case for case in RIGHT if case.name == "sum")
SIZES = ["--global", "64", "--local=16"]
LAUNCH = [*SIZES, "--arg", "a=float:64", "--arg=out=float:4:empty"]


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(
        [str(Path(clscope.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    )
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip


def command(folder: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "kernel.cl").write_text(text)
    return python(folder, "-m", "clscope", "kernel.cl", *options)


@pytest.mark.parametrize("case", [SUM, *RACES.values()], ids=lambda case: case.name)
def test_the_status_says_whether_something_was_found(case: Case, tmp_path):
    """A reduction, a stencil and a histogram, from which a barrier was removed."""
    sizes = [f"--{name}={size[0]}" for name, size in
             (("global", case.launch), ("local", case.group))]  # fmt: skip
    values = [f"--arg={name}={value}" for name, value in case.values.items()]
    done = command(tmp_path, case.text, *sizes, *values, "--order=warps")
    places = [int(line) for line in re.findall(r"^kernel\.cl:(\d+):\d+: race: ", done.stdout, re.M)]
    assert (done.returncode, bool(places)) == ((1, True) if case.lines else (0, False)), done.stderr
    assert set(places) <= case.lines


def test_json_and_sarif_have_the_findings(tmp_path):
    done = command(tmp_path, RACE.text, *LAUNCH, "--json", "--sarif", "log.sarif")
    report, log = json.loads(done.stdout), json.loads((tmp_path / "log.sarif").read_text())
    (result,) = report["results"]
    assert result["kind"] == "race" and result["line"] in RACE.lines and done.returncode == 1
    assert report["counts"]["loads"]["a"] == 64
    # what section 3 of the specification requires of a log, of a run, of a result
    assert log["version"] == "2.1.0" and log["$schema"].endswith("sarif-schema-2.1.0.json")
    (run,) = log["runs"]
    driver, (entry,) = run["tool"]["driver"], run["results"]
    assert driver["name"] == "clscope" and driver["rules"][entry["ruleIndex"]]["id"] == "race"
    assert entry["ruleId"] == "race" and entry["level"] == "error"
    assert entry["message"]["text"] == result["message"]
    place = entry["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "kernel.cl"}
    assert place["region"] == {"startLine": result["line"], "startColumn": result["column"]}


def test_a_clean_kernel_has_a_log_without_results(tmp_path):
    assert command(tmp_path, SUM.text, *LAUNCH, "--sarif=log.sarif").returncode == 0
    assert json.loads((tmp_path / "log.sarif").read_text())["runs"][0]["results"] == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (LAUNCH[2:], "--global is missing"),
        ([*SIZES, "--arg", "a=float:64"], "--arg out=float:SIZE"),
        ([*LAUNCH, "--arg", "b=1"], "no parameter 'b'"),
        ([*SIZES, "--arg=a=int:64", "--arg=out=float:4"], "a needs an array of float32"),
        ([*SIZES, "--arg=a=flaot:64", "--arg=out=float:4"], "a=flaot:64"),
        ([*SIZES, "--arg=a=@no.npy", "--arg=out=float:4"], "no.npy"),
        (["--global=64", "--local=17", *LAUNCH[3:]], "whole work-groups"),
        ([*LAUNCH, "--kernel", "other"], "no __kernel 'other'"),
        (["--global", "many"], "'many' is not a size"),
    ],
)
def test_a_command_that_does_not_fit_is_refused(options, words, tmp_path):
    done = command(tmp_path, SUM.text, *options)
    assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr


def test_a_text_that_cannot_be_read_has_its_line(tmp_path):
    done = command(tmp_path, SUM.text.replace("float part", "flaot part"), *LAUNCH, "--sarif=x")
    assert done.returncode == 2 and done.stderr.startswith("kernel.cl:3:13: syntax: ")
    assert json.loads((tmp_path / "x").read_text())["runs"][0]["results"][0]["ruleId"] == "syntax"
    assert python(tmp_path, "-m", "clscope", "absent.cl").returncode == 2


def test_macros_kernels_numbers_and_files(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(8, dtype=np.float32))
    text = """
        __kernel void other(__global int* x) { x[-1] = 0; }
        __kernel void add(__global float* x, const int n, const float by) {
            if (get_global_id(0) < n) x[get_global_id(0)] += by;
            if (get_global_id(0) == N) printf("%.1f", x[N]);
        }"""
    options = ["--kernel=add", "--global=8", "--local=8", "--define", "N=5"]
    done = command(tmp_path, text, *options, "--arg=x=@x.npy", "--arg=n=8", "--arg=by=2.5")
    assert (done.returncode, done.stdout.split()[0]) == (0, "7.5nothing"), done.stderr


def test_local_memory_and_vectors(tmp_path):
    text = """
        __kernel void k(__global float* x, __local float* t, const float4 v) {
            t[get_local_id(0)] = v.w;
            x[get_global_id(0)] = t[get_local_id(0) ^ 1];
        }"""
    options = ["--global=8", "--local=8", "--arg=x=float:8:empty", "--arg=t=float:8"]
    done = command(tmp_path, text, *options, "--arg=v=1,2,3,4")
    assert done.returncode == 1 and ": race: " in done.stdout, done.stderr


def test_wgsl_is_printed(tmp_path):
    sized = SUM.text.replace("void sum", "__attribute__((reqd_work_group_size(16, 1, 1))) void sum")
    done = command(tmp_path, sized, "--wgsl")
    assert (done.returncode, done.stdout) == (0, clscope.to_wgsl(sized).code)
    done = command(tmp_path, SUM.text, "--wgsl")
    assert (done.returncode, done.stdout) == (2, "") and "refused" in done.stderr


def readme() -> str:
    path = Path(clscope.__file__).with_name("README.md")
    return path.read_text("utf-8") if path.exists() else metadata("clscope").get_payload()


def test_the_examples_of_the_readme_print_what_it_shows(tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```", readme(), re.M | re.S)
    (shown,) = re.findall(r"^```text\n(.*?)^```", readme(), re.M | re.S)
    (tmp_path / "sum.cl").write_text(RACE.text)
    done = python(tmp_path, "-c", "".join(blocks))
    assert len(blocks) == 2 and done.stdout.startswith(shown), done.stdout + done.stderr
    (line,) = re.findall(r"^(python -m clscope .*)$", readme(), re.M)
    assert python(tmp_path, *line.split()[1:]).returncode == 1


def test_public_names_are_documented():
    for name in clscope.__all__:
        assert getattr(clscope, name).__doc__, name
