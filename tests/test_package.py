"""The package as users get it: quick to import, whole in a wheel, the same packages for conda."""

import ast
import ctypes.util
import importlib.util
import json
import os
import re
import statistics
import subprocess
import sys
import textwrap
import types
import zipfile
from pathlib import Path

import numpy as np
import pyopencl.array as cla
import pytest
from conftest import lacking

import gemmlab
from gemmlab import catalog, cli
from gemmlab.bench.timing import libraries, records, sweeps, timing, tuning
from gemmlab.catalog import sources
from gemmlab.family import selection
from gemmlab.opencl import launch
from gemmlab.worker.child import client

ROOT = Path(__file__).resolve().parent.parent


def python(text: str, *, folder: Path, path: Path | None = None) -> str:
    """Run Python text in a fresh process, far from the checkout; return what it prints."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if path:
        environment["PYTHONPATH"] = str(path)
    command = [sys.executable, "-c", textwrap.dedent(text)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# Importing


def test_import_is_quick(tmp_path, capsys):
    """Aim 0.3 s; the guard is generous."""
    text = "import time; start = time.perf_counter(); import gemmlab; print(time.perf_counter() - start)"
    seconds = [float(python(text, folder=tmp_path)) for _ in range(5)]
    with capsys.disabled():
        print(f"\nimport gemmlab: {statistics.median(seconds):.3f} s ({min(seconds):.3f} to {max(seconds):.3f})")
    assert statistics.median(seconds) < 1.0


def test_import_loads_neither_pictures_nor_widgets_nor_a_device(tmp_path):
    text = """
        import sys, gemmlab
        gemmlab.catalog[3].validate({"TS": 16})
        print(*sorted({name.partition(".")[0] for name in sys.modules}))
    """
    loaded = set(python(text, folder=tmp_path).split())
    assert "gemmlab" in loaded
    assert not loaded & {"matplotlib", "ipywidgets", "anywidget", "IPython", "pyopencl", "tqdm", "PIL"}


def test_computing_loads_neither_pictures_nor_widgets(tmp_path):
    text = """
        import sys
        from gemmlab import BuildError, Result, kernel, matmul, measure, trial
        print(*sorted({name.partition(".")[0] for name in sys.modules}))
    """
    loaded = set(python(text, folder=tmp_path).split())
    assert "pyopencl" in loaded
    assert not loaded & {"matplotlib", "ipywidgets", "anywidget", "IPython"}


def test_every_public_name_is_there():
    assert len(set(gemmlab.__all__)) == len(gemmlab.__all__)
    for name in gemmlab.__all__:
        assert getattr(gemmlab, name) is not None
    assert set(gemmlab.__all__) <= set(dir(gemmlab))
    assert gemmlab.catalog is catalog and isinstance(gemmlab.catalog, dict)
    with pytest.raises(AttributeError, match="has no attribute 'matmull'"):
        _ = gemmlab.matmull


# The commands


def command(*arguments, folder: Path) -> subprocess.CompletedProcess:
    """Run ``python -m gemmlab`` far from the checkout."""
    return subprocess.run(
        [sys.executable, "-m", "gemmlab", *arguments], capture_output=True, text=True, cwd=folder, timeout=300
    )


def test_the_command_says_its_version(tmp_path):
    assert command("--version", folder=tmp_path).stdout.strip() == gemmlab.__version__
    assert re.search(rf'^version = "{re.escape(gemmlab.__version__)}"$', (ROOT / "pyproject.toml").read_text(), re.M)


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
    assert "pip install 'gemmlab[pocl]'" in done.stdout and done.stderr == ""


def test_bench_records_what_it_measured(tmp_path, any_device):
    wanted = ["--kernels", "1,3", "--sizes", "64,100", "--params", "TS=16", "--repeats", "2"]
    done = command("bench", *wanted, "--json", "found.json", "--title", "test", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["title"] == "test" and found["command"].startswith("python -m gemmlab bench --kernels 1,3")
    assert [(r["kernel"], r["m"], r["n"], r["k"]) for r in found["results"]] == [
        (kernel, size, size, size) for kernel in (1, 3) for size in (64, 100)
    ]
    for result in found["results"]:
        assert result["ok"] and result["gflops"] > 0 and result["params"]["TS"] == 16 and result["repeats"] == 2
        assert {"device", "platform", "driver"} <= set(result["device"]) and result["when"]
        assert str(result["m"]) in done.stdout
    assert found["peaks"]["gflops"] > 0 and {"gemmlab", "pyopencl", "numpy", "python"} <= set(found["versions"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["bench", "--kernels", "1-99"], "there is no kernel"),
        (["bench", "--kernels", "x"], "--kernels"),
        (["bench", "--sizes", "big"], "--sizes"),
        (["bench", "--sizes", "64x128"], "--sizes"),
        (["bench", "--params", "TS"], "--params"),
        (["bench", "--device", "no such thing"], "no device fits 'no such thing'"),
        (["bench", "--kernels", "3", "--params", "TS=20,WPT=8"], "TS=20 is not a multiple of WPT=8"),
        (["bench", "--kernels", "3", "--sizes", "8", "--clblast", "no-such-library.so"], "no-such-library.so"),
        (["bench", "--strategies", "x.json", "--sizes", "64x32x16"], "are of square matrices, not (64, 32, 16)"),
        (["bench", "--sizes", "0"], "whole number from 1 on"),
        (["dance"], "invalid choice: 'dance'"),
    ],
)
def test_a_command_refuses_in_a_sentence(arguments, said, tmp_path, any_device):
    done = command(*arguments, folder=tmp_path)
    assert done.returncode != 0 and said in done.stderr + done.stdout
    assert "Traceback" not in done.stderr


def test_verify_passes(tmp_path, any_device):
    done = command("verify", folder=tmp_path)
    assert done.returncode == 0 and re.search(r"\b[1-9]\d* passed, 0 failed", done.stdout), done.stdout + done.stderr


def test_verify_tells_what_fails(monkeypatch, capsys, any_device):
    monkeypatch.setattr(client, "trial", lambda *args, **options: client.Outcome({}, problem="wrong on purpose"))
    assert cli.main(["verify"]) == 1
    said = capsys.readouterr().out
    assert " 0 passed, " in f" {said.splitlines()[-1]}" and "wrong on purpose" in said
    for number in catalog:
        assert f"kernel {number} {{" in said


def test_bench_takes_sizes_that_differ(tmp_path, any_device):
    wanted = ["--kernels", "3,auto", "--sizes", "64x96x32", "--repeats", "2", "--json", "found.json"]
    done = command("bench", *wanted, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert [(r["m"], r["n"], r["k"], r["ok"]) for r in found["results"] + found["auto"]] == 2 * [(64, 96, 32, True)]


def test_chapters_of_some_kernels(tmp_path, any_device, monkeypatch):
    """Their sweeps only, and of these what the chapters show."""
    monkeypatch.setattr(sweeps, "CURVES", {"01 TS": (1, "TS", (4, 8), {}), "03 WPT": (3, "WPT", (2, 4), {"TS": 32})})
    file = tmp_path / "chapters.json"
    assert cli.main(["bench", "--kernels", "3", "--sizes", "64", "--chapters", str(file)]) == 0
    found = json.loads(file.read_text())
    assert list(found["curves"]) == ["03 WPT"] and list(found["curves"]["03 WPT"]) == ["2", "4"]
    assert found["size"] == 64 and {"device", "date", "command"} <= set(found) and "switches" not in found


def test_a_search_records_each_row_in_its_list(tmp_path, any_device, monkeypatch):
    """Whole sizes by themselves, old rows of other sizes kept, shapes behind cubes."""

    def at(device, size, run, tries, say, edges, among, *options):
        return {"size": size if isinstance(size, int) else list(size), "among": among}

    monkeypatch.setattr(tuning, "search", at)
    file, kind = tmp_path / "auto.json", selection.kind(gemmlab.default_device())
    kept = [{"size": 101, "kernel": 1}, {"size": 1002, "kernel": 1}]
    file.write_text(json.dumps({kind: {"awkward": kept, "commands": ["before"]}, "other": {"rows": []}}))
    wanted = ["bench", "--search", str(file), "--edges", "auto", "--kernels", "3,15", "--sizes", "1002,64x128x64,512"]
    assert cli.main(wanted) == 0
    found = json.loads(file.read_text())
    assert [row["size"] for row in found[kind]["whole"]] == [512, [64, 128, 64]]
    assert found[kind]["awkward"] == [kept[0], {"size": 1002, "among": [3, 15]}]
    assert found["other"] == {"rows": []} and len(found[kind]["commands"]) == 2


def test_a_search_by_calls_checks_what_is_ahead_and_takes_nothing_wrong(tmp_path, any_device, monkeypatch):
    rates = {16: 5.0, 24: 9.0, 32: 7.0, 40: 3.0, 48: 8.0, 64: 20.0}
    checked, seen = [], []

    def ours(m, n, k, device, kernel, params, precision, rounds):
        if params["TS"] == 48:
            raise MemoryError("too large")
        return [rates[params["TS"]]] * rounds

    def measure(kernel, m, n, k, params, device, repeats):
        checked.append(params["TS"])
        return types.SimpleNamespace(ok=params["TS"] != 24)

    def at(device, size, run, *options):
        seen.extend(run(3, {"TS": side}) for side in rates)
        return {"size": size}

    monkeypatch.setattr(libraries, "ours", ours)
    monkeypatch.setattr(timing, "measure", measure)
    monkeypatch.setattr(tuning, "search", at)
    assert cli.main(["bench", "--search", str(tmp_path / "auto.json"), "--calls", "--sizes", "64"]) == 0
    assert seen == [5.0, 0.0, 7.0, 3.0, 0.0, 20.0] and checked == [16, 24, 32, 64]


def test_building_ahead_leaves_what_fails_to_the_trial(any_device, monkeypatch):
    built = []
    real = launch.kernel
    monkeypatch.setattr(launch, "kernel", lambda *args: built.append(args) or real(*args))
    tuning._build((3, {"TS": 16, "WPT": 4}), any_device.index)
    tuning._build((3, {"TS": 20}), any_device.index)  # no legal parameters
    monkeypatch.setattr(sources, "read", lambda file: "no OpenCL C")
    tuning._build((3, {"TS": 12, "WPT": 4}), any_device.index)
    assert [args[1]["TS"] for args in built] == [16, 20, 12]


# Side by side with cuBLAS


@pytest.mark.parametrize("kernel", ("auto", 3, 15))
def test_rounds_of_our_own(kernel, device):
    params = {15: {"TSM": 32, "TSN": 32, "TSK": 8, "WPTM": 4, "WPTN": 4, "GROUPS": 3}}.get(kernel)
    rates = libraries.ours(64, 96, 32, device, kernel, params)
    assert len(rates) == libraries.ROUNDS and all(rate > 0 for rate in rates)


def test_a_round_lasts_from_before_the_first_call_until_all_is_done(monkeypatch):
    now = [0.0]

    def later(seconds):
        now[0] += seconds

    monkeypatch.setattr(libraries, "time", types.SimpleNamespace(perf_counter=lambda: now[0]))
    queue = types.SimpleNamespace(finish=lambda: later(100))
    rates = libraries._rounds(3, 5, 7, queue, lambda: later(10))
    assert rates == [pytest.approx(2 * 3 * 5 * 7 / (10 + 100 / libraries.CALLS) * 1e-9)] * libraries.ROUNDS


def test_what_a_comparison_records(any_device, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(libraries, "cublas", lambda m, n, k: asked.append((m, n, k)) or [3.0, 1.0, 2.0])
    monkeypatch.setattr(libraries, "errors", lambda sizes, device: [{"sizes": sizes}])
    found = libraries.recorded([64, (32, 96, 64)], any_device)
    assert asked == [(64, 64, 64), (32, 96, 64)]
    assert found["yardsticks"] == [{"name": "cuBLAS SGEMM", "m": m, "n": n, "k": k, "gflops": 2.0} for m, n, k in asked]
    for one, sizes in zip(found["side_by_side"], asked, strict=True):
        assert (one["m"], one["n"], one["k"]) == sizes and one["cublas"] == [3.0, 1.0, 2.0]
        assert (one["kernel"], tuple(one["params"].items())) == selection.choose(any_device, sizes)
        assert len(one["auto"]) == libraries.ROUNDS and min(one["auto"]) > 0
    assert "32 x 96 x 64: cublas 2 (1 to 3), auto" in capsys.readouterr().out
    assert libraries.spread([3000.0, 1000.0, 2000.0]) == "2,000 (1,000 to 3,000)"
    json.dumps(found)


@pytest.fixture
def on_the_device(monkeypatch):
    """The arrays that a comparison has put there, in turn."""
    found = []

    def to_device(queue, array):
        found.append(cla.to_device(queue, array))
        return found[-1]

    monkeypatch.setattr(libraries, "cla", types.SimpleNamespace(to_device=to_device))
    return found


def test_clblast_multiplies(any_device, on_the_device):
    """The library itself: rates of all rounds, and the product."""
    library = ctypes.util.find_library("clblast")
    if not library:
        lacking("CLBlast is not installed")
    rates = libraries.clblast(24, 40, 56, any_device, library)
    assert len(rates) == libraries.ROUNDS and min(rates) > 0
    a, b, c = (x.get().astype(float) for x in on_the_device)
    assert c.shape == (40, 24)
    np.testing.assert_allclose(c, b @ a, atol=1e-4)


def test_a_library_that_refuses_or_is_missing(any_device, monkeypatch):
    with pytest.raises(OSError, match="no-such-library"):
        libraries.clblast(8, 8, 8, any_device, "no-such-library.so")
    with pytest.raises(ValueError, match="is not CLBlast: it holds no CLBlastSgemm"):
        libraries.clblast(8, 8, 8, any_device, ctypes.util.find_library("c"))
    refusing = types.SimpleNamespace(CLBlastSgemm=lambda *args: -1010)
    monkeypatch.setattr(libraries.ctypes, "CDLL", lambda name: refusing)
    with pytest.raises(RuntimeError, match="CLBlast refuses 8 x 16 x 24 with its status -1010"):
        libraries.clblast(8, 16, 24, any_device, "libclblast.so.1")


def test_with_clblast_a_comparison_has_both_yardsticks(any_device, monkeypatch, capsys):
    monkeypatch.setattr(libraries, "cublas", lambda m, n, k: [3.0, 1.0, 2.0])
    monkeypatch.setattr(libraries, "clblast", lambda m, n, k, device, library: [4.0, 6.0, 5.0])
    monkeypatch.setattr(libraries, "errors", lambda sizes, device: [])
    found = libraries.recorded([64], any_device, "a library")
    assert [(y["name"], y["gflops"]) for y in found["yardsticks"]] == [("cuBLAS SGEMM", 2.0), ("CLBlast SGEMM", 5.0)]
    assert found["side_by_side"][0]["clblast"] == [4.0, 6.0, 5.0]
    assert "clblast 5 (4 to 6)" in capsys.readouterr().out


def test_clblast_needs_no_pytorch(any_device, monkeypatch, capsys, tmp_path):
    """Neither for the comparison nor for its record; and both are asked for without a file, too."""
    monkeypatch.setattr(libraries, "cublas", lambda *sizes: pytest.fail("PyTorch was asked"))
    monkeypatch.setattr(libraries, "clblast", lambda m, n, k, device, library: [4.0, 6.0, 5.0])
    command = ["bench", "--kernels", "auto", "--sizes", "64", "--device", str(any_device.index), "--repeats", "1"]
    file = tmp_path / "both.json"
    for more in ([], ["--json", str(file)]):
        assert cli.main([*command, "--clblast", "a library", *more]) == 0
        assert "64 x 64 x 64: auto " in (said := capsys.readouterr().out) and "clblast 5 (4 to 6)" in said
    found = json.loads(file.read_text(encoding="utf-8"))
    assert [y["name"] for y in found["yardsticks"]] == ["CLBlast SGEMM"] and found["errors"] == []


def test_the_readme_says_what_was_recorded():
    """A figure for each kernel, and for the libraries beside them."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (rates,), yards = records.ladders(only=("H200",)).values(), records.yardsticks("H200")
    told = dict(re.findall(r"^\| (\d+) \| \[.*\]\(kernels/.*\| ([\d.]+) \|$", text, re.M))
    assert told == {str(number): f"{rate / 1000:.1f}" for number, rate in rates.items()}
    told = dict(re.findall(r"^\| \| (\w+ SGEMM) \|.*\| ([\d.]+) \|$", text, re.M))
    assert told == {name: f"{rate / 1000:.1f}" for name, rate in yards.items()} and len(told) == 2
    rows = next(file for file in records.recorded() if file.get("side_by_side"))["side_by_side"]
    shares = [statistics.median(row["auto"]) / statistics.median(row["cublas"]) for row in rows]
    words = " ".join(text.split())
    assert f"are at {min(shares):.0%} to {max(shares):.0%} of cuBLAS SGEMM's rate" in words
    assert f"{statistics.geometric_mean(shares):.0%} in the geometric mean of {len(rows)} sizes" in words


