"""The notebooks: whole, true, and alive with the exercises unsolved and solved."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from conftest import lacking
from nbclient import NotebookClient

from gemmlab import sources
from gemmlab.device import devices

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
CHAPTERS = [
    "00_start_here.ipynb",
    "01_naive.ipynb",
    "02_tiled.ipynb",
    "03_work_per_thread.ipynb",
    "04_vector_types.ipynb",
    "05_rectangular_tiles.ipynb",
    "06_register_blocking.ipynb",
    "07_wide_loads.ipynb",
    "08_vendor_features.ipynb",
    "09_prefetch.ipynb",
    "10_any_size.ipynb",
]
IGNORED = "nbval-ignore-output"


def read(name: str):
    return nbformat.read(FOLDER / name, 4)


def code(book):
    return [cell for cell in book.cells if cell.cell_type == "code"]


def texts(cell) -> list[str]:
    """The text outputs of a cell that nbval compares."""
    return [o.get("text") or o.get("data", {}).get("text/plain", "") for o in cell.outputs]


def exercises(book) -> dict[str, nbformat.NotebookNode]:
    """The cells tagged exercise-CC-N, as "CC_N"."""
    return {
        tag.removeprefix("exercise-").replace("-", "_"): cell
        for cell in code(book)
        for tag in cell.metadata.get("tags", [])
        if tag.startswith("exercise-")
    }


def verdicts(book) -> dict[str, nbformat.NotebookNode]:
    """The cell that shows an exercise's verdict: its own, or, of a %%gemm cell, the one tagged check-CC-N."""
    checks = {
        tag.removeprefix("check-").replace("-", "_"): cell
        for cell in code(book)
        for tag in cell.metadata.get("tags", [])
        if tag.startswith("check-")
    }
    return {**exercises(book), **checks}


def solve(book) -> None:
    """Put the solutions in; a .cl file replaces all of a %%gemm cell but its first line."""
    for number, cell in exercises(book).items():
        if cell.source.startswith("%%gemm"):
            cell.source = cell.source.split("\n")[0] + "\n" + (FOLDER / "solutions" / f"{number}.cl").read_text()
        else:
            cell.source = (FOLDER / "solutions" / f"{number}.py").read_text()


@pytest.fixture(scope="module", autouse=True)
def needs_a_device():
    if not devices():
        lacking("no OpenCL device")


def test_all_chapters_are_found():
    assert sorted(p.name for p in FOLDER.glob("*.ipynb")) == CHAPTERS


@pytest.mark.parametrize("name", CHAPTERS)
def test_anatomy(name):
    book = read(name)
    words = sum(len(c.source.split()) for c in book.cells if c.cell_type == "markdown")
    print(f"{name}: {len(code(book))} code cells, {words} words, {(FOLDER / name).stat().st_size // 1000} kB")
    assert 800 <= words <= 1400
    assert (FOLDER / name).stat().st_size <= 150_000
    assert "widgets" not in book.metadata
    for cell in code(book):
        assert cell.execution_count, f"never run: {cell.source}"
        assert len(cell.source.splitlines()) <= 12 or cell.source.startswith("%%gemm"), cell.source
        assert not any(o.output_type == "error" for o in cell.outputs), cell.source
    text = "\n".join(c.source for c in book.cells)
    for part in ("Set-up", "Where we stand", "Predict", "Is it right?", "Is it fast", "The explorer", "Break it"):
        assert f"## {part}" in text, f"{name} has no part {part!r}"
    for part in ("## Exercises", "<details>", "## Summary", "**Next:**", "**Sources.**", "gemmlab.Explorer("):
        assert part in text, f"{name} has no {part!r}"
    assert len(exercises(book)) >= 3


@pytest.mark.parametrize("name", CHAPTERS)
def test_measured_numbers_in_text_come_from_code(name):
    """No figure with a unit of speed or time stands in the prose."""
    for cell in read(name).cells:
        if cell.cell_type == "markdown":
            assert not re.search(r"\d[\d,.]*\s*(GFLOPS|TFLOPS|GB/s|ms|milliseconds)\b", cell.source), cell.source


