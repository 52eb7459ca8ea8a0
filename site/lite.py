"""The chapters in JupyterLite: JupyterLab and Python in the reader's browser, on the browser's GPU.

`build.py` calls these. All is served from the site's own host but the wheels of Pyodide's
distribution (NumPy, Matplotlib and what they need), unless the folder with Pyodide holds them.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nbformat

ROOT = Path(__file__).resolve().parents[1]
#: The one host besides the site's own, for Pyodide 314.0.7 and the wheels of its distribution.
VERSION = "314.0.7"
CDN = f"https://cdn.jsdelivr.net/pyodide/v{VERSION}/full/"
RUNTIME = re.compile(r"(pyodide|pyodide\.asm)\.(m?js|wasm)|python_stdlib\.zip")
#: Pure wheels that Pyodide's distribution lacks, or has older ones of. Those of the widgets must be
#: of the same versions as the extensions of the page.
WHEELS = (
    *(f"{name}=={version(name)}" for name in ("ipywidgets", "anywidget")),
    *("comm==0.2.3", "micropip==0.10.0", "platformdirs==4.14.8", "psygnal==0.16.1"),
    *("tqdm==4.70.1", "typing-extensions==4.16.0"),
)
#: What a wheel here needs, and what the kernel loads when it starts.
NEEDS = {
    "gemmlab": ["numpy", "matplotlib", "platformdirs", "tqdm", "ipywidgets", "anywidget", "comm"],
    "ipywidgets": ["comm", "ipython", "traitlets"],
    "anywidget": ["ipywidgets", "psygnal", "typing-extensions"],
    "piplite": ["micropip"],
    "pyodide-kernel": ["comm", "ipython", "ipykernel", "piplite"],
}
STARTED = [
    *("micropip", "piplite", "ipykernel", "comm", "pyodide-kernel", "jedi", "ipython"),
    *("gemmlab", "lessons"),
]
KERNEL = "@jupyterlite/pyodide-kernel-extension"
#: Extensions of JupyterLab that the page loads, and where the environment has them.
LOADED = (KERNEL, "@jupyter-widgets/jupyterlab-manager", "anywidget")
EXTENSIONS = "share/jupyter/labextensions"
#: A tab is closed without a word; so what was written is saved within seconds.
SETTINGS = {
    "appName": "gemmlab",
    "exposeAppInBrowser": True,
    "settingsOverrides": {"@jupyterlab/docmanager-extension:plugin": {"autosaveInterval": 5}},
}


def build(out: Path) -> None:
    """Write JupyterLite with the notebooks into a folder beside that of `write_pyodide`."""
    shutil.rmtree(out, ignore_errors=True)
    extensions = Path(sys.prefix, EXTENSIONS)
    with tempfile.TemporaryDirectory() as folder:
        lite = Path(folder)
        books = lite / "contents/notebooks"
        books.mkdir(parents=True)
        for book in (ROOT / "notebooks").glob("*.ipynb"):
            (books / book.name).write_text(readable(book), encoding="utf-8")
        shutil.copytree(ROOT / "kernels", lite / "contents/kernels")
        options = {
            "pyodideUrl": "./../pyodide/start.mjs",
            "loadPyodideOptions": {
                "lockFileURL": "./../pyodide/pyodide-lock.json",
                "packages": STARTED,
            },
        }
        plugins = {f"{KERNEL}:kernel": options}
        config = {
            "jupyter-lite-schema-version": 0,
            "jupyter-config-data": SETTINGS | {"litePluginSettings": plugins},
        }
        (lite / "jupyter-lite.json").write_text(json.dumps(config))
        choices = {
            "apps": ["lab", "notebooks"],
            "contents": [str(lite / "contents")],
            "federated_extensions": [
                *(str(extensions / name) for name in LOADED),
                str(ROOT / "gemmlab/widgets/labextension"),
            ],
            "ignore_sys_prefix": True,
            "output_dir": str(out.resolve()),
        }
        (lite / "jupyter_lite_config.json").write_text(json.dumps({"LiteBuildConfig": choices}))
        command = [sys.executable, "-m", "jupyter", "lite", "build"]
        run = subprocess.run(command, cwd=lite, capture_output=True, text=True)
        if run.returncode:
            raise SystemExit(run.stdout[-2000:] + run.stderr[-2000:])
    loading = (ROOT / "site" / "loading.html").read_text(encoding="utf-8")
    for page in (out / app / "index.html" for app in ("lab", "notebooks")):
        html = page.read_text(encoding="utf-8")
        page.write_text(html.replace("</head>", f"{loading}</head>"), encoding="utf-8")
    for unneeded in out.rglob("*.map"):
        unneeded.unlink()


def readable(book: Path) -> str:
    """Return a notebook as JupyterLab gets it from a server that trusts it. JupyterLite hands out
    the file: it would show lists of lines with commas between, and disable the buttons of outputs.
    """
    notebook = json.loads(nbformat.writes(nbformat.read(book, 4), split_lines=False))
    for cell in notebook["cells"]:
        cell["metadata"]["trusted"] = True
    return json.dumps(notebook)


def fetch_pyodide(folder: Path) -> Path | None:
    """Return npm's package of Pyodide in a folder; None without npm or a network."""
    npm = shutil.which("npm")
    command = [npm or "npm", "pack", f"pyodide@{VERSION}", "--pack-destination", folder]
    if not npm or subprocess.run(command, capture_output=True).returncode:
        return None
    (packed,) = folder.glob("pyodide-*.tgz")
    shutil.unpack_archive(packed, folder)
    return folder / "package"


