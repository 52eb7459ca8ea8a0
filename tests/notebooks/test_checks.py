"""The checks of the exercises: each typical wrong answer gets its own hint."""

import itertools
import re
from types import SimpleNamespace

import pytest
from books import FOLDER, body, tagged

import checks
import rebuild
from gemmlab import catalog
from gemmlab.ladder import sources
from lessons import puzzles, tf32

NUMBERS = sorted(p.stem for p in (FOLDER / "solutions").iterdir())
BARRIER = "        barrier(CLK_LOCAL_MEM_FENCE);\n"

#: What makes the solution of an exercise wrong: changes of its text, which may be several.
CHANGES = {
    "01_2": [
        [("    acc = (sums[0] + sums[1]) + (sums[2] + sums[3]);\n", "")],
        [("sums[0] += A[k*M + m] * B[n*K + k];", "")],
    ],
    "02_2": [
        [("Btile[tm][tn] = B", "Btile[tn][tm] = B")],
        [("Btile[k][tn]", "Btile[tn][k]")],
        [(BARRIER, "")],
    ],
    "03_2": [
        [("Btile[tn*WPT + j][k]", "Btile[tn + j*RTS][k]")],
        [("n0 + tn*WPT + j", "n0 + tn + j*RTS")],
        [("acc[j] += a * Btile", "acc[0] = a * Btile")],
    ],
    "04_2": [[("acc = fma(", "fma(")], [("Atile[k]", "Atile[k/WIDTH]")], [("tn*TS + k", "tn*TS")]],
    "05_2": [
        [("Btile[i][j] = B", "// Btile")],
        [("B[(k0 + j)*N + n0 + i]", "B[(n0 + j)*K + k0 + i]")],
        [("B[(k0 + j)*N", "B[(k0 + j)*M")],
    ],
    "06_2": [
        [("tm + i*RTSM", "tm*WPTM + i")],
        [("tn + j*RTSN", "tn*WPTN + j")],
        [("tm + i*RTSM", "tm + i*RTSN")],
    ],
    "07_2": [
        [("Btile[j][i] = B", "// Btile")],
        [("e0 < TSK*TSM/WIDTH;", "e0 < TSK*TSM;")],
        [("(TSM/WIDTH)", "TSM")],
    ],
    "08_2": [
        [("wait_group_events(1, &copied);", "")],
        [("TS, copied)", "TS, 0)")],
        [("(k0 + k)*M", "(k0 + k)*K")],
    ],
    "09_2": [
        [("[next][j][i] =", "[now][j][i] =")],
        [("(last + j)", "(k0 + j)")],
        [("min(k1, K - TSK)", "k1")],
    ],
    "09_3": [
        [("tile[next][j][i] =", "tile[now][j][i] =")],
        [("a_next[l] =", "Atile[next][0][l] =")],
        [("= b_next[l]", "= B[l]")],
    ],
    "10_2": [
        [("Btile[next][j][i] =", "")],
        [("(TSN/WIDTH)", "(TSM/WIDTH)")],
        [("(k1 + j)", "j")],
    ],
    "11_2": [
        [("= four[j]", "= B[k*N + n + j]")],
        [("four[j]", "four[0]")],
        [("&B[k*N + n]", "&B[n]")],
    ],
    "12_2": [
        [("b * inside_b", "b"), ("a * inside_a", "a")],
        [("n0 + j < N", "k0 + j < K"), ("min(n0 + j, N - 1)", "(n0 + j)")],
        [("Btile[j][tm] =", "")],
    ],
    "13_2": [
        [("vload4(0, &B[(k1 + j)*N + n0 + i])", "(float4)(B[(k1 + j)*N + n0 + i])")],
        [("4)*4;", "4);")],
        [("k1 + j < K ? ", ""), (" : (float4)(0.0f)", "")],
    ],
    "14_2": [[("fmax(sum, 0.0f)", "sum")], [("fmax", "fmin")], [("beta*C0", "0.0f*C0")]],
    "15_2": [
        [("*(floatX*)&b[j0] = *(const __local floatX*)&Btile", "b[j0] = Btile")],
        [("tm + i*WARPM]", "tm + i]")],
        [("tn + j0*WARPN]", "tn + j0]")],
    ],
    "16_2": [
        [("AWAIT(STAGES - 2);", "")],
        [("AWAIT(STAGES - 2);", "AWAIT(0);")],
        [("barrier(CLK_LOCAL_MEM_FENCE);", "")],
    ],
    "17_2": [
        [("min(ORDER, tiles_n - band)", "ORDER")],
        [("tile%(ORDER*tiles_m)/columns*TSM", "(band + tile/columns)*TSM")],
        [("(band + tile%(ORDER*tiles_m)%columns)*TSN", "band*TSN")],
    ],
    "18_3": [[("0x8000u", "0x1000u")], [("MIDDLE(a)*MIDDLE(b) + ", "")]],
    "19_3": [
        [("to_small = b", "to_big = b")],
        [("= b - big", "= b")],
        [("*(__local float4*)to_big", "to_big[0] = big.x; *(__local float4*)to_small")],
    ],
}


def every_setting(rate, choices):
    """Exercise 04.3 with more measurements than are allowed."""
    values = itertools.product(*choices.values())
    return max((dict(zip(choices, setting, strict=True)) for setting in values), key=rate)


def puzzle(number, lines=None):
    """The text of a puzzle, with lines in its gap."""
    text, gap = puzzles.written()[number - 1]["text"], puzzles.PUZZLES[number - 1].gap
    return text if lines is None else text.replace(gap, lines)


