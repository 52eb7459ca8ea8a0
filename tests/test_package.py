"""The package as users get it: quick to import, whole in a wheel, the same packages for conda."""

import ast
import email
import importlib.util
import inspect
import os
import pickle
import re
import shutil
import sys
import sysconfig
import textwrap
import tomllib
import traceback
import zipfile
from importlib import import_module
from pathlib import Path

import pytest
from conftest import run_python
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

import clscope
import gemmlab
from gemmlab import catalog

ROOT = Path(__file__).resolve().parent.parent


def python(text: str, *, folder: Path, path: Path | str = "") -> str:
    """Run Python text in a fresh process, far from the checkout; return what it prints."""
    done = run_python("-c", textwrap.dedent(text), folder=folder, PYTHONPATH=str(path))
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# Importing


@pytest.mark.parametrize(
    ("text", "there", "absent"),
    [
        (
            "gemmlab.catalog[3].validate({'TS': 16})",
            {"gemmlab"},
            {"matplotlib", "ipywidgets", "anywidget", "IPython", "pyopencl", "tqdm", "PIL"},
        ),
        (
            "from gemmlab import BuildError, Result, kernel, matmul, measure, trial",
            {"pyopencl"},
            {"matplotlib", "ipywidgets", "anywidget", "IPython"},
        ),
    ],
    ids=["importing", "computing"],
)
def test_it_loads_neither_pictures_nor_widgets(text, there, absent, tmp_path):
    text = f"import sys, gemmlab\n{text}\nprint(*{{n.partition('.')[0] for n in sys.modules}})"
    loaded = set(python(text, folder=tmp_path).split())
    assert there <= loaded and not loaded & absent


WATCHED = """
    import sys
    from pathlib import Path

    seen = []
    changes = ("sqlite3.", "tempfile.", "os.mkdir", "os.remove", "os.rename", "os.rmdir")

    def watch(event, arguments):
        if event.startswith(changes):
            seen.append(event)
        elif event == "open":
            seen.append(arguments[0]) if isinstance(arguments[0], str) else None
            if isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
                seen.append(f"write: {arguments[0]}")

    sys.addaudithook(watch)
    import gemmlab, gemmlab.cli
    print(*seen, sep="\\n")
"""


def test_importing_it_opens_its_own_files_and_those_of_python(tmp_path):
    """No database, no temporary file, no folder, and nothing is written."""
    done = run_python(
        "-c",
        textwrap.dedent(WATCHED),
        folder=tmp_path,
        PYTHONPATH=str(ROOT),
        PYTHONDONTWRITEBYTECODE="1",
    )
    assert done.returncode == 0, done.stderr
    own = [ROOT / name for name in ("gemmlab", "kernels", "results")]
    own += [Path(path) for path in {sys.prefix, sys.base_prefix, *sysconfig.get_paths().values()}]
    opened = done.stdout.splitlines()
    assert len(opened) > 20
    assert [one for one in opened if not any(Path(one).is_relative_to(x) for x in own)] == []


WITHOUT_DEVICES = """
    import importlib, pkgutil, sys

    sys.modules["pyopencl"] = None
    import gemmlab
    from gemmlab.blas import product
    from gemmlab.generate import Schedule, write
    for name in ("ladder", "check", "simulation", "model", "draw", "webgpu", "generate"):
        package = importlib.import_module(f"gemmlab.{name}")
        for found in pkgutil.iter_modules(getattr(package, "__path__", ())):
            importlib.import_module(f"gemmlab.{name}.{found.name}")
    assert "void gemm" in write(Schedule("s")) and gemmlab.simulate(kernel=3).ok
    print(product.Product.compact(2, 3, 4).sizes)
"""


def test_what_needs_no_device_imports_no_pyopencl(tmp_path):
    assert python(WITHOUT_DEVICES, folder=tmp_path, path=ROOT) == "(2, 3, 4)"


def test_pyopencl_is_imported_where_its_database_was_checked():
    for path in (ROOT / "gemmlab").rglob("*.py"):
        if path.parent.name != "opencl":
            assert not re.search(r"^\s*(import|from) pyopencl", path.read_text(), re.M), path


