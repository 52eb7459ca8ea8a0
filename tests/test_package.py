"""The package as users get it: quick to import, whole in a wheel, the same packages for conda."""

import ast
import importlib.util
import json
import os
import re
import statistics
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

import gemmlab
from gemmlab import catalog, cli, live, sources

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
        (["bench", "--params", "TS"], "--params"),
        (["bench", "--device", "no such thing"], "no device fits 'no such thing'"),
        (["bench", "--kernels", "3", "--params", "TS=20,WPT=8"], "TS=20 is not a multiple of WPT=8"),
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
    monkeypatch.setattr(live, "trial", lambda *args, **options: live.Outcome({}, problem="wrong on purpose"))
    assert cli.main(["verify"]) == 1
    said = capsys.readouterr().out
    assert " 0 passed, " in f" {said.splitlines()[-1]}" and "wrong on purpose" in said
    for number in catalog:
        assert f"kernel {number} {{" in said


# Installing

PRODUCT = """
    import sys
    from pathlib import Path
    import numpy as np
    import gemmlab
    from gemmlab import record, sources
    a, b = (np.arange(rows * cols, dtype=np.float32).reshape(rows, cols) % 7 for rows, cols in ((35, 40), (40, 33)))
    small = {13: {"TSM": 32, "TSN": 32, "TSK": 16, "WPTM": 4, "WPTN": 4}}  # it needs a whole tile
    for number in gemmlab.catalog:
        assert np.array_equal(gemmlab.matmul(a, b, kernel=number, params=small.get(number)), a @ b), number
    assert np.array_equal(gemmlab.transpose(a), a.T)
    assert [found["file"] for found in record.recorded()], "no recorded results"
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
