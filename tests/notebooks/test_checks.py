"""The checks of the exercises: each typical wrong answer gets a hint of its own."""

import importlib.util
import itertools

import pytest
from books import FOLDER, body

from gemmlab.catalog import sources
from lessons import tf32

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

WRONG = {
    "00_3": ["k*N + n", "n*N + k", "n*K + "],
    "01_2": [
        body(1, ("    for (int k = 0; ... }\n", "")),
        body(1),
        four_sums(("    acc = (sums[0] + sums[1]) + (sums[2] + sums[3]);\n", "")),
        four_sums((REST, "")),
    ],
    "01_3": [
        body(1),
        body(1, ("const int m = get_global_id(0);", "const int m = get_global_id(1);")),
        body(1, ("// accumulators\n", "__local float shared[TS];\n\n    // accumulators\n")),
        "no kernel at all",
    ],
    "02_2": [
        body(2, *HEART, ("Btile[tm][tn] = B[(n0 + tn)*K + k0 + tm];", ""), (MULTIPLY, "")),
        body(2),
        body(2, ("Btile[tn][k]", "Btile[k][tn]")),
        body(2, *HEART, ("complete\n        barrier(CLK_LOCAL_MEM_FENCE);\n", "complete\n")),
    ],
    "02_3": [
        body(2),
        body(2, ("any more\n        barrier(CLK_LOCAL_MEM_FENCE);\n", "any more\n")),
        "no kernel",
    ],
    "03_2": [
        body(3, ("            const float a = Atile[k][tm];    // loaded ... }\n", "")),
        body(3),
        body(3, ("Btile[tn + j*RTS][k]", "Btile[tn*WPT + j][k]")),
        body(3, *NEIGHBOURS, ("acc[j] += a * Btile", "acc[0] = a * Btile")),
    ],
    "03_3": [{"WPT": 7}, {"TS": 64, "WPT": 2}, {"TS": 128, "WPT": 128}],
    "04_2": [
        body(4, ("        for (int k = 0; k < TSV; k++) { ... \n        }\n", "")),
        body(4),
        body(4, ("acc += Atile[k*WIDTH + w][tm] * LANE(b, w);", FUSED.replace("acc = ", ""))),
        body(4, ("acc += Atile[k*WIDTH + w][tm] * LANE(b, w);", FUSED.replace("k*WIDTH + w", "k"))),
    ],
    "04_3": [
        lambda rate, choices: {name: values[0] for name, values in choices.items()},
        every_setting,
        lambda rate, choices: [32, 4],
    ],
    "05_2": [
        body(5, EMPTY_LOAD),
        body(5, ("Btile[tm][j] = B", "// Btile")),
        body(5, ("B[(k0 + j)*N + n0 + tm]", "B[(n0 + j)*K + k0 + tm]")),
        body(5, ("B[(k0 + j)*N", "B[(k0 + j)*M")),
    ],
    "05_3": ["n*TSK + k", "k*TS + n", "n*TSK + k/2"],
    "06_2": [
        body(6, EMPTY_COMPUTE),
        body(6, ("Atile[k][tm + i*RTSM]", "Atile[k][tm*WPTM + i]")),
        body(6, ("Btile[tn + j*RTSN][k]", "Btile[tn*WPTN + j][k]")),
        body(6, ("Atile[k][tm + i*RTSM]", "Atile[k][tm + i*RTSN]")),
    ],
    "06_3": [{}, {"WPTM": 2, "WPTN": 2}, {"WPTM": 4, "WPTN": 4}],
    "07_2": [
        body(7, EMPTY_LOAD),
        body(7, ("Btile[j][i] = B", "// Btile")),
        body(7, ("e0 < TSK*TSM/WIDTH;", "e0 < TSK*TSM;")),
        body(7, *((f"(e0 + tid) {op} (TSM/WIDTH)", f"(e0 + tid) {op} TSM") for op in "%/")),
    ],
    "07_3": [{"TSM": 64, "TSN": 64}, {"TSM": 32}, {"TSK": 7}],
    "08_2": [
        body(3),
        body(3, ("Atile[j][tm] = A", "async_work_group_copy(&Atile[j][0], A, TS, 0); // A")),
        body(3, COPY[0], (COPY[1][0], COPY[1][1].replace("TS, e)", "TS, 0)"))),
        body(3, COPY[0], (COPY[1][0], COPY[1][1].replace("(k0 + k)*M", "(k0 + k)*K"))),
    ],
    "08_3": [{}, {"SHUFFLE": 2, "TSM": 160}, {"TSK": 7}],
    "09_2": [
        body(9, EMPTY_NEXT),
        body(9, *((f"{x}tile[next][j][i] =", f"{x}tile[now][j][i] =") for x in "AB")),
        body(9, ("(k1 + j)", "(k0 + j)")),
        body(9, ("if (k1 < K) {", "{")),
    ],
    "09_3": [
        ("// your lines", "// your lines"),
        (EARLY, ""),
        (EARLY.replace("a_next[l] =", "Atile[next][0][l] ="), LATE),
        (EARLY, LATE.replace("b_next[l]", "B[l]")),
    ],
    "10_2": [
        filled("10_2", NEXT, ("Atile[next][j][i] =", "")),
        filled("10_2", NEXT, ("Btile[next][j][i] =", "")),
        filled("10_2", NEXT, ("(TSN/WIDTH)", "(TSM/WIDTH)")),
        filled("10_2", NEXT, ("(k1 + j)", "j")),
    ],
    "10_3": [{}, {"TSM": 60}, {"TSM": 256, "TSN": 256}],
    "11_2": [
        body(11),
        body(11, ("// store", "vload4(")),
        filled("11_2", "compute", ("four[j]", "four[0]")),
        filled("11_2", "compute", ("&B[k*N + n]", "&B[n]")),
    ],
    "11_3": [{"RX": 7}, {"WIDTH": 3}, "8 x 8"],
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
    "12_3": [(100, 100, 100), (1, 64, 31), (64, 64)],
    "13_2": [
        body(13),
        filled(
            "13_2", NEXT, ("vload4(0, &B[(k1 + j)*N + n0 + i])", "(float4)(B[(k1 + j)*N + n0 + i])")
        ),
        filled("13_2", NEXT, ("4)*4;", "4);")),
        filled("13_2", NEXT, ("k1 + j < K ? ", ""), (" : (float4)(0.0f)", "")),
    ],
    "13_3": [lambda size: "pad", lambda size: "shift", lambda size: "tile"],
    "14_1": [
        {"TSM": 32, "TSN": 32, "TSK": 16},
        {"TSM": 96, "TSN": 48, "TSK": 64},
        {"TSM": 8, "TSN": 8, "TSK": 8},
    ],
    "14_2": [
        "// store",
        STORE.format("sum"),
        STORE.format("fmin(sum, 0.0f)"),
        STORE.format("fmax(alpha*acc[j][i], 0.0f)"),
    ],
    "14_3": [((64, 64, 64), {"TSM": 30}), ((64, 64), {}), ((64, 64, 64), {"TSX": 8})],
    "15_2": [
        body(15, ("*(floatL*)&a[i] = *(const __local floatL*)&Atile", "a[i] = Atile")),
        body(15, ("*(floatL*)&b[j] = *(const __local floatL*)&Btile", "b[j] = Btile")),
        body(15, ("&Atile[now][k][tm + i*WARPM]", "&Atile[now][k][tm + i]")),
        body(15, ("&Btile[now][k][tn + j*WARPN]", "&Btile[now][k][tn + j]")),
    ],
    "15_3": [{"WPTM": 8}, {"WPTM": 4, "WPTN": 4}, {"WPTM": 4, "WPTN": 4, "TSK": 32}],
    "16_2": [
        body(16, ("            FRAGMENT((k + 1)%TSK, (k + 1)%2)\n", "")),
        body(16, (WAIT, "barrier")),
        body(16, (WAIT, "AWAIT(0); barrier")),
        body(16, (WAIT, "AWAIT(STAGES - 2); // barrier")),
    ],
    "16_3": [{"STAGES": 2}, {"STAGES": 5}, {"TSN": 256}],
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
    ],
    "18_2": [
        lambda x: (tf32.cut(x), tf32.cut(x - tf32.cut(x))),
        lambda x: (tf32.nearest(x), x - tf32.nearest(x)),
        lambda x: (tf32.nearest(x), 0 * x),
    ],
    "18_3": [
        (TF32_PARTS, THREE),
        (TF32_PARTS.replace("0xffffe000", "0xffff0000"), SIX),
        (BFLOAT_PARTS, THREE),
        (BFLOAT_PARTS, SIX.replace("MIDDLE(a)*MIDDLE(b) + ", "")),
    ],
    "19_3": [
        "for (int l = 0; l < LPTB; l++) { *(__local float4*)Bbig[to][kb][ib + l*NB] = b[l]; }",
        SPLIT.replace("Bsmall", "Bbig").format("big", "big"),
        SPLIT.format("big", "b[l]"),
        SPLIT.replace("ib + l*NB", "ib + l").format("big", "b[l] - big"),
    ],
    "21_3": [
        (11, {}, ""),
        (11, {"RX": 7}, body(11)),
        (11, {}, "no kernel"),
        (2, {}, body(2, ("acc +=", "acc -="))),
    ],
    "20_3": [sum, lambda parts: parts[0], lambda parts: parts],
}


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
        ("00_2", lambda m: m, "raises TypeError"),
    ],
)
def test_an_answer_that_is_none_gets_a_hint_that_says_so(checks, number, answer, words):
    verdict = getattr(checks, f"check_{number}")(answer)
    assert not verdict and words in str(verdict)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", sorted(p.stem for p in (FOLDER / "solutions").iterdir()))
def test_checks_say_why_typical_answers_are_wrong(checks, number):
    """Each typical wrong answer, and none at all, gets its own hint. Checks of numbers and
    functions know theirs.
    """
    check = getattr(checks, f"check_{number}")
    verdicts = [check(answer) for answer in [None, *(WRONG.get(number) or check.typical)]]
    hints = [str(verdict) for verdict in verdicts]
    assert not any(verdicts) and all("Not yet" in hint and len(hint) > 30 for hint in hints), hints
    assert len(set(hints)) == len(hints) >= 3
