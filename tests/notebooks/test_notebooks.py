"""The notebooks: whole, true, and alive with the exercises unsolved and solved."""

import html
import importlib.util
import itertools
import json
import math
import re
import shutil
import sys
from pathlib import Path

import nbformat
import numpy as np
import patient
import pytest
from conftest import DEVICES, browser_device, lacking
from nbconvert import HTMLExporter

import rebuild
from gemmlab import catalog
from gemmlab.catalog import sources
from gemmlab.opencl.devices import devices
from lessons import schedules, tf32

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
CHAPTERS = sorted(path.name for path in FOLDER.glob("[0-9]*.ipynb"))
#: Notebooks that are no chapters.
BESIDE = ["puzzles.ipynb", "the_ladder.ipynb"]
#: Chapters that have no kernel of their own.
WITHOUT_A_KERNEL = ["14_family.ipynb", "20_more_than_one_device.ipynb", "21_the_whole_ladder.ipynb"]
IGNORED = "nbval-ignore-output"
#: Exercises whose verdict also says how fast this machine is just now, beside other processes.
BY_RATE = {"21_3"}


def read(name: str):
    return nbformat.read(FOLDER / name, 4)


def code(book):
    return [cell for cell in book.cells if cell.cell_type == "code"]


def texts(cell) -> list[str]:
    """The text outputs of a cell."""
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
    """The cell that shows an exercise's verdict: its own, or, of a %%gemm cell, the one tagged
    check-CC-N.
    """
    checks = {
        tag.removeprefix("check-").replace("-", "_"): cell
        for cell in code(book)
        for tag in cell.metadata.get("tags", [])
        if tag.startswith("check-")
    }
    return {**exercises(book), **checks}


def solved(book, number: str) -> list[nbformat.NotebookNode]:
    """The cells that solve an exercise and make sure of the verdict; what they show is not compared
    with anything.
    """
    cell = exercises(book)[number]
    (file,) = (FOLDER / "solutions").glob(f"{number}.*")
    written = [file.read_text(encoding="utf-8")]
    if file.suffix == ".cl":  # it replaces all of a %%gemm cell but its first line
        written = [cell.source.split("\n")[0] + "\n" + written[0], verdicts(book)[number].source]
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


@pytest.fixture(scope="module", autouse=True)
def needs_a_device():
    if not devices():
        lacking("no OpenCL device")


def test_all_chapters_are_found():
    assert [name[:2] for name in CHAPTERS] == [f"{number:02}" for number in range(22)]
    assert sorted(p.name for p in FOLDER.glob("*.ipynb")) == [*CHAPTERS, *BESIDE]


@pytest.mark.parametrize("name", CHAPTERS)
def test_formulas_are_not_taken_for_emphasis(name):
    """Two products such as k*N and n*K in a line are formulas, and in HTML backticks are nothing
    but backticks.
    """
    for cell in read(name).cells:
        for line in cell.source.splitlines() if cell.cell_type == "markdown" else ():
            if line.startswith("<"):
                assert "`" not in line, line
            else:
                assert not re.search(r"\w\*\w.*\w\*\w", re.sub(r"`[^`]*`|\*\*", "", line)), line


@pytest.mark.parametrize("name", CHAPTERS)
def test_anatomy(name):
    book = read(name)
    words = sum(len(c.source.split()) for c in book.cells if c.cell_type == "markdown")
    print(
        f"{name}: {len(code(book))} code cells, {words} words, "
        f"{(FOLDER / name).stat().st_size // 1000} kB"
    )
    assert (FOLDER / name).stat().st_size <= 200_000
    assert "widgets" not in book.metadata
    for cell in code(book):
        assert cell.execution_count, f"never run: {cell.source}"
        assert len(cell.source.splitlines()) <= 15 or cell.source.startswith("%%gemm"), cell.source
        assert not any(o.output_type == "error" for o in cell.outputs), cell.source
    text = "\n".join(c.source for c in book.cells)
    for part in ("Predict", "Is it right?", "Is it fast", "The explorer", "Break it"):
        assert f"## {part}" in text, f"{name} has no part {part!r}"
    for part in ("## Exercises", "<details>", "## Summary", "**Next:**", "**Sources.**"):
        assert part in text, f"{name} has no {part!r}"
    assert "gemmlab.Explorer(" in text or "gemmlab.Generator(" in text or name in WITHOUT_A_KERNEL
    assert len(exercises(book)) >= 3


@pytest.mark.parametrize("name", [*CHAPTERS, "puzzles.ipynb"])
def test_a_notebook_is_what_its_text_says(name):
    """The text is what one edits; `make notebooks` builds the notebook from it."""
    sys.path.insert(0, str(FOLDER))
    import rebuild

    def written(cell) -> tuple:
        """Without what `make notebooks` adds: it folds the answers of predictions."""
        metadata = dict(cell.metadata)
        if ".reveal(" in cell.source:
            metadata.pop("jupyter", None)
        return cell.cell_type, cell.source, metadata

    text = rebuild.from_text(FOLDER / "text" / name.replace(".ipynb", ".md"))
    cells = [[written(cell) for cell in book.cells] for book in (text, read(name))]
    assert cells[0] == cells[1]


