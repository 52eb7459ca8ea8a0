"""%%gemm: whatever a learner writes into the cell, the panel explains it and the next cell runs."""

import re
import shlex

import nbformat
import pytest
from conftest import lacking
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from nbclient import NotebookClient

from gemmlab.ladder import sources
from gemmlab.opencl.devices import devices
from gemmlab.sandbox import client

TILED = sources.read("02_tiled.cl")
WAIT = "barrier(CLK_LOCAL_MEM_FENCE);"
HOSTILE = {
    "an endless loop": (TILED.replace("k0 += TS", "k0 += (M < 0)"), ("Refused",), "line "),
    "an endless loop that only a device shows": (
        TILED.replace("k0 += TS", "k0 += (*(volatile const __global float*)A > 1e6f)"),
        ("hang",),
        "took over",
    ),
    "a megabyte of local memory": (
        TILED.replace(
            "// accumulators", "__local float big[300000]; big[tm] = 1.0f; acc_(big);"
        ).replace("__kernel", "void acc_(__local float* x) { x[0] += 1.0f; }\n__kernel"),
        # all add to one element: a race
        ("luck", "wrong", "crash", "BuildError", "LogicError", "ParameterError", "Refused"),
        "",
    ),
    "no kernel at all": (
        "float f(float x) { return x; }\n",
        ("BuildError",),
        "no kernel named gemm",
    ),
    "a divergent barrier": (
        TILED.replace(WAIT, f"if (tm > 0) {WAIT}", 1),
        # undefined by OpenCL: anything but harm to the notebook
        ("luck", "wrong", "hang", "crash", "BuildError"),
        "barrier",
    ),
}


@pytest.fixture(scope="module")
def shell():
    if not devices():
        lacking("no OpenCL device")
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "gemmlab")
    kept, client.shared_sandbox().limits = (
        client.shared_sandbox().limits,
        dict.fromkeys(client.LIMITS, 90.0),
    )
    yield shell
    client.shared_sandbox().limits = kept


def panel(shell, line: str, cell: str) -> str:
    """What the panel shows for a cell; each link must go to the line that it names."""
    explorer = shell.run_cell_magic("gemm", line, cell)
    explorer.ready()
    links = re.findall(r'data-line="(\d+)">line (\d+)', explorer.panel.answer)
    assert all(number == named for number, named in links)
    return re.sub(r"<a [^>]*>|</a>", "", explorer.panel.answer)


@pytest.mark.parametrize(
    ("kernel", "line", "right", "wrong"),
    [
        ("02_tiled", "2 part=load-compute TS=16 M=32", "acc +=", "acc -="),
        ("13_shifted", '13 part="load: the next" TSM=32 TSN=32 TSK=16 WPTM=4 WPTN=2 M=33 N=40 K=37',
         "(k1 + j)*N", "j*N"),
        ("15_warp_tiles", "15 part=compute TSM=64 TSN=64 TSK=8 M=64 N=64 K=16",
         "a[i] * b[j]", "a[i]"),
    ],
)  # fmt: skip
def test_a_cell_may_hold_a_part_of_the_kernel(shell, kernel, line, right, wrong):
    """Or several, or one named by more words; its lines have the numbers they have in the file."""
    text = sources.read(f"{kernel}.cl")
    part = sources.part(text, shlex.split(line)[1].partition("=")[2])
    assert 'data-state="ok"' in panel(shell, line, part)
    assert text.endswith(shell.user_ns["gemm_source"])
    assert "Wrong" in panel(shell, line, part.replace(right, wrong))


def test_a_fresh_kernel_knows_the_magic_and_loads_it_without_a_word():
    """Where gemmlab is installed; a cell that loads the extension again prints nothing."""
    again = "%reload_ext gemmlab"
    cells = ["import sys\nprint('gemmlab' in sys.modules)", f"%%gemm 2 M=32\n{TILED}", again, again]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(book, timeout=300).execute()
    before, panel, *rest = (cell.outputs for cell in book.cells)
    assert before[0].text == "False\n", "other notebooks start as quickly as without gemmlab"
    assert "image/png" in panel[-1].data and "Right" in panel[-1].metadata["image/png"]["alt"]
    assert rest == [[], []]