@pytest.mark.parametrize("name", CHAPTERS)
def test_nbval(name):
    """The stored outputs are what the cells give, here and now; more than half of the text outputs are compared."""
    with_text = [cell for cell in code(read(name)) if any(texts(cell))]
    compared = [cell for cell in with_text if IGNORED not in cell.metadata.get("tags", [])]
    print(f"{name}: {len(compared)} of {len(with_text)} cells with text output are compared")
    assert 2 * len(compared) > len(with_text)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "--nbval", "-q", "-p", "no:cacheprovider", str(FOLDER / name)],
        cwd=FOLDER,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-5000:]


@pytest.mark.parametrize("name", CHAPTERS)
def test_exercises(name):
    """Every stub is stored as not solved; with the solutions put in, every check says True, and nothing raises."""
    book = read(name)
    for number, cell in verdicts(book).items():
        assert "False" in texts(cell), f"the stub of {number} is stored as solved"
    solve(book)
    NotebookClient(book, timeout=300, resources={"metadata": {"path": FOLDER}}).execute()
    for number, cell in verdicts(book).items():
        assert "True" in texts(cell), f"the solution of {number} fails: {texts(cell)}"
    found = {p.stem for p in (FOLDER / "solutions").glob(f"{name[:2]}_*")}
    assert found == set(exercises(book))


WRONG = {
    "00_1": [6_000_000, 60_000, 11_940_000, "many"],
    "00_2": [
        lambda m, n, k, s: m * n * k / s * 1e-9,
        lambda m, n, k, s: 2 * m * n * k / s,
        lambda m, n, k, s: ...,
        lambda m: m,
    ],
    "00_3": [sources.read("01_naive.cl").replace("B[n*K + k]", f"B[{p}]") for p in ("k*N + n", "n*N + k", "n*K + ")],
    "01_1": [128, 65536, 4096, 524288, 64.5],
    "01_2": [lambda m, n, k: 0.25, lambda m, n, k: 2 * k / (2 * k + 1), lambda m, n, k: 1 / 0],
    "01_3": [
        "no kernel at all",
        sources.read("01_naive.cl"),
        sources.read("01_naive.cl").replace("_id(0)", "_id(2)").replace("_id(1)", "_id(0)").replace("_id(2)", "_id(1)"),
    ],
}


@pytest.mark.parametrize("number", WRONG)
def test_checks_say_why_typical_answers_are_wrong(number, capsys):
    """Each typical wrong answer gets False, and a hint of its own."""
    spec = importlib.util.spec_from_file_location("checks", FOLDER / "checks.py")
    checks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(checks)
    hints = []
    for answer in [None, *WRONG[number]]:
        assert getattr(checks, f"check_{number}")(answer) is False
        hints.append(capsys.readouterr().out)
    assert all("Not yet" in hint and len(hint) > 30 for hint in hints), hints
    assert len(set(hints)) >= 3


@pytest.mark.parametrize("name", CHAPTERS)
def test_html_without_a_kernel_shows_the_pictures(name, tmp_path):
    pictures = sum("image/png" in o.get("data", {}) for cell in code(read(name)) for o in cell.outputs)
    subprocess.run(
        [sys.executable, "-m", "nbconvert", "--to", "html", "--output-dir", str(tmp_path), str(FOLDER / name)],
        check=True,
        capture_output=True,
        env={**os.environ, "JUPYTER_PLATFORM_DIRS": "1"},
    )
    page = (tmp_path / name).with_suffix(".html").read_text()
    assert pictures >= 4
    assert page.count('src="data:image/png;base64,') == pictures


def test_stored_outputs_name_the_device():
    for name in CHAPTERS:
        assert re.search(r"GFLOPS|compute units", json.dumps(read(name)))
