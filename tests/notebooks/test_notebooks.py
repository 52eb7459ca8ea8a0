"""The notebooks: they are what their texts say, and run with solved and unsolved exercises."""

import html
import re
import shutil

import nbformat
import patient
import pytest
from books import FOLDER, body, code, read, tagged
from conftest import DEVICES, browser_device, lacking
from nbconvert import HTMLExporter

import rebuild
from gemmlab.ladder import sources
from gemmlab.opencl.devices import devices

CHAPTERS = sorted(path.name for path in FOLDER.glob("[0-9]*.ipynb"))
#: Notebooks that are no chapters.
BESIDE = ["puzzles.ipynb", "the_ladder.ipynb"]
IGNORED = "nbval-ignore-output"
#: Exercises whose verdict also says how fast this machine is just now, beside other processes.
BY_RATE = {"21_3"}


def texts(cell) -> list[str]:
    """The text outputs of a cell."""
    return [o.get("text") or o.get("data", {}).get("text/plain", "") for o in cell.outputs]


def solved(book, number: str) -> list[nbformat.NotebookNode]:
    """The cells that solve an exercise and make sure of the verdict."""
    cell = tagged(book, "exercise")[number]
    (file,) = (FOLDER / "solutions").glob(f"{number}.*")
    written = [file.read_text(encoding="utf-8")]
    if file.suffix == ".cl":  # it replaces all of a %%gemm cell but its first line
        check = tagged(book, "check")[number]
        written = [cell.source.split("\n")[0] + "\n" + written[0], check.source]
    written[-1] = "%%capture said\n" + written[-1]
    right = ("Solved: ", *["Not yet: right"] * (number in BY_RATE))
    proof = (
        f"verdict = said.outputs[-1].data['text/plain']\nassert verdict.startswith({right}), "
        "verdict"
    )
    return [
        nbformat.v4.new_code_cell(source, metadata={"tags": [IGNORED]})
        for source in (*written, proof)
    ]


@pytest.fixture(autouse=True)
def a_board_of_its_own(tmp_path, monkeypatch):
    """No test writes to the reader's own files."""
    monkeypatch.setenv("GEMMLAB_DATA", str(tmp_path))


def test_all_chapters_are_found():
    assert [name[:2] for name in CHAPTERS] == [f"{number:02}" for number in range(22)]
    assert sorted(p.name for p in FOLDER.glob("*.ipynb")) == [*CHAPTERS, *BESIDE]


@pytest.mark.parametrize("name", [*CHAPTERS, *BESIDE])
def test_a_notebook_is_what_its_text_says(name):
    """It stores no error and no state of widgets."""

    def written(cell) -> tuple:
        """Without what `make notebooks` adds: it folds the answers of predictions."""
        metadata = dict(cell.metadata)
        if ".reveal(" in cell.source:
            metadata.pop("jupyter", None)
        return cell.cell_type, cell.source, metadata

    text = rebuild.from_text(FOLDER / "text" / name.replace(".ipynb", ".md"))
    book = read(name)
    assert [written(cell) for cell in text.cells] == [written(cell) for cell in book.cells]
    assert "widgets" not in book.metadata and (FOLDER / name).stat().st_size <= 600_000
    for cell in code(book):
        assert cell.execution_count, f"never run: {cell.source}"
        assert not any(o.output_type == "error" for o in cell.outputs), cell.source


@pytest.mark.parametrize("name", CHAPTERS)
def test_prose(name):
    """Links to the glossary lead somewhere; two products such as k*N and n*K in a line are
    formulas, and in HTML backticks are nothing but backticks.
    """
    glossary = (FOLDER.parent / "docs" / "glossary.md").read_text(encoding="utf-8")
    terms = re.findall(r"^### (.+)$", glossary, re.M)
    anchors = {re.sub(r"[^\w\- ]", "", term.lower()).strip().replace(" ", "-") for term in terms}
    prose = "\n".join(c.source for c in read(name).cells if c.cell_type == "markdown")
    links = re.findall(r"glossary\.md#([\w-]+)", prose)
    assert links and set(links) <= anchors
    for line in prose.splitlines():
        if line.startswith("<"):
            assert "`" not in line, line
        else:
            assert not re.search(r"\w\*\w.*\w\*\w", re.sub(r"`[^`]*`|\*\*", "", line)), line