def test_the_kernels_own_text_is_right_and_the_same(shell):
    shown = panel(shell, "2 TS=16 M=64 N=64 K=64", TILED)
    assert (
        'data-state="ok"' in shown
        and "TS=16 M=64 N=64 K=64" in shown
        and "own code" in shown
        and "as in the ladder" not in shown
    )
    assert shell.user_ns["gemm_source"] == TILED


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_kernels_are_explained_and_the_next_cell_runs(shell, what):
    source, states, words = HOSTILE[what]
    assert source != TILED
    if "hang" in states:
        client.shared_sandbox().limits |= dict.fromkeys(("predict", "check", "time"), 4.0)
    shown = panel(shell, "2 M=64 N=64 K=64", source)
    client.shared_sandbox().limits |= dict.fromkeys(client.LIMITS, 90.0)
    state = shown.split('data-state="')[1].split('"')[0]
    print(f"{what}: {state}")
    assert state in states and words.lower() in shown.lower()
    assert 'data-state="ok"' in panel(shell, "2 M=64 N=64 K=64", TILED)


def test_an_error_in_a_part_has_the_line_of_the_cell(shell):
    """Of the compiler, and its excerpt; what is not in the cell says so."""
    part = sources.part(TILED, "compute").replace("acc +=", "acc += oops +")
    cell = ["%%gemm 2 part=compute", *part.splitlines()]
    line = next(n for n, text in enumerate(cell, 1) if "oops" in text)
    shown = panel(shell, "2 part=compute M=32", part)
    assert f"line {line}: " in shown and f" {line} | " in shown
    part = sources.part(TILED, "compute").replace("}", "")
    assert "of the whole kernel" in panel(shell, "2 part=compute M=32", part)


def test_a_compile_error_points_at_the_cells_own_line(shell):
    source = TILED.replace("float acc = 0.0f;", "float acc = 0.0f")
    lines = ["%%gemm 2 M=64", *source.splitlines()]
    near = [
        i
        for i, text in enumerate(lines, 1)
        if "float acc = 0.0f" in text or text.strip().startswith("for (int k0")
    ]
    shown = panel(shell, "2 M=64  # a comment, isn't it", source)
    assert any(f"line {i}: " in shown for i in range(near[0], near[1] + 1)), shown[:500]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        *((line, "") for line in ("", "two", "99", "2 TS", "2 TS=x", "2 TSS=16")),
        ("2 device=nothing", "nothing"),
        ("15 part=lunch", "part=lunch"),
        ("13 part=load", "2 begin so"),
        ('13 part="load', "quot"),
    ],
)
def test_a_wrong_first_line_gets_a_sentence(shell, line, words, capsys):
    assert shell.run_cell_magic("gemm", line, TILED) is None
    said = capsys.readouterr().out
    assert said.startswith("%gemm: ") and words in said and len(said.split()) > 2


def test_the_line_form_writes_the_cell(shell):
    shell.run_line_magic("gemm", "3 TS=16  # don't stop")
    assert shell.rl_next_input.startswith("%%gemm 3 TS=16  # don't stop\n// 03 work per thread")


def completions(shell, cell: str) -> set[str]:
    """What IPython offers at the mark | of a cell."""
    with provisionalcompleter():
        found = shell.Completer.completions(cell.replace("|", ""), cell.index("|"))
        return {one.text for one in found}


def test_a_cell_completes_parameters_built_in_functions_and_names_of_the_kernel(shell):
    assert completions(shell, "%%gemm 3 T|") == {"TS="}
    assert {"M=", "WPT=", "part="} <= completions(shell, "%%gemm 3 TS=32 |")
    assert "compute" in completions(shell, "%%gemm 3 part=co|")
    code = "%%gemm 3\nfloat mine = 0;\n"
    assert "get_global_id" in completions(shell, f"{code}const int m = get_gl|")
    assert "mine" in completions(shell, f"{code}mi|") and "Atile" in completions(
        shell, f"{code}At|"
    )
    assert "print" in completions(shell, "pri|"), "Python as ever"
    assert completions(shell, "%%gemm 99 T|") == set()