def _wheels(folder: Path) -> list[Path]:
    """Return the wheels of gemmlab, of the notebooks' modules, of the kernel, and `WHEELS`."""
    kernel = Path(sys.prefix, EXTENSIONS, KERNEL, "static/pypi")
    target = ["--python-version", "3.14", "--implementation", "py", "--abi", "none"]
    target += ["--platform", "any", "--only-binary", ":all:", "--no-deps"]
    quiet = ["--quiet", "--disable-pip-version-check"]
    for command in (
        ["pip", "download", *quiet, *target, "-d", folder, *WHEELS],
        ["build", "--wheel", "--no-isolation", "--outdir", folder, ROOT],
    ):
        subprocess.run([sys.executable, "-m", *command], check=True, stdout=subprocess.DEVNULL)
    (whole,) = folder.glob("gemmlab-*.whl")
    _split(whole, folder)
    for name in ("piplite", "pyodide_kernel", "ipykernel"):
        shutil.copy(next(kernel.glob(f"{name}-*.whl")), folder)
    return sorted(folder.glob("*.whl"))


def _split(whole: Path, folder: Path) -> None:
    """Take the notebooks and pages out of gemmlab's wheel, and make their modules a wheel, so that
    `import lessons` needs no folder of files.
    """
    with zipfile.ZipFile(whole) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    top, release = "gemmlab/notebooks/", whole.name.split("-")[1]
    kept = {n: data for n, data in files.items() if not n.startswith((top, "gemmlab/docs/"))}
    pages = (".ipynb", ".md")
    lessons = {n: data for n, data in files.items() if n.startswith(top) and not n.endswith(pages)}
    _pack(whole, kept)
    info = f"lessons-{release}.dist-info/"
    about = {
        "METADATA": f"Metadata-Version: 2.1\nName: lessons\nVersion: {release}\n",
        "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "RECORD": "",
    }
    modules = {n.removeprefix(top): data for n, data in lessons.items()}
    modules |= {f"{info}{name}": text.encode() for name, text in about.items()}
    _pack(folder / f"lessons-{release}-py3-none-any.whl", modules)


def _pack(path: Path, files: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)


def write_pyodide(out: Path, pyodide: Path) -> None:
    """Write Pyodide, the wheels of the notebooks and the lock file that names them into a folder.

    Args:
        pyodide: npm's package, or a whole distribution with its wheels.
    """
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        _write_distribution(out, pyodide, _wheels(Path(folder)))


def _write_distribution(static: Path, pyodide: Path, wheels: list[Path]) -> None:
    for path in pyodide.iterdir():
        if RUNTIME.fullmatch(path.name):
            shutil.copy(path, static)
    shutil.copy(ROOT / "site" / "start.mjs", static)
    lock = json.loads((pyodide / "pyodide-lock.json").read_text())
    packages = {n: p for n, p in lock["packages"].items() if not n.endswith("-tests")}
    for wheel in wheels:
        name, release = wheel.name.split("-")[:2]
        name = name.replace("_", "-")
        if name in packages and _parts(packages[name]["version"]) >= _parts(release):
            continue
        shutil.copy(wheel, static)
        packages[name] = {
            "name": name,
            "version": release,
            "file_name": wheel.name,
            "install_dir": "site",
            "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
            "package_type": "package",
            "imports": [name.replace("-", "_")],
            "depends": NEEDS.get(name, []),
            "unvendored_tests": False,
        }
    for package in packages.values():
        file = package["file_name"]
        if (static / file).exists():
            continue
        if (pyodide / file).exists():
            shutil.copy(pyodide / file, static)
        else:
            package["file_name"] = CDN + file
    lock["packages"] = packages
    (static / "pyodide-lock.json").write_text(json.dumps(lock))
    _compile(static, packages)
    (static / "pyodide-lock.json").write_text(json.dumps(lock))


def _compile(static: Path, packages: dict[str, dict[str, Any]]) -> None:
    """Add byte code to the wheels that the kernel loads when it starts, if there is Node."""
    needs = {n: [x.replace("_", "-") for x in p["depends"]] for n, p in packages.items()}
    names = set[str]()
    while more := {*STARTED, *(need for n in names for need in needs[n])} - names:
        names |= more
    wheels = {n: static / packages[n]["file_name"] for n in names}
    wheels = {n: path for n, path in wheels.items() if path.suffix == ".whl" and path.exists()}
    script = ROOT / "site" / "compile.mjs"
    if node := shutil.which("node"):
        command = [node, script, static.resolve(), *(path.name for path in wheels.values())]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    for name, path in wheels.items():
        packages[name]["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()


def _parts(release: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", release)]