def test_every_public_name_is_there():
    for name in gemmlab.__all__:
        assert getattr(gemmlab, name) is not None and name in dir(gemmlab)
    assert gemmlab.catalog is catalog and isinstance(gemmlab.catalog, dict)
    assert importlib.util.find_spec("gemmlab.catalog") is None, "a name means one thing"
    with pytest.raises(AttributeError, match="has no attribute 'matmull'"):
        _ = gemmlab.matmull


def test_type_checkers_read_the_same_names():
    stub = ast.parse((ROOT / "gemmlab" / "__init__.pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom) and node.level]
    read = {alias.asname: n.module for n in imports for alias in n.names if alias.asname}
    for name, module in read.items():
        assert getattr(import_module(f"gemmlab.{module}"), name) is getattr(gemmlab, name)
    here = [node for node in stub.body if isinstance(node, ast.FunctionDef) and node.decorator_list]
    for node in here:  # with overloads
        arguments = [one.arg for one in (*node.args.args, *node.args.kwonlyargs)]
        assert arguments == [*inspect.signature(getattr(gemmlab, node.name)).parameters]
    typed = {f"{letter}gemm" for letter in "sdczh"}
    assert read.keys() | {node.name for node in here} | typed == set(gemmlab.__all__)


FUNCTIONS = [name for name in gemmlab.__all__ if inspect.isfunction(getattr(gemmlab, name))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_public_function_names_its_options_and_itself(name):
    function = getattr(gemmlab, name)
    assert (function.__module__, function.__qualname__) == ("gemmlab", name)
    assert pickle.loads(pickle.dumps(function)) is function
    signature = inspect.signature(function)
    assert signature.return_annotation is not inspect.Signature.empty
    for parameter in signature.parameters.values():
        assert parameter.kind is not inspect.Parameter.VAR_KEYWORD
        assert parameter.annotation is not inspect.Parameter.empty, parameter


def test_tracebacks_name_an_error_as_users_import_it():
    errors = {
        "BuildError": gemmlab.BuildError("kernel 3", "the log", "the source"),
        "NoDeviceError": gemmlab.NoDeviceError("there is none"),
        "ParameterError": gemmlab.ParameterError("TS=0"),
    }
    for name, error in errors.items():
        sent = pickle.loads(pickle.dumps(error))
        assert type(sent) is type(error)
        assert "".join(traceback.format_exception_only(sent)).startswith(f"gemmlab.{name}: ")


@pytest.mark.system
def test_the_tables_are_those_of_the_records_and_texts():
    done = run_python(str(ROOT / "tools" / "tables.py"), "--check")
    assert done.returncode == 0, done.stderr or "run `make tables`"


# Installing

PRODUCT = """
    import sys
    from pathlib import Path
    import numpy as np
    import gemmlab
    from gemmlab.measurement import records
    from gemmlab.ladder import sources
    a = np.arange(35 * 40, dtype=np.float32).reshape(35, 40) % 7
    b = np.arange(40 * 33, dtype=np.float32).reshape(40, 33) % 7
    small = {13: {"TSM": 32, "TSN": 32, "TSK": 16, "WPTM": 4, "WPTN": 4}}  # it needs a whole tile
    for number in (n for n, spec in gemmlab.catalog.items() if not spec.tensor):
        c = gemmlab.matmul(a, b, kernel=number, params=small.get(number))
        assert np.array_equal(c, a @ b), number
    assert records.rows(), "no recorded results"
    print(Path(gemmlab.__file__).parent)
    print(sources.folder())
"""


def built(project: Path, folder: Path) -> Path:
    """A wheel as of a release; from the tools already installed where hatchling is one of them."""
    isolation = ["--no-isolation"] if importlib.util.find_spec("hatchling") else []
    done = run_python("-m", "build", "--wheel", *isolation, "--outdir", str(folder), str(project))
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (file,) = folder.iterdir()
    return file


def unpacked(wheel: Path, folder: Path) -> Path:
    """The folder into which pip has installed a wheel, and nothing else."""
    options = ["--quiet", "--no-deps", "--no-index", "--target", str(folder), str(wheel)]
    assert run_python("-m", "pip", "install", *options).returncode == 0
    return folder


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return built(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    return unpacked(wheel, tmp_path_factory.mktemp("site"))


ALONE = """
    import sys
    from pathlib import Path
    sys.modules["gemmlab"] = None  # it cannot be imported
    import clscope, pytest
    assert Path(clscope.__file__).is_relative_to(sys.argv[1])
    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-W", "ignore", *sys.argv[2:]]))
"""


@pytest.mark.system
def test_clscope_is_a_wheel_of_its_own_and_its_tests_pass_without_gemmlab(tmp_path):
    wheel = built(ROOT / "clscope", tmp_path / "wheel")
    files = [p for kind in ("*.py", "*.js", "py.typed") for p in (ROOT / "clscope").rglob(kind)]
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert held == {path.relative_to(ROOT).as_posix() for path in files} and len(held) > 20
    site = unpacked(wheel, tmp_path / "site")
    shutil.copytree(ROOT / "tests" / "microscope", tmp_path / "tests" / "microscope")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    names = ("run", "text", "watch", "wgsl")
    tests = [f"microscope/test_{name}.py" for name in names]
    path = os.pathsep.join([str(site), str(tmp_path / "tests")])
    text = textwrap.dedent(ALONE)
    done = run_python("-c", text, str(site), *tests, folder=tmp_path / "tests", PYTHONPATH=path)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


def test_the_wheel_holds_all_that_the_package_needs_and_no_more(wheel):
    """The code, and from the folders next to it what it reads and what readers open."""
    held = set(zipfile.ZipFile(wheel).namelist())
    patterns = [
        *("gemmlab/**/*.py", "gemmlab/*.pyi", "gemmlab/py.typed"),
        *("gemmlab/widgets/*.[jc]s*", "gemmlab/widgets/labextension/*"),
        *("clscope/**/*.py", "clscope/py.typed", "clscope/w*/*.js"),
        *("kernels/**/*.cl", "results/*.json", "docs/*", "notebooks/*.ipynb"),
        *("notebooks/README.md", "notebooks/checks.py", "notebooks/lessons/*.py"),
        *("notebooks/solutions/*.*", "notebooks/pictures/*.png"),
    ]
    files = [path.relative_to(ROOT).as_posix() for one in patterns for path in ROOT.glob(one)]
    files.remove("results/nvidia_h200_candidates.json")  # tools/fit.py alone reads it
    wanted = {
        file if file.startswith(("clscope/", "gemmlab/")) else f"gemmlab/{file}" for file in files
    }
    assert len(wanted) > 200
    of_environment = {name for name in held if ".data/" in name}
    assert {name for name in held - of_environment if ".dist-info/" not in name} == wanted
    extension = "share/jupyter/labextensions/gemmlab"
    assert {name.partition(".data/data/")[2] for name in of_environment} == {
        "etc/ipython/ipython_kernel_config.json",
        *(f"{extension}/{name}" for name in ("extension.js", "package.json")),
    }
    assert any(name.endswith("licenses/LICENSE") for name in held)


def test_the_description_on_a_package_index_leads_into_the_repository(wheel):
    """Each relative link of the README, that of its picture to the file itself."""
    name, version, *_ = wheel.name.split("-")
    held = zipfile.ZipFile(wheel).read(f"{name}-{version}.dist-info/METADATA")
    metadata = email.message_from_bytes(held)
    urls = dict(one.split(", ") for one in metadata.get_all("Project-URL"))
    assert urls.keys() == {"Homepage", "Documentation", "Source", "Issues", "Changelog"}
    link = re.compile(r"(!?)\[[^]]*\]\(([^)]+)")
    before = link.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    after = link.findall(metadata.get_payload())
    assert len(before) == len(after) > 20
    for (picture, target), (_, absolute) in zip(before, after, strict=True):
        if not target.startswith(("http", "#")):
            assert (ROOT / target.partition("#")[0]).exists()
            assert absolute.startswith(f"{urls['Source']}/{'raw' if picture else 'blob'}/")
            assert absolute.endswith(f"/{target}")


def test_the_installed_notebooks_are_written(installed, tmp_path):
    """By the console command; the links between the files written lead somewhere."""
    text = """
        import sys
        from importlib.metadata import distribution
        (command,) = distribution("gemmlab").entry_points
        sys.argv = ["gemmlab", "notebooks", "mine"]
        print(command.load()(), command.load()())
    """
    assert python(text, folder=tmp_path, path=installed).endswith("0 0")
    mine = tmp_path / "mine"
    assert len(list((mine / "notebooks").glob("*.ipynb"))) >= 23
    for path in (mine / "notebooks").glob("*.ipynb"):
        links = re.findall(r"\]\((\.\./[^)#]+)", path.read_text(encoding="utf-8"))
        missing = [link for link in links if not (mine / "notebooks" / link).exists()]
        assert all(link.startswith("../gemmlab/") for link in missing), missing


def test_the_wheel_multiplies_from_a_fresh_folder(installed, tmp_path, any_device):
    package, kernels = map(Path, python(PRODUCT, folder=tmp_path, path=installed).splitlines())
    assert package == installed / "gemmlab" and kernels == package / "kernels"


def test_the_readme_begins_with_the_address_of_the_site():
    """By its owner's name, which is filled in there and in pyproject.toml together."""
    hooks = toml("pyproject.toml")["tool"]["hatch"]["metadata"]["hooks"]
    owner, name = hooks["custom"]["repository"].split("/")[-2:]
    first = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:5]
    assert f"https://{owner}.github.io/{name}/" in " ".join(first)


# The packages that it needs


def toml(name: str) -> dict:
    return tomllib.loads((ROOT / name).read_text(encoding="utf-8"))


def project() -> dict:
    return toml("pyproject.toml")["project"]


def bounds(requirements: list[str]) -> dict[str, SpecifierSet]:
    """The versions that requirements ask for, by the names of packages."""
    parsed = map(Requirement, requirements)
    return {canonicalize_name(one.name): one.specifier for one in parsed}


def declared() -> dict[str, SpecifierSet]:
    """What the package needs with its extras "lab" and "distributed"."""
    told = project()
    extras = told["optional-dependencies"]
    return bounds([*told["dependencies"], *extras["lab"], *extras["distributed"]])


def test_conda_installs_the_packages_of_the_project():
    """conda-forge's names are PyPI's, but for PoCL's. Besides: Python and pip."""
    yaml = pytest.importorskip("yaml")
    assert [*bounds(project()["optional-dependencies"]["pocl"])] == ["pocl-binary-distribution"]
    python = f"python{project()['requires-python']}"
    *listed, by_pip = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    assert bounds(listed) == declared() | bounds(["pocl", python, "pip"])
    assert by_pip == {"pip": ["-e ."]}, "the package itself"


def test_the_version_is_the_same_wherever_it_is_written():
    """In the changelog, that of the next release; clscope is released with gemmlab."""
    assert clscope.__version__ == gemmlab.__version__
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert citation["version"] == gemmlab.__version__
    newest = re.search(r"^## \[(.+?)\]", changes, re.M)[1]
    assert newest in (Version(gemmlab.__version__).base_version, "Unreleased")


def test_pixi_installs_packages_of_the_project():
    """Their lower bounds are those of the package itself, which it installs, too."""
    python, *packages = toml("pixi.toml")["dependencies"].items()
    assert python == ("python", project()["requires-python"])
    assert {name for name, _ in packages} <= {"pocl", *declared()}


def test_every_import_of_the_package_is_a_declared_dependency():
    brought = {"PIL", "IPython", "traitlets", "psutil", "nbformat"}  # with one of them
    found: set[str] = set()
    for path in (ROOT / "gemmlab").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add(node.module.partition(".")[0])
    browser = {"js", "pyodide"}  # Python in a browser has these, and none else
    found -= {"clscope", "gemmlab", *brought, *browser, *sys.stdlib_module_names}
    assert found <= declared().keys() and {"numpy", "pyopencl", "matplotlib"} <= found