@pytest.mark.parametrize("name", [*CHAPTERS, *BESIDE])
def test_no_measured_figure_is_typed_by_hand(name):
    """They come from a cell's output or from the facts. Exercises set goals, in per cent."""
    text = (FOLDER / "text" / name.replace(".ipynb", ".md")).read_text(encoding="utf-8")
    if name == "the_ladder.ipynb":
        text += (FOLDER / "lessons" / "predictions.py").read_text(encoding="utf-8")
    rate = r"\d[\d,.]*\s*(GFLOPS|TFLOPS|GB/s|ms|milliseconds)\b"
    share = r"\d %\s+of (the|its) (peak|roof|rate|slots)|\d %\s+of cuBLAS"
    for line in text.splitlines():
        goal = re.match(r"\*\*\d\d\.\d\*\*", line)
        assert not re.search(rate if goal else f"{rate}|{share}", line), line


@pytest.mark.parametrize("name", [*CHAPTERS, *BESIDE])
def test_gemm_cells_are_their_kernels_with_the_declared_changes(name):
    for cell in code(read(name)):
        if not cell.source.startswith("%%gemm"):
            assert "gemmlab" not in cell.metadata
            continue
        declared = cell.metadata["gemmlab"]
        first, text = cell.source.split("\n", 1)
        assert first.split()[1] == str(declared["kernel"])
        if declared.get("whole"):  # `rebuild` writes all but the first line
            continue
        wanted = body(declared["kernel"], *declared["changes"])
        assert text == (sources.part(wanted, declared["part"]) if "part" in declared else wanted)


@pytest.mark.system
@pytest.mark.parametrize("name", [*CHAPTERS, "the_ladder.ipynb"])
def test_nbval(name, tmp_path, caches, monkeypatch):
    """Every cell gives its stored output, but for those marked; every stub is not solved; every
    solution is.

    The solutions run behind the last cell. Where there are several runtimes, it is another one than
    in the browser.
    """
    if not devices():
        lacking("no OpenCL device")
    startup = tmp_path / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "first.py").write_text(patient.STARTUP + patient.BUSY)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(caches))
    if len(DEVICES) > 1:
        monkeypatch.setenv("GEMMLAB_DEVICE", "intel" if browser_device(name) == "pocl" else "pocl")
    book = read(name)
    compared = [cell for cell in code(book) if IGNORED not in cell.metadata.get("tags", [])]
    stored = [cell for cell in code(book) if any(texts(cell)) and texts(cell) != [rebuild.YOURS]]
    with_text = [sum(any(texts(cell)) for cell in compared), len(stored)]
    assert 2 * with_text[0] > with_text[1], "too few outputs are compared"
    exercises = tagged(book, "exercise")
    for number, cell in {**exercises, **tagged(book, "check")}.items():
        assert texts(cell)[-1].startswith("Not yet: "), f"the stub of {number} is stored as solved"
    assert {p.stem for p in (FOLDER / "solutions").glob(f"{name[:2]}_*")} == set(exercises)
    assert len(exercises) >= 3 or name in BESIDE

    book.cells += [cell for number in exercises for cell in solved(book, number)]
    folder = shutil.copytree(FOLDER, tmp_path / "notebooks")
    nbformat.write(book, folder / name)
    # in this process, which has imported already what takes nbval seconds; of all plugins it needs
    # no other
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    options = ["-q", "-p", "nbval.plugin", "-p", "no:cacheprovider", "-p", "no:unraisableexception"]
    options += ["--nbval", "--nbval-kernel-startup-timeout", "300", "--rootdir", str(folder)]
    assert pytest.main([*options, str(folder / name)]) == 0


def test_html_describes_its_pictures_in_words():
    """By the classic template: that of JupyterLab leaves out the description of every picture."""
    book = read("01_naive.ipynb")
    said = [
        o.metadata["image/png"]["alt"]
        for c in code(book)
        for o in c.outputs
        if "image/png" in o.get("data", {})
    ]
    page, _ = HTMLExporter(template_name="classic").from_notebook_node(book)
    assert len(said) >= 3 and all(f'alt="{html.escape(words)}"' in page for words in said)