#: Other wrong answers.
WRONG = {
    "00_1": [puzzle(1), puzzle(1, "    y[i] = x[i];\n"), puzzle(1, "    y[i + 1] = 2*x[i];\n")],
    "00_2": [puzzle(3), puzzle(3, "    const int at = m*M + n;\n")],
    "00_3": [puzzle(4), puzzle(4, "    sum = A[m] * B[n];\n")],
    "01_2": [body(1)],
    "01_3": [
        body(1),
        body(1, ("const int m = get_global_id(0);", "const int m = get_global_id(1);")),
        body(1, ("// accumulators\n", "__local float shared[TS];\n\n    // accumulators\n")),
    ],
    "02_3": [
        body(2),
        body(2, ("any more\n" + BARRIER, "any more\n")),
        "no kernel",
    ],
    "03_3": [{"WPT": 7}, {"TS": 64, "WPT": 2}, {"TS": 128, "WPT": 128}],
    "04_3": [
        lambda rate, choices: {name: values[0] for name, values in choices.items()},
        every_setting,
        lambda rate, choices: [32, 4],
    ],
    "05_3": ["n*TSK + k", "k*TS + n", "n*TSK + k/2"],
    "06_3": [{}, {"WPTM": 2, "WPTN": 2}, {"WPTM": 4, "WPTN": 4}],
    "07_3": [{"TSM": 64, "TSN": 64}, {"TSM": 32}, {"TSK": 7}],
    "08_3": [{}, {"SHUFFLE": 2, "TSM": 160}, {"TSK": 7}],
    "10_3": [{}, {"TSM": 60}, {"TSM": 256, "TSN": 256}],
    "11_3": [{"RX": 7}, {"WIDTH": 3}, "8 x 8"],
    "12_2": [body(12)],
    "12_3": [(100, 100, 100), (1, 64, 31), (64, 64)],
    "13_3": [lambda size: "pad", lambda size: "shift", lambda size: "tile"],
    "14_1": [
        {"TSM": 32, "TSN": 32, "TSK": 16},
        {"TSM": 96, "TSN": 48, "TSK": 64},
        {"TSM": 8, "TSN": 8, "TSK": 8},
    ],
    "14_3": [((64, 64, 64), {"TSM": 30}), ((64, 64), {}), ((64, 64, 64), {"TSX": 8})],
    "15_3": [{"WPTM": 8}, {"WPTM": 4, "WPTN": 4}, {"WPTM": 4, "WPTN": 4, "TSK": 32}],
    "16_3": [{"STAGES": 2}, {"STAGES": 5}, {"TSN": 256}],
    "17_3": [
        lambda tile, rows, columns: (tile % rows, tile // rows),
        lambda tile, rows, columns: (tile // columns, tile // columns),
        lambda tile, rows, columns: (tile, 0),
    ],
    "18_2": [
        lambda x: (tf32.cut(x), tf32.cut(x - tf32.cut(x))),
        lambda x: (tf32.nearest(x), x - tf32.nearest(x)),
        lambda x: (tf32.nearest(x), 0 * x),
    ],
    "20_3": [sum, lambda parts: parts[0], lambda parts: parts],
    "21_3": [
        (11, {}, ""),
        (11, {"RX": 7}, body(11)),
        (2, {}, body(2, ("acc +=", "acc -="))),
    ],
}


def answer(number: str, text: str, cell: str):
    """What the check of an exercise is called with, for the text of a solution or a stub."""
    if not cell.startswith("%%gemm"):
        given = []
        exec(text, {"checks": SimpleNamespace(**{f"check_{number}": given.append})})
        return given[0]
    kernel, part = re.match(
        r'%%gemm (\d+)(?: part="?([^"=\n]+?)"?(?: \w+=.*)?$)?', cell, re.M
    ).groups()
    whole = sources.read(catalog[int(kernel)].file)
    return whole.replace(sources.part(whole, part), text.rstrip("\n")) if part else text


def wrong_answers(number: str, check) -> list:
    """None at all, typical ones, and for a text with a hole the hole as it is in the chapter."""
    if number not in CHANGES:
        return [None, *(WRONG.get(number) or check.typical)]
    (text,) = (FOLDER / "text").glob(f"{number[:2]}_*.md")
    cell = tagged(rebuild.from_text(text), "exercise")[number].source
    (file,) = (FOLDER / "solutions").glob(f"{number}.*")
    texts = [cell.partition("\n")[2] if cell.startswith("%%gemm") else cell]
    for changes in CHANGES[number]:
        changed = file.read_text(encoding="utf-8")
        for old, new in changes:
            assert old in changed, old
            changed = changed.replace(old, new)
        texts.append(changed)
    return [None, *(answer(number, text, cell) for text in texts), *WRONG.get(number, ())]


@pytest.mark.parametrize(
    ("number", "answer", "words"),
    [
        ("01_1", "128", "no quotes"),
        ("06_1", lambda *case: print(1.0), "`return`"),
        ("06_1", lambda *case: ..., "yet"),
        ("06_1", lambda m: m, "raises TypeError"),
    ],
)
def test_an_answer_that_is_none_gets_a_hint_that_says_so(number, answer, words):
    verdict = getattr(checks, f"check_{number}")(answer)
    assert not verdict and words in str(verdict)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", NUMBERS)
def test_checks_say_why_typical_answers_are_wrong(number):
    """Each gets its own hint. Checks of numbers and functions know their typical answers."""
    check = getattr(checks, f"check_{number}")
    verdicts = [check(answer) for answer in wrong_answers(number, check)]
    hints = [str(verdict) for verdict in verdicts]
    assert not any(verdicts) and all("Not yet" in hint and len(hint) > 30 for hint in hints), hints
    assert len(set(hints)) == len(hints) >= 3, hints