# What was recorded

RESULTS = sorted((ROOT / "results").glob("*.json"))


def says_its_origin(found: dict) -> bool:
    """Whether a record names device, command and date; a published one its device and source."""
    if "source" in found:  # published by others
        return bool(found["device"] and found["source"])
    devices = (
        [found["device"]] if "device" in found else [r["device"] for r in found["results"] + found.get("auto", [])]
    )
    named = all(len(d["device"]) > 3 and d["platform"] and d["driver"] for d in devices) and bool(devices)
    dated = re.fullmatch(r"20\d\d-\d\d-\d\d", found["date"])
    return bool(named and dated and found["command"].startswith("python -m gemmlab bench ") and found["title"])


@pytest.mark.parametrize("path", [path for path in RESULTS if path.name != "auto.json"], ids=lambda path: path.name)
def test_a_record_names_device_command_and_date(path):
    found = json.loads(path.read_text(encoding="utf-8"))
    assert says_its_origin(found)
    for result in found.get("results", []) + found.get("auto", []) if "source" not in found else []:
        assert result["ok"] and result["gflops"] > 0 and result["when"]
    for name in ("source", "device") if "source" in found else ("command", "date", "title"):
        assert not says_its_origin(found | {name: ""}), "the check would pass without it"


def test_the_record_of_auto_names_device_command_and_date():
    for kind, entry in json.loads((ROOT / "results" / "auto.json").read_text(encoding="utf-8")).items():
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", entry["date"]) and "(" in entry["device"], kind
        assert entry["commands"] and all(c.startswith("python -m gemmlab bench ") for c in entry["commands"]), kind


def test_the_recorded_comparison_with_cublas_is_whole():
    found = json.loads((ROOT / "results" / "nvidia_h200_cublas.json").read_text(encoding="utf-8"))
    libraries = {"cublas": "cuBLAS SGEMM", "clblast": "CLBlast SGEMM"}
    assert [(y["name"], y["m"], y["n"], y["k"], y["gflops"]) for y in found["yardsticks"]] == [
        (name, x["m"], x["n"], x["k"], sorted(x[key])[libraries.ROUNDS // 2])
        for key, name in libraries.items()
        for x in found["side_by_side"]
    ]
    for one in found["side_by_side"]:
        for who in (*libraries, "auto"):
            assert len(one[who]) == libraries.ROUNDS and min(one[who]) > 0
        full = catalog[one["kernel"]].validate(one["params"])
        assert full == catalog[one["kernel"]].complete(one["params"])
    assert max(x["gflops"] for x in found["auto"]) <= 1.05 * found["peaks"]["gflops"]


def test_a_ladder_shows_a_kernel_that_auto_took(monkeypatch):
    """Where it has no results of its own, and up to 4096; the best of each kernel counts."""
    row = {"m": 1024, "kernel": 1, "gflops": 5.0}
    files = [
        {"title": "a chip", "results": [row, row | {"gflops": 7.0}], "auto": [row | {"gflops": 99.0}]},
        {"title": "a chip", "results": [], "auto": [row | {"kernel": 15, "gflops": g, "m": m} for m, g in
                                                    ((512, 20.0), (4096, 30.0), (8192, 40.0))]},
        {"title": "another", "results": [row | {"gflops": 50.0}]},
    ]  # fmt: skip
    monkeypatch.setattr(records, "recorded", lambda: files)
    assert records.ladders() == {"another": {1: 50.0}, "a chip": {1: 7.0, 15: 30.0}}
    assert list(records.ladders()) == ["another", "a chip"]  # the fastest first
    assert records.ladders((15,), ("chip",)) == {"a chip": {15: 30.0}}


def test_every_kernel_stands_on_the_recorded_ladder():
    assert set(records.ladders()["NVIDIA H200"]) == set(catalog)


# Installing

PRODUCT = """
    import sys
    from pathlib import Path
    import numpy as np
    import gemmlab
    from gemmlab.bench.timing import records
    from gemmlab.catalog import sources
    a, b = (np.arange(rows * cols, dtype=np.float32).reshape(rows, cols) % 7 for rows, cols in ((35, 40), (40, 33)))
    small = {13: {"TSM": 32, "TSN": 32, "TSK": 16, "WPTM": 4, "WPTN": 4}}  # it needs a whole tile
    for number in (n for n, spec in gemmlab.catalog.items() if not spec.tensor):
        assert np.array_equal(gemmlab.matmul(a, b, kernel=number, params=small.get(number)), a @ b), number
    assert np.array_equal(gemmlab.transpose(a), a.T)
    assert [found["file"] for found in records.recorded()], "no recorded results"
    print(Path(gemmlab.__file__).parent)
    print(sources.folder())
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built as a release is; from the tools already installed where hatchling is one of them."""
    folder = tmp_path_factory.mktemp("wheel")
    isolation = ["--no-isolation"] if importlib.util.find_spec("hatchling") else []
    command = [sys.executable, "-m", "build", "--wheel", *isolation, "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_all_that_the_package_needs(wheel):
    held = set(zipfile.ZipFile(wheel).namelist())
    wanted = {f"gemmlab/kernels/{path.name}" for path in (ROOT / "kernels").glob("*.cl")}
    wanted |= {f"gemmlab/results/{path.name}" for path in (ROOT / "results").glob("*.json")}
    package = ROOT / "gemmlab"
    wanted |= {f"gemmlab/{path.relative_to(package).as_posix()}" for path in package.rglob("*.py")}
    wanted.add("gemmlab/widgets/bridge.js")
    assert len(wanted) > 25 and wanted <= held, wanted - held
    rest = {name for name in held - wanted if ".dist-info/" not in name}
    assert rest == set(), f"nobody asked for {rest}"
    assert any(name.endswith("licenses/LICENSE") for name in held)


def test_the_wheel_says_what_it_needs(wheel):
    archive = zipfile.ZipFile(wheel)
    metadata = archive.read(next(name for name in archive.namelist() if name.endswith("METADATA"))).decode()
    for line in ("Name: gemmlab", "Requires-Python: >=3.10", "Requires-Dist: pyopencl", "Provides-Extra: pocl"):
        assert line in metadata.splitlines()


def test_the_wheel_multiplies_from_a_fresh_folder(wheel, tmp_path, any_device):
    site, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    elsewhere.mkdir()
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(site)]
    subprocess.run([*command, str(wheel)], check=True, timeout=300)
    package, kernels = python(PRODUCT, folder=elsewhere, path=site).splitlines()
    assert Path(package) == site / "gemmlab" and Path(kernels) == site / "gemmlab" / "kernels"


def test_a_checkout_finds_its_kernels(tmp_path, any_device):
    """An editable install, or simply the checkout's folder on the path: the kernels lie beside the package."""
    package, kernels = python(PRODUCT, folder=tmp_path, path=ROOT).splitlines()
    assert Path(package) == ROOT / "gemmlab" and Path(kernels) == ROOT / "kernels"
    assert not (ROOT / "gemmlab" / "kernels").exists(), "a stale copy would hide the kernels beside the package"


def test_an_editable_install_finds_its_kernels(tmp_path, any_device):
    """In this environment the package itself is installed editable, as README and Makefile do it."""
    package, kernels = python(PRODUCT, folder=tmp_path).splitlines()
    assert Path(package) == Path(gemmlab.__file__).parent and Path(kernels) == sources.folder()


def test_missing_kernels_are_said(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "_HERE", tmp_path / "gemmlab")
    with pytest.raises(FileNotFoundError, match="the installation is incomplete"):
        sources.folder()


# The packages that it needs


def project() -> dict:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def name_of(requirement: str) -> str:
    """The package's name, normalised, without version and marker."""
    return re.match(r"[\w.-]+", requirement)[0].lower().replace("_", "-")


def bounds_of(requirement: str) -> str:
    """The versions that it asks for."""
    return re.sub(r"\s", "", requirement.partition(";")[0])[len(name_of(requirement)) :]


def conda_packages() -> tuple[dict[str, str], list[str]]:
    """Of environment.yml: conda's packages with their versions, and what pip installs."""
    text = (ROOT / "environment.yml").read_text()
    listed = text.partition("\ndependencies:\n")[2].partition("\n  - pip:\n")
    lines = [line.partition("#")[0].strip() for line in listed[0].splitlines()]
    packages = [line.removeprefix("- ") for line in lines if line.startswith("- ")]
    by_pip = [line.strip().removeprefix("- ") for line in listed[2].splitlines() if line.strip()]
    return {name_of(package): bounds_of(package) for package in packages}, by_pip


def test_conda_installs_the_packages_of_the_project():
    """conda-forge's names are PyPI's, but for PoCL's. Besides: Python and pip."""
    told = project()
    wanted = {name_of(r): bounds_of(r) for r in [*told["dependencies"], *told["optional-dependencies"]["lab"]]}
    assert [name_of(r) for r in told["optional-dependencies"]["pocl"]] == ["pocl-binary-distribution"]
    wanted |= {"pocl": "", "python": told["requires-python"], "pip": ""}
    packages, by_pip = conda_packages()
    assert packages == wanted
    assert by_pip == ["-e ."], "the package itself, so that Binder has it"


def test_wheels_for_other_platforms_are_marked():
    """PoCL's and Intel's wheels exist for some platforms only; without a marker pip fails on the others."""
    extras = project()["optional-dependencies"]
    for requirement in extras["pocl"] + extras["intel"]:
        assert "sys_platform" in requirement and "platform_machine" in requirement


def test_every_import_of_the_package_is_a_declared_dependency():
    told = project()
    declared = {name_of(r) for r in [*told["dependencies"], *told["optional-dependencies"]["lab"]]}
    # what comes with one of them: Pillow with Matplotlib, IPython with ipywidgets
    brought = {"PIL": "matplotlib", "IPython": "ipywidgets"}
    own = {"gemmlab", "torch", "cupy"}  # `bench --cublas` and `--chapters` use these where somebody has them
    found = set()
    for path in (ROOT / "gemmlab").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names.append(node.module)
            modules = {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names) - own
            found |= {brought.get(module, module) for module in modules}
    assert found <= declared and {"numpy", "pyopencl", "matplotlib"} <= found