@pytest.mark.parametrize("name", CHAPTERS)
def test_links_to_the_glossary_lead_somewhere(name):
    terms = re.findall(
        r"^### (.+)$", (FOLDER.parent / "docs" / "glossary.md").read_text(encoding="utf-8"), re.M
    )
    anchors = {re.sub(r"[^\w\- ]", "", term.lower()).strip().replace(" ", "-") for term in terms}
    links = [
        link for c in read(name).cells for link in re.findall(r"glossary\.md#([\w-]+)", c.source)
    ]
    assert links and set(links) <= anchors


@pytest.mark.parametrize("name", CHAPTERS)
def test_measured_numbers_in_text_come_from_code(name):
    """No figure with a unit of speed or time stands in the prose."""
    for cell in read(name).cells:
        if cell.cell_type == "markdown":
            assert not re.search(
                r"\d[\d,.]*\s*(GFLOPS|TFLOPS|GB/s|ms|milliseconds)\b", cell.source
            ), cell.source


@pytest.mark.system
@pytest.mark.parametrize("name", [*CHAPTERS, "the_ladder.ipynb"])
def test_nbval(name, tmp_path, caches, monkeypatch):
    """Every cell gives its stored output, but for those marked; every stub is not solved; every
    solution is.

    The solutions run behind the last cell. Where there are several runtimes, it is another one than
    in the browser.
    """
    startup = tmp_path / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "first.py").write_text(patient.STARTUP + patient.BUSY)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(caches))
    if len(DEVICES) > 1:
        monkeypatch.setenv("GEMMLAB_DEVICE", "intel" if browser_device(name) == "pocl" else "pocl")
    book = read(name)
    compared = [cell for cell in code(book) if IGNORED not in cell.metadata.get("tags", [])]
    with_text = [sum(any(texts(cell)) for cell in cells) for cells in (compared, code(book))]
    print(f"{name}: {with_text[0]} of {with_text[1]} cells with text output are compared")
    assert 2 * with_text[0] > with_text[1]
    for number, cell in verdicts(book).items():
        assert texts(cell)[-1].startswith("Not yet: "), f"the stub of {number} is stored as solved"
    assert {p.stem for p in (FOLDER / "solutions").glob(f"{name[:2]}_*")} == set(exercises(book))

    book.cells += [cell for number in exercises(book) for cell in solved(book, number)]
    folder = shutil.copytree(FOLDER, tmp_path / "notebooks")
    nbformat.write(book, folder / name)
    # in this process, which has imported already what takes nbval seconds; of all plugins it needs
    # no other
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    options = ["-q", "-p", "nbval.plugin", "-p", "no:cacheprovider", "-p", "no:unraisableexception"]
    options += ["--nbval", "--nbval-kernel-startup-timeout", "300", "--rootdir", str(folder)]
    assert pytest.main([*options, str(folder / name)]) == 0


WRONG = {
    "00_1": [6_000_000, 60_000, 11_940_000, "many"],
    "00_2": [
        lambda m, n, k, s: m * n * k / s * 1e-9,
        lambda m, n, k, s: 2 * m * n * k / s,
        lambda m, n, k, s: ...,
        lambda m: m,
    ],
    "00_3": ["k*N + n", "n*N + k", "n*K + "],
    "01_1": [128, 65536, 4096, 524288, 64.5],
}


def body(number: int | str, *changes: tuple[str, str]) -> str:
    """A kernel's text with some changes, each of which must find its place; " ... " in one stands
    for all between.
    """
    text = sources.body(sources.read(catalog[number].file))
    for old, new in changes:
        start, cut, end = old.partition(" ... ")
        if cut:
            assert text.count(start) == 1, start
            first = text.index(start)
            old = text[first : text.index(end, first) + len(end)]
        assert old in text, old
        text = text.replace(old, new)
    return text


#: Exercise 17.2 line by line: bands of columns.
TURNED = (
    (
        "const int band = tile/(ORDER*tiles_n)*ORDER",
        "const int tiles_m = M/TSM, band = tile/(ORDER*tiles_m)*ORDER",
    ),
    ("rows = min(ORDER, M/TSM - band)", "columns = min(ORDER, tiles_n - band)"),
    ("m0 = (band + tile%(ORDER*tiles_n)%rows)*TSM", "m0 = tile%(ORDER*tiles_m)/columns*TSM"),
    ("n0 = tile%(ORDER*tiles_n)/rows*TSN", "n0 = (band + tile%(ORDER*tiles_m)%columns)*TSN"),
)


#: Exercise 18.3: three parts in bfloat16, six products; as they are in the chapter, in TF32.
TF32_PARTS = """#define BIG(x) as_float((as_uint(x) + 0x1000u) & 0xffffe000u)
#define MIDDLE(x) 0.0f
#define SMALL(x) as_float(as_uint((x) - BIG(x)) & 0xffffe000u)"""
BFLOAT_PARTS = """#define BIG(x) as_float((as_uint(x) + 0x8000u) & 0xffff0000u)
#define MIDDLE(x) BIG((x) - BIG(x))
#define SMALL(x) BIG((x) - BIG(x) - MIDDLE(x))"""
THREE = "SMALL(a)*BIG(b) + BIG(a)*SMALL(b) + BIG(a)*BIG(b)"
SIX = f"MIDDLE(a)*MIDDLE(b) + MIDDLE(a)*BIG(b) + BIG(a)*MIDDLE(b) + {THREE}"

#: Exercise 19.3, with what is stored as big and as small parts.
SPLIT = """for (int l = 0; l < LPTB; l++) {{
    const float4 big = (float4)(BIG(b[l].x), BIG(b[l].y), BIG(b[l].z), BIG(b[l].w));
    *(__local float4*)Bbig[to][kb][ib + l*NB] = {};
    *(__local float4*)Bsmall[to][kb][ib + l*NB] = {};
}}"""

#: The holes of exercises 05.2 and 07.2, 06.2, and 09.2 as they are in the chapters: nothing is done
#: there.
EMPTY_LOAD = ("        // load: ...         }\n", "        // your lines\n")
EMPTY_COMPUTE = (
    "            float a[WPTM];  ...                 }\n            }\n",
    "            // your lines\n",
)
EMPTY_NEXT = ("        if (k1 < K) { ...             }\n        }\n", "        // your lines\n")

#: Exercise 08.2: without A's load, and the copy in its place.
COPY = (
    ("            Atile[j][tm] = A[(k0 + j)*M + m0 + tm];\n", "            // A\n"),
    (
        "        // barrier: the tiles are",
        """        event_t e = 0;
        for (int k = 0; k < TS; k++) {
            e = async_work_group_copy(&Atile[k][0], &A[(k0 + k)*M + m0], TS, e);
        }
        wait_group_events(1, &e);
        // the tiles are""",
    ),
)

#: Exercise 09.3: the next tiles' vectors are fetched into registers, and stored later.
EARLY = """floatX a_next[TSK*TSM/WIDTH/ITEMS], b_next[TSK*TSM/WIDTH/ITEMS];
if (k1 < K) {
    for (int l = 0; l < TSK*TSM/WIDTH/ITEMS; l++) {
        const int i = (l*ITEMS + tid) % (TSM/WIDTH), j = (l*ITEMS + tid) / (TSM/WIDTH);
        a_next[l] = A[(k1 + j)*(M/WIDTH) + m0/WIDTH + i];
        b_next[l] = B[(k1 + j)*(N/WIDTH) + n0/WIDTH + i];
    }
}"""
LATE = """if (k1 < K) {
    for (int l = 0; l < TSK*TSM/WIDTH/ITEMS; l++) {
        const int i = (l*ITEMS + tid) % (TSM/WIDTH), j = (l*ITEMS + tid) / (TSM/WIDTH);
        Atile[next][j][i] = a_next[l];
        Btile[next][j][i] = b_next[l];
    }
}"""

#: Exercise 12.3: a row and a column that exist, and no zero for those that do not.
LAST_ROW = "A[min(k0 + j, K - 1)*M + min(m0 + tm, M - 1)]"


def filled(exercise: str, part: str, *changes: tuple[str, str]) -> str:
    """A kernel whose part is the solution of an exercise with some changes: a hole that was filled
    in wrongly.
    """
    text = body(int(exercise[:2]))
    lines = (FOLDER / "solutions" / f"{exercise}.cl").read_text().rstrip("\n")
    for old, new in changes:
        assert old in lines, old
        lines = lines.replace(old, new)
    return text.replace(sources.part(text, part), lines)


#: Exercise 14.2, with what is stored.
STORE = """// store
for (int j = 0; j < WPTN; j++) {{
    for (int i = 0; i < WPTM; i++) {{
        const int m = m0 + tm + i*RTSM;
        const int n = n0 + tn + j*RTSN;
        const float sum = alpha*acc[j][i] + beta*C0[offset_c + m*down + n*across];
        C[n*M + m] = {};
    }}
}}"""


#: How the part begins that loads the next tiles in kernels 10 and 13.
NEXT = "load: the next"


def every_setting(rate, choices):
    """Exercise 04.3 with more measurements than are allowed."""
    values = itertools.product(*choices.values())
    return max((dict(zip(choices, setting, strict=True)) for setting in values), key=rate)


def rounded_up(group, groups, tiles, steps):
    """Exercise 17.1 with every length rounded up: equal shares, but for the last group's."""
    length = -(-tiles * steps // groups)
    line = [(step // steps, step % steps) for step in range(tiles * steps)]
    line = line[group * length : (group + 1) * length]
    return [
        (t, min(s for u, s in line if u == t), sum(u == t for u, _ in line))
        for t in sorted({t for t, _ in line})
    ]


def uncut(group, groups, tiles, steps):
    """A group's share as if it were all of one tile."""
    first, end = (tiles * steps * g // groups for g in (group, group + 1))
    return [(first // steps, first % steps, end - first)]


def with_ends(group, groups, tiles, steps):
    """The last step of each piece where its length should be."""
    pieces = schedules.pieces(tiles, steps, groups)[group]
    return [(tile, first, first + number) for tile, first, number in pieces]


#: Exercise 01.2: four sums, and the terms that are left.
FOUR_SUMS = (FOLDER / "solutions" / "01_2.cl").read_text(encoding="utf-8")
REST = "    for (; k < K; k++) {\n        sums[0] += A[k*M + m] * B[n*K + k];\n    }\n"


def four_sums(*changes: tuple[str, str]) -> str:
    """Kernel 1 with the solution of 01.2, and some changes of it."""
    text = FOUR_SUMS
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return body(1, ("    // compute\n ... }\n", text))


#: Exercise 02.2 line by line: the tile of B as [k][n].
HEART = (("Btile[tn][tm] = B", "Btile[tm][tn] = B"), ("Btile[tn][k]", "Btile[k][tn]"))
MULTIPLY = "acc += Atile[k][tm] * Btile[k][tn];"
#: Exercise 03.2 line by line: neighbouring columns.
NEIGHBOURS = (
    ("Btile[tn + j*RTS][k]", "Btile[tn*WPT + j][k]"),
    ("n0 + tn + j*RTS", "n0 + tn*WPT + j"),
)
#: In exercise 16.2: the wait in the last step of a tile, by its indentation.
WAIT = " " * 16 + "AWAIT(STAGES - 2); barrier"
#: The line of exercise 04.2.
FUSED = "acc = fma(Atile[k*WIDTH + w][tm], (floatX)(LANE(b, w)), acc);"

WRONG |= {
    "01_2": [
        body(1, ("    for (int k = 0; ... }\n", "")),
        body(1),
        four_sums(("    acc = (sums[0] + sums[1]) + (sums[2] + sums[3]);\n", "")),
        four_sums((REST, "")),
        four_sums(("k + 4 <= K", "k < K"), (REST, "")),
        four_sums(("(sums[0] + sums[1]) + (sums[2] + sums[3])", "sums[0]")),
    ],
    "01_3": [
        body(1),
        body(1, ("const int m = get_global_id(0);", "const int m = get_global_id(1);")),
        body(1, ("// accumulators\n", "__local float shared[TS];\n\n    // accumulators\n")),
        "no kernel at all",
    ],
    "02_1": [524288, 16384, 8192, 131072, "many"],
    "02_2": [
        body(2, *HEART, ("Btile[tm][tn] = B[(n0 + tn)*K + k0 + tm];", ""), (MULTIPLY, "")),
        body(2),
        body(2, ("Btile[tn][k]", "Btile[k][tn]")),
        body(2, *HEART, ("complete\n        barrier(CLK_LOCAL_MEM_FENCE);\n", "complete\n")),
        body(2, *HEART, (f"            {MULTIPLY}\n", "")),
    ],
    "02_3": [
        body(2),
        body(2, ("any more\n        barrier(CLK_LOCAL_MEM_FENCE);\n", "any more\n")),
        "no kernel",
    ],
    "03_1": [
        lambda p, q: p * q / (p + q),
        lambda p, q: p + q,
        lambda p, q: 1 + 1 / q,
        lambda p, q: 2 / (p * q),
    ],
    "03_2": [
        body(3, ("            const float a = Atile[k][tm];    // loaded ... }\n", "")),
        body(3),
        body(3, ("Btile[tn + j*RTS][k]", "Btile[tn*WPT + j][k]")),
        body(3, *NEIGHBOURS, ("acc[j] += a * Btile", "acc[0] = a * Btile")),
        body(3, *NEIGHBOURS, ("Btile[tn*WPT + j][k]", "Btile[tn*WPT][k]")),
    ],
    "03_3": [{"WPT": 7}, {"TS": 64, "WPT": 2}, {"TS": 128, "WPT": 128}, {"WPT": 16}, "64"],
    "04_1": [4, 32, 64, 512],
    "04_2": [
        body(4, ("        for (int k = 0; k < TSV; k++) { ... \n        }\n", "")),
        body(4),
        body(4, ("acc += Atile[k*WIDTH + w][tm] * LANE(b, w);", FUSED.replace("acc = ", ""))),
        body(4, ("acc += Atile[k*WIDTH + w][tm] * LANE(b, w);", FUSED.replace("k*WIDTH + w", "k"))),
        body(4, ("acc += Atile[k*WIDTH + w][tm] * LANE(b, w);", FUSED.replace("LANE(b, w)", "b"))),
    ],
    "04_3": [
        lambda rate, choices: {name: values[0] for name, values in choices.items()},
        every_setting,
        lambda rate, choices: [32, 4],
        lambda rate, choices: ...,
    ],
    "05_1": [
        lambda s: 32 // math.gcd(s, 32),
        lambda s: min(s, 32),
        lambda s: s,
        lambda s: s % 32,
        lambda s: 1,
    ],
    "05_2": [
        body(5, EMPTY_LOAD),
        body(5, ("Btile[tm][j] = B", "// Btile")),
        body(5, ("B[(k0 + j)*N + n0 + tm]", "B[(n0 + j)*K + k0 + tm]")),
        body(5, ("B[(k0 + j)*N", "B[(k0 + j)*M")),
        body(5, ("Btile[tm][j] =", "Btile[j][tm] =")),
        body(5, ("j = j0 + tn;", "j = j0;")),
        body(5, ("B[(k0 + j)*N + n0 + tm]", "B[(k0 + j)*N + m0 + tm]")),
    ],
    "05_3": ["n*TSK + k", "k*TS + n", "n*TSK + k/2", "n*TSK + (k + n) % 8", "n*TSK +"],
    "06_1": [
        lambda items, groups: 65536 // (items * groups),
        lambda items, groups: 65536 / (items * groups),
        lambda items, groups: min(255, 65536 / (items * groups)),
        lambda items, groups: min(255, 65536 // items),
        lambda items, groups: 2048 // (items * groups),
        lambda items, groups: 128,
    ],
    "06_2": [
        body(6, EMPTY_COMPUTE),
        body(6, ("Atile[k][tm + i*RTSM]", "Atile[k][tm*WPTM + i]")),
        body(6, ("Btile[tn + j*RTSN][k]", "Btile[tn*WPTN + j][k]")),
        body(6, ("Atile[k][tm + i*RTSM]", "Atile[k][tm + i*RTSN]")),
        body(6, ("Btile[tn + j*RTSN][k]", "Btile[k][tn + j*RTSN]")),
        body(6, ("a[i] * b[j]", "a[j] * b[i]")),
        body(6, ("+= a[i] * b[j]", "= a[i] * b[j]")),
    ],
    "06_3": [
        {},
        {"WPTM": 2, "WPTN": 2},
        {"WPTM": 4, "WPTN": 4},
        {"TSM": 64},
        {"WPTM": 16, "WPTN": 16},
        "4 x 8",
    ],
    "07_1": [
        lambda wptm, rtsm: math.gcd(wptm, 32),
        lambda wptm, rtsm: wptm,
        lambda wptm, rtsm: rtsm,
        lambda wptm, rtsm: max(1, rtsm * wptm // 32),
        lambda wptm, rtsm: rtsm * math.gcd(wptm, 32) / 32,
        lambda wptm, rtsm: 1,
    ],
    "07_2": [
        body(7, EMPTY_LOAD),
        body(7, ("Btile[j][i] = B", "// Btile")),
        body(7, ("e0 < TSK*TSM/WIDTH;", "e0 < TSK*TSM;")),
        body(7, *((f"(e0 + tid) {op} (TSM/WIDTH)", f"(e0 + tid) {op} TSM") for op in "%/")),
        body(7, ("m0/WIDTH + i", "m0 + i"), ("n0/WIDTH + i", "n0 + i")),
        body(7, ("(M/WIDTH)", "M"), ("(N/WIDTH)", "N")),
        body(7, ("(N/WIDTH)", "(M/WIDTH)")),
        body(7, ("Btile[j][i] =", "Btile[i][j] =")),
        body(7, ("e0 + tid", "e0")),
    ],
    "07_3": [
        {},
        {"TSM": 64, "TSN": 64},
        {"TSM": 32, "TSN": 32, "WPTM": 4},
        {"TSM": 32},
        {"TSK": 7},
        1.7,
    ],
    "08_1": [
        lambda lane, j, rtsm: j,
        lambda lane, j, rtsm: lane + j,
        lambda lane, j, rtsm: lane % rtsm + j,
    ],
    "08_2": [
        body(3),
        body(3, COPY[0]),
        body(3, ("Atile[j][tm] = A", "async_work_group_copy(&Atile[j][0], A, TS, 0); // A")),
        body(3, COPY[0], (COPY[1][0], COPY[1][1].replace("TS, e)", "TS, 0)"))),
        body(3, COPY[0], (COPY[1][0], COPY[1][1].replace("(k0 + k)*M", "(k0 + k)*K"))),
        body(3, COPY[0], (COPY[1][0], COPY[1][1].replace("m0]", "m0 + tm]"))),
    ],
    "08_3": [
        {},
        {"TSM": 64, "TSN": 64},
        {"TSM": 32, "TSN": 32, "WPTM": 4},
        {"SHUFFLE": 2, "TSM": 160},
        {"TSK": 7},
    ],
    "09_1": [
        lambda tiles, load, compute, buffers: tiles * (load + compute),
        lambda tiles, load, compute, buffers: tiles * max(load, compute),
        lambda tiles, load, compute, buffers: (
            tiles * (load + compute if buffers == 1 else max(load, compute))
        ),
    ],
    "09_2": [
        body(9, EMPTY_NEXT),
        body(9, *((f"{x}tile[next][j][i] =", f"{x}tile[now][j][i] =") for x in "AB")),
        body(9, ("(k1 + j)", "(k0 + j)")),
        body(9, ("if (k1 < K) {", "{")),
        body(9, ("if (k1 < K) {", "if (k1 <= K) {")),
        body(9, ("B[(k1 + j)*(N/WIDTH)", "B[(k1 + j)*(M/WIDTH)")),
        body(9, ("Btile[next][j][i] = B", "// Btile")),
    ],
    "09_3": [
        ("// your lines", "// your lines"),
        (EARLY, ""),
        (EARLY.replace("a_next[l] =", "Atile[next][0][l] ="), LATE),
        (EARLY, LATE.replace("b_next[l]", "B[l]")),
        (EARLY.replace("if (k1 < K) ", ""), LATE.replace("if (k1 < K) ", "")),
        (EARLY.replace("(k1 + j)", "(k0 + j)"), LATE),
    ],
    "10_1": [
        lambda m, n, k, x, y, z: whole(m, x) * whole(n, y) * whole(k, z) / (m * n * k) - 1,
        lambda m, n, k, x, y, z: m * n * k / (whole(m, x) * whole(n, y) * whole(k, z)),
        lambda m, n, k, x, y, z: 1 - m * n / (whole(m, x) * whole(n, y)),
    ],
    "10_2": [
        filled("10_2", NEXT, ("Atile[next][j][i] =", "")),
        filled("10_2", NEXT, ("Btile[next][j][i] =", "")),
        filled("10_2", NEXT, ("(TSN/WIDTH)", "(TSM/WIDTH)")),
        filled("10_2", NEXT, ("(k1 + j)", "j")),
    ],
    "10_3": [{}, {"TSM": 60}, {"TSM": 256, "TSN": 256}, {"WPTM": 16}, "64 x 64"],
    "11_1": [
        lambda rx, ry, width: rx // width * ry,
        lambda rx, ry, width: rx * ry + rx + 1,
        lambda rx, ry, width: rx // width * ry + rx // width + ry,
    ],
    "11_2": [
        body(11),
        body(11, ("// store", "vload4(")),
        filled("11_2", "compute", ("four[j]", "four[0]")),
        filled("11_2", "compute", ("&B[k*N + n]", "&B[n]")),
    ],
    "11_3": [{"RX": 7}, {"WIDTH": 3}, "8 x 8"],
    "12_1": [
        lambda m, n, tile: whole(m, tile) // tile * whole(n, tile) // tile,
        lambda m, n, tile: -(-m // tile) + -(-n // tile) - 1,
        lambda m, n, tile: -(-m // tile) + -(-n // tile),
    ],
    "12_2": [
        body(12),
        filled("12_2", "load", ("b * inside_b", "b"), ("a * inside_a", "a")),
        filled(
            "12_2",
            "load",
            ("k0 + tm < K && n0 + j < N", "m0 + tm < M && k0 + j < K"),
            ("min(n0 + j, N - 1)", "(n0 + j)"),
        ),
        filled("12_2", "load", ("Btile[j][tm] =", "")),
    ],
    "12_3": [(100, 100, 100), (64, 64, 95), (1, 64, 31), (64, 64), "100"],
    "13_1": [
        lambda t, m, rows: (t * rows, min(rows, m - t * rows)),
        lambda t, m, rows: (min(t * rows, m - rows), rows),
        lambda t, m, rows: (m - rows, m - t * rows),
    ],
    "13_2": [
        body(13),
        filled(
            "13_2", NEXT, ("vload4(0, &B[(k1 + j)*N + n0 + i])", "(float4)(B[(k1 + j)*N + n0 + i])")
        ),
        filled("13_2", NEXT, ("4)*4;", "4);")),
        filled("13_2", NEXT, ("k1 + j < K ? ", ""), (" : (float4)(0.0f)", "")),
    ],
    "13_3": [
        lambda size: "pad",
        lambda size: "shift",
        lambda size: "tile",
        lambda size: ...,
        "pad",
    ],
    "14_1": [
        {"TSM": 32, "TSN": 32, "TSK": 16},
        {"TSM": 96, "TSN": 48, "TSK": 64},
        {"TSM": 8, "TSN": 8, "TSK": 8},
        {"TSM": 96, "TSN": 48, "WPTM": 5},
        "96 x 48",
    ],
    "14_2": [
        "// store",
        STORE.format("sum"),
        STORE.format("fmin(sum, 0.0f)"),
        STORE.format("fmax(alpha*acc[j][i], 0.0f)"),
        STORE.format("fmax(alpha*acc[j][i], 0.0f) + sum - alpha*acc[j][i]"),
        STORE.format("fmax(sum, 0.0f)").replace("i*RTSM", "i"),
    ],
    "14_3": [
        ((64, 64, 64), {"TSM": 30}),
        ((64, 64), {}),
        ((64, 64, 64), {"TSX": 8}),
    ],
    "15_1": [
        lambda p, q, rows: p + q,
        lambda p, q, rows: 32 * (p + q),
        lambda p, q, rows: rows * p + rows * q,
        lambda p, q, rows: rows * p * (32 // rows) * q,
    ],
    "15_2": [
        body(15, ("*(floatL*)&a[i] = *(const __local floatL*)&Atile", "a[i] = Atile")),
        body(15, ("*(floatL*)&b[j] = *(const __local floatL*)&Btile", "b[j] = Btile")),
        body(15, ("&Atile[now][k][tm + i*WARPM]", "&Atile[now][k][tm + i]")),
        body(15, ("&Btile[now][k][tn + j*WARPN]", "&Btile[now][k][tn + j]")),
        body(15, ("acc[j][i] += a[i] * b[j];", "")),
        body(15, ("acc[j][i] += a[i] * b[j];", "acc[j][i] += a[j] * b[i];")),
    ],
    "15_3": [
        {"WPTM": 8},
        {"WPTM": 4, "WPTN": 4},
        {"WPTM": 4, "WPTN": 4, "TSK": 32},
        {"WPTM": 4, "WPTN": 4, "TSM": 64, "TSN": 64, "LWIDTH": 1},
        "4 x 4",
    ],
    "16_1": [
        lambda m, n, k, stages, lanes: (stages * k * (m + n), (stages - 1) * m * n * k / lanes),
        lambda m, n, k, stages, lanes: (4 * stages * k * (m + n), stages * m * n * k / lanes),
        lambda m, n, k, stages, lanes: (4 * stages * k * (m + n), (stages - 1) * m * n * k),
        lambda m, n, k, stages, lanes: (4 * stages * k * m * n, (stages - 1) * m * n * k / lanes),
        lambda m, n, k, stages, lanes: 0,
    ],
    "16_2": [
        body(16, ("            FRAGMENT((k + 1)%TSK, (k + 1)%2)\n", "")),
        body(16, ("  FRAGMENT((k + 1)%TSK, (k + 1)%2)\n", "  FRAGMENT(k, k%2)\n")),
        body(16, (WAIT, "barrier")),
        body(16, (WAIT, "AWAIT(0); barrier")),
        body(16, (WAIT, "AWAIT(STAGES - 2); // barrier")),
        body(16, ("now = !BEYOND && left == TSK ? now : now + 1 < STAGES ? now + 1 : 0;", "")),
    ],
    "16_3": [
        {"STAGES": 2},
        {"STAGES": 5},
        {"TSN": 256},
        {"TSM": 96},
        "3 stages",
    ],
    "17_1": [
        lambda g, groups, tiles, steps: [
            (t, 0, steps) for t in range(tiles * g // groups, tiles * (g + 1) // groups)
        ],
        uncut,
        with_ends,
        rounded_up,
        lambda g, groups, tiles, steps: g,
    ],
    "17_2": [
        body(17),
        body(17, *TURNED[:1]),
        body(17, *TURNED[:2]),
        body(17, *TURNED[:3], (TURNED[3][0], "n0 = band*TSN")),
    ],
    "17_3": [
        lambda tile, rows, columns: (tile % rows, tile // rows),
        lambda tile, rows, columns: (tile // columns, tile // columns),
        lambda tile, rows, columns: (tile, 0),
        lambda tile, rows, columns: ...,
    ],
    "18_1": [
        lambda p, rounded: 2.0**-p,
        lambda p, rounded: 2.0 ** -(p + 1),
        lambda p, rounded: 2.0**-p if rounded else 2.0 ** -(p + 1),
        lambda p, rounded: 10.0**-p,
        lambda p, rounded: 2.0 ** -(p + 2) if rounded else 2.0 ** -(p + 1),
        lambda p, rounded: p,
    ],
    "18_2": [
        lambda x: (tf32.cut(x), tf32.cut(x - tf32.cut(x))),
        lambda x: (tf32.nearest(x), x - tf32.nearest(x)),
        lambda x: (tf32.nearest(x), 0 * x),
        lambda x: tf32.parts(x)[::-1],
        lambda x: tuple(part.astype(np.float64) for part in tf32.parts(x)),
        lambda x: tf32.nearest(x),
        lambda x: ...,
    ],
    "18_3": [
        (TF32_PARTS, THREE),
        (TF32_PARTS.replace("0xffffe000", "0xffff0000"), SIX),
        (BFLOAT_PARTS, THREE),
        (BFLOAT_PARTS, SIX.replace("MIDDLE(a)*MIDDLE(b) + ", "")),
        (BFLOAT_PARTS, SIX.replace("BIG(a)*MIDDLE(b)", "MIDDLE(a)*BIG(b)")),
    ],
    "19_1": [128, 8, 65536, 512, 1024, "64"],
    "19_2": [
        lambda k, n, row: k * row + n,
        lambda k, n, row: (k // 4 * row + n) * 4,
        lambda k, n, row: k // 4 * row + n * 4 + k % 4,
        lambda k, n, row: (k // 4 * 128 + n) * 4 + k % 4,
        lambda k, n, row: (k % 4 * row + n) * 4 + k // 4,
    ],
    "19_3": [
        "for (int l = 0; l < LPTB; l++) { *(__local float4*)Bbig[to][kb][ib + l*NB] = b[l]; }",
        SPLIT.replace("Bsmall", "Bbig").format("big", "big"),
        SPLIT.format("big", "b[l]"),
        SPLIT.format("big", "big"),
        SPLIT.replace("ib + l*NB", "ib + l").format("big", "b[l] - big"),
        SPLIT.format("big", "small"),
    ],
    "21_1": [1 / 4.5, 1 / 2.25, 0.125, 1.125, "0.11"],
    "21_2": [
        lambda tile, block, lanes, words, fetched: min(
            1, words * block / lanes, fetched * tile / lanes
        ),
        lambda tile, block, lanes, words, fetched: min(words * block, fetched * tile) / (2 * lanes),
        lambda tile, block, lanes, words, fetched: max(words * block, fetched * tile) / (2 * lanes),
        lambda tile, block, lanes, words, fetched: min(1, words * block / (2 * lanes)),
        lambda tile, block, lanes, words, fetched: (
            1 / (1 + 2 * lanes / (words * block) + 2 * lanes / (fetched * tile))
        ),
    ],
    "21_3": [
        (11, {}, ""),
        (11, {"RX": 7}, body(11)),
        (11, {}, "no kernel"),
        (2, {}, body(2, ("acc +=", "acc -="))),
    ],
    "20_1": [64, 96, 16, 128, "32"],
    "20_2": [
        lambda m, n, k, rows, columns: m * k / rows + k * n / columns,
        lambda m, n, k, rows, columns: (
            m * k / rows * (1 - 1 / rows) + k * n / columns * (1 - 1 / columns)
        ),
        lambda m, n, k, rows, columns: (m * k + k * n) * (1 - 1 / (rows * columns)),
        lambda m, n, k, rows, columns: ...,
    ],
    "20_3": [
        sum,
        lambda parts: parts[0],
        lambda parts: parts,
        lambda parts: [x + y for x, y in zip(parts[::2], parts[1::2], strict=False)],
        lambda parts: ...,
    ],
}


def whole(size: int, tile: int) -> int:
    return -(-size // tile) * tile


def test_every_exercise_has_typical_wrong_answers():
    assert set(WRONG) == {p.stem for p in (FOLDER / "solutions").iterdir()}


@pytest.mark.parametrize("name", [*CHAPTERS, *BESIDE])
def test_gemm_cells_are_their_kernels_with_the_declared_changes(name):
    for cell in code(read(name)):
        if not cell.source.startswith("%%gemm"):
            assert "gemmlab" not in cell.metadata
            continue
        declared = cell.metadata["gemmlab"]
        first, text = cell.source.split("\n", 1)
        assert first.split()[1] == str(declared["kernel"])
        if declared.get("whole"):
            assert text == rebuild.kernel_text(declared["kernel"], declared.get("changes", ()))
            continue
        wanted = body(declared["kernel"], *declared["changes"])
        assert text == (sources.part(wanted, declared["part"]) if "part" in declared else wanted)


@pytest.mark.parametrize("name", [name for name in CHAPTERS[2:] if name not in WITHOUT_A_KERNEL])
def test_a_chapter_from_the_second_on_is_complete(name):
    """The difference, a kernel to change, a prediction with its answer, exercises, a stepper."""
    text = "\n".join(c.source for c in code(read(name)))
    number = int(name[:2])
    shown = f"gemmlab.Difference({number}" if number != 11 else "print(text[text.index("
    hole = "%%gemm" if number < 18 else "#define BIG" if number == 18 else "Bbig"
    for part in (
        shown,
        f"gemmlab.Explorer(kernel={number}",
        hole,
        ".reveal(",
        f"check_{number:02d}_1",
        f"check_{number:02d}_2",
        f"check_{number:02d}_3",
    ):
        assert part in text, f"{name} has no {part}"
    assert "gemmlab.Stepper(" in text


@pytest.fixture
def checks():
    """The checks of the exercises, as a chapter imports them."""
    spec = importlib.util.spec_from_file_location("checks", FOLDER / "checks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("number", "answer", "words"),
    [
        ("00_1", "128", "no quotes"),
        ("00_2", lambda *case: print(1.0), "`return`"),
        ("00_2", lambda *case: ..., "yet"),
    ],
)
def test_an_answer_that_is_none_gets_a_hint_that_says_so(checks, number, answer, words):
    verdict = getattr(checks, f"check_{number}")(answer)
    assert not verdict and words in str(verdict)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", WRONG)
def test_checks_say_why_typical_answers_are_wrong(checks, number):
    """Each typical wrong answer is told so, with a hint of its own."""
    verdicts = [getattr(checks, f"check_{number}")(answer) for answer in [None, *WRONG[number]]]
    hints = [str(verdict) for verdict in verdicts]
    assert not any(verdicts) and all("Not yet" in hint and len(hint) > 30 for hint in hints), hints
    assert len(set(hints)) >= 3


@pytest.mark.system
@pytest.mark.parametrize("name", CHAPTERS)
def test_html_without_a_kernel_shows_the_pictures(name):
    outputs = [o.get("data", {}) for cell in code(read(name)) for o in cell.outputs]
    pictures = sum("image/png" in data for data in outputs)
    page, _ = HTMLExporter().from_filename(str(FOLDER / name))
    assert pictures + sum("image/svg+xml" in data for data in outputs) >= 3
    assert page.count('src="data:image/png;base64,') == pictures


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


def test_stored_outputs_name_the_device():
    for name in CHAPTERS:
        assert re.search(r"GFLOPS|compute units", json.dumps(read(name)))
