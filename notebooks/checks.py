"""The checks of the exercises. Each shows a verdict and returns True or False; none raises."""

import math
import re

import numpy as np

import gemmlab
from gemmlab import check, model, simt
from gemmlab.catalog import sources
from gemmlab.generate import Schedule, tiles, write
from gemmlab.measurement import landscape, records
from gemmlab.simt import views
from gemmlab.widgets import board
from lessons import cluster, divergence, edges, rates, schedules, selection, tf32


class _Missing(Exception):
    """There is no answer; by default because the stub is still there."""

    def __init__(self, words: str = "there is no answer in the cell yet."):
        super().__init__(words)


def _ask(function, *case):
    """What a learner's function gives; a stub returns `...`."""
    given = function(*case)
    if given is ...:
        raise _Missing
    if given is None:
        raise _Missing("your function returns nothing. Did you mean `return` where it prints?")
    return given


def _exercise(check) -> str:
    """The number of the exercise that a check of this module is of, such as "02.3"."""
    name = next(name for name, value in globals().items() if value is check)
    return name.removeprefix("check_").replace("_", ".")


def _safely(check):
    """Make a check that never raises: an answer that raises is wrong, and its error is the hint.
    What is solved goes into `Progress`.
    """

    def checked(answer):
        try:
            if answer is None:
                raise _Missing
            if isinstance(answer, str) and answer.strip().isdigit():
                raise _Missing(f"{answer!r} is a text; a number has no quotes around it.")
            verdict = check(answer)
            if verdict:
                gemmlab.Progress().note(_exercise(checked), True)
            return verdict
        except _Missing as missing:
            return gemmlab.verdict(False, "", str(missing))
        except Exception as error:
            return gemmlab.verdict(False, "", f"your answer raises {type(error).__name__}: {error}")

    return checked


def _hint(answer, hints: dict, otherwise: str) -> str:
    """The hint for a typical wrong answer."""
    return next((hint for value, hint in hints.items() if answer == value), otherwise)


def _right_everywhere(kernel: int, source: str, sizes, params=None) -> str:
    """Run a kernel's text in the child process at several sizes: "" if it is right, else what went
    wrong.

    A text that has a race is not right, even if the device gets it right by luck.
    """
    for m, n, k in sizes:  # the source begins in the cell's second line
        outcome = gemmlab.trial(kernel, m, n, k, source=f"\n{source}", params=params, repeats=1)
        if not outcome.ok or outcome.seen:  # what the simulator could not read may have a race
            return f"at M={m}, N={n}, K={k}: {outcome.verdict}"
    return ""


@_safely
def check_00_1(answer):
    m, n, k = 300, 200, 100
    hints = {
        m * n * k: "that counts the terms; each is a multiplication and an addition.",
        m
        * n
        * (2 * k - 1): "close: that leaves out the first addition, to zero; the field counts it.",
        m * n: "that is the number of elements of C; how much work is one of them?",
    }
    right = "M N elements of C, K terms each, two operations a term."
    return gemmlab.verdict(
        answer == model.flops(m, n, k),
        right,
        _hint(answer, hints, "count the terms of one element."),
    )


@_safely
def check_00_2(gflops):
    cases = [(100, 200, 300, 0.5), (64, 64, 64, 1e-3), (4096, 4096, 4096, 0.01)]
    got = [_ask(gflops, *case) / model.gflops(*case) for case in cases]
    hints = {
        0.5: "half of what it should be: a term is two operations.",
        1e9: "that is FLOPS; giga is 10^9.",
    }
    hint = _hint(round(got[0], 6), hints, f"for {cases[0]} it gives {gflops(*cases[0])!r}.")
    return gemmlab.verdict(
        all(abs(g - 1) < 1e-6 for g in got), "2 M N K operations over the time, in 10^9.", hint
    )


@_safely
def check_00_3(place):
    source = sources.read("01_naive.cl").replace("B[n*K + k]", f"B[{place}]")
    wrong = _right_everywhere(1, source, [(64, 64, 64), (32, 64, 96), (64, 32, 7)])
    wrong = wrong.partition("; line")[0]  # the reason that follows is the answer
    if "M=32" in wrong or "M=64, N=32" in wrong:
        wrong = (
            f"right for square matrices, but {wrong}. Which length lies between two columns of B?"
        )
    return gemmlab.verdict(not wrong, "B is K x N, so column n begins at n*K.", wrong)


@_safely
def check_01_1(answer):
    ts, k = 32, 64
    hints = {
        2 * k: "that is one work-item; a work-group has TS x TS of them.",
        ts * ts * k: "that is A alone; B is read as often.",
        2
        * ts
        * k: "that many different floats there are; the kernel asks for them more than once.",
        4 * 2 * ts * ts * k: "those are bytes; floats were asked for.",
    }
    ok = answer == model.loads(1, {"TS": ts})["global"] * ts * ts * k
    return gemmlab.verdict(
        ok,
        "two loads a term, K terms, TS x TS work-items.",
        _hint(
            answer, hints, "start with one work-item: how many floats does it load for one term?"
        ),
    )


def _number(right, because: str, hints: dict, otherwise: str):
    """The check of a number to read off. `right` is called, so that formulas give the answer."""

    @_safely
    def checked(answer):
        ok = isinstance(answer, (int, float)) and abs(answer - right()) <= 1e-6 * abs(right())
        return gemmlab.verdict(ok, because, _hint(answer, hints, otherwise))

    return checked


def _function(right, cases, because: str, typical: list, otherwise: str = ""):
    """The check of a function: `typical` are (wrong function, hint) for answers that agree with it
    everywhere.
    """

    @_safely
    def checked(answer):
        got = [_ask(answer, *case) for case in cases]

        def same(other):
            wanted = [other(*case) for case in cases]
            return all(_close(g, w) for g, w in zip(got, wanted, strict=True))

        case, given = next(
            ((c, g) for c, g in zip(cases, got, strict=True) if not _close(g, right(*c))),
            (cases[0], 0),
        )
        hint = next((hint for wrong, hint in typical if same(wrong)), otherwise)
        said = f"for {', '.join(map(str, case))} it gives {given}, expected {right(*case)}. {hint}"
        return gemmlab.verdict(same(right), because, said.strip())

    return checked


def _close(given, wanted) -> bool:
    if isinstance(wanted, (tuple, list)):
        return len(given) == len(wanted) and all(map(_close, given, wanted))
    return abs(given - wanted) <= 1e-9 * max(1, abs(wanted))


def _kernel(
    number: int | str, sizes, wanted: list, because: str, params=None, seen=None, beside=None
):
    """The check of a changed kernel: its code must match each pattern of `wanted`, (pattern, hint),
    and it must be right.

    `seen` are hints by words of the verdict on a wrong kernel. A right one is timed, alternating
    with the kernel `beside`.
    """

    @_safely
    def checked(source):
        code = re.sub(r"//.*", "", source)
        for pattern, hint in wanted:
            if not re.search(pattern, code):
                return gemmlab.verdict(False, "", hint)
        wrong = _right_everywhere(number, source, sizes, params)
        hint = next((hint for words, hint in (seen or {}).items() if words in wrong), "")
        reached = _beside(number, source, params, beside) if beside and not wrong else ""
        return gemmlab.verdict(
            not wrong, f"{because} {reached}".strip(), f"{wrong}. {hint}" if hint else wrong
        )

    return checked


def _hole(number: int, sizes, must: list, typical: list, because: str, params: dict):
    """The check of a hole in a kernel: see `_grade`."""

    @_safely
    def checked(source):
        return _grade(source, number, sizes, must, typical, because, params)

    return checked


def _grade(source: str, number: int, sizes, must: list, typical: list, because: str, params: dict):
    """The verdict on a kernel with a hole, in steps: it compiles, is right and has no race; then
    how fast it is.

    Args:
        source: the kernel's text.
        number, sizes, params: the kernel, the sizes at which it must be right, and its parameters.
        must: (pattern, hint): what the text has to contain, whatever it computes.
        typical: (pattern, hint) for texts that are wrong: the first pattern that matches says why.
        because: what a right text shows.
    """
    code = re.sub(r"//.*", "", source)
    missing = next((hint for pattern, hint in must if not re.search(pattern, code)), None)
    if missing:
        return gemmlab.verdict(False, "", missing)
    wrong = _right_everywhere(number, source, sizes, params)
    if wrong:
        hint = next((hint for pattern, hint in typical if re.search(pattern, code)), "")
        return gemmlab.verdict(False, "", f"{wrong}. {hint}".strip())
    return gemmlab.verdict(True, f"{because} {_beside(number, source, params)}", "")


def _beside(
    number: int | str, source: str, params: dict | None, other: int | str | None = None
) -> str:
    """How fast a right text is, compared with the original kernel or with another one, as a
    sentence.
    """
    size = 256 if gemmlab.default_device().kind == "CPU" else 2048
    other = other or number
    texts = {
        "your text": {"kernel": number, "source": f"\n{source}", "params": params},
        f"kernel {other}": {"kernel": other, "params": params if other == number else None},
    }
    runs: dict[str, list] = {name: [] for name in texts}
    for _ in range(3):  # alternating: whatever else the machine does hits both
        for name, text in texts.items():
            runs[name].append(gemmlab.trial(m=size, repeats=5, **text).result)
    if not all(all(found) for found in runs.values()):
        return "It compiles, is right, and has no race; how fast it is could not be measured."
    sentence = records.distinguish(
        {name: records.pooled(found) for name, found in runs.items()}
    ).splitlines()[-1]
    return f"It compiles, is right, and has no race. {sentence[0].upper()}{sentence[1:]}"


check_01_2 = _kernel(
    1,
    [(32, 32, 32), (32, 64, 7), (64, 32, 1)],
    [
        (r"\b(for|while)\b", "there is no loop over k yet."),
        (r"\bB\s*\[", "nothing is multiplied yet: each term needs an element of A and one of B."),
        (
            r"(?s)\[\s*4\s*\]|float4|(\w+\s*\+=.*){4}",
            "there is still one sum. Declare four of them, and give each every fourth term.",
        ),
        (
            r"(?<!float )\bacc\s*\+?=",
            "acc is what is stored: put the four sums into it after the loop.",
        ),
    ],
    "four chains of additions in place of one.",
    {"TS": 32},
    {
        "K=7": (
            "It is right where K is a multiple of 4. Else up to three terms are left after the "
            "last whole round."
        ),
        "K=1": "It is right for larger K. What happens if there is no whole round of four terms?",
        "elements are off": "Is every term in one of the four sums, and every sum in acc?",
    },
    beside=1,
)


@_safely
def check_01_3(source):
    code = re.sub(r"//.*", "", source)
    if "".join(code.split()) == "".join(
        re.sub(r"//.*", "", sources.body(sources.read("01_naive.cl"))).split()
    ):
        return gemmlab.verdict(False, "", "that is kernel 1 as it was.")
    if re.search(r"\b(__)?local\b", code):
        return gemmlab.verdict(
            False, "", "local memory is for chapter 02; here each work-item is on its own."
        )
    wrong = _right_everywhere(1, source, [(32, 32, 32), (64, 32, 40), (32, 96, 5)])
    return gemmlab.verdict(not wrong, "" if wrong else _beside(1, source, None, 1), wrong)


check_02_1 = _number(
    lambda: 2 * 64**3 // 16,
    "2 M N K / TS: each float of a tile is fetched once and used TS times.",
    {
        2 * 64**3: "that is kernel 1; here each float of a tile serves TS work-items.",
        64**3 // 16: "that is one of the two matrices.",
        2 * 64 * 64: "so many different floats there are; each is fetched by several work-groups.",
        4 * 2 * 64**3 // 16: "those are bytes; floats were asked for.",
    },
    "start from kernel 1's 2 M N K, and ask how often a fetched float is used.",
)
check_02_2 = _kernel(
    2,
    [(32, 32, 32), (32, 48, 16), (16, 32, 64)],
    [
        (
            r"Atile\s*\[[^\]]*\]\s*\[[^\]]*\]\s*=[^=]",
            "nobody stores to Atile yet: one element per work-item.",
        ),
        (
            r"Btile\s*\[[^\]]*\]\s*\[[^\]]*\]\s*=[^=]",
            "nobody stores to Btile yet: one element per work-item.",
        ),
        (r"\bacc\s*\+=|\bacc\s*=\s*(acc|fma|mad)\b", "nothing is added to acc yet."),
        (
            r"Btile\s*\[\s*\w+\s*\]\s*\[\s*tn\s*\](?!\s*=[^=])",
            "the tile of B lies as [k][n] here: step k of this work-item's column is Btile[k][tn].",
        ),
        (
            r"(?s)barrier\s*\(.*barrier\s*\(",
            "who says that the tiles are complete when the first work-item reads them? Only a "
            "barrier does.",
        ),
    ],
    "each element is fetched once by the group; row tm that a work-item fetched of B is stored as "
    "row tm.",
    {"TS": 16},
    {
        "no barrier between": (
            "Two work-items meet there: the barrier stands between the stores and the loop."
        ),
        "elements are off": (
            "The work-item that fetched row k0 + tm and column n0 + tn of B has step tm of column "
            "tn."
        ),
    },
    beside=2,
)


@_safely
def check_02_3(source):
    wrong = _right_everywhere(2, source, [(32, 32, 64), (32, 48, 16), (16, 32, 48)], {"TS": 16})
    if wrong:
        hint = (
            ". Two tiles in turn: which one may nobody read any more?"
            if "no barrier between" in wrong
            else ""
        )
        return gemmlab.verdict(False, "", wrong + hint)
    groups, tiles = 4, 8
    passed = gemmlab.simulate(2, 32, 32, 16 * tiles, {"TS": 16}, source).counts.barriers // groups
    words = f"{passed} barriers for {tiles} tiles."
    if passed > tiles + 1:
        return gemmlab.verdict(
            False, "", f"it is right, with {words} Give the next tiles a place of their own."
        )
    return gemmlab.verdict(True, f"{words} {_beside(2, source, {'TS': 16}, 2)}", "")


check_03_1 = _function(
    lambda p, q: (p + q) / (p * q),
    [(1, 1), (1, 8), (4, 4), (8, 2)],
    "(P + Q)/(P Q) = 1/P + 1/Q.",
    [
        (lambda p, q: p * q / (p + q), "That is the other way up: multiply-adds per load."),
        (lambda p, q: p + q, "Those are the loads of a step; how many multiply-adds share them?"),
        (lambda p, q: 1 + 1 / q, "That is kernel 3, with P = 1."),
        (lambda p, q: 2 / (p * q), "An element of A serves Q multiply-adds, one of B serves P."),
    ],
)
_NEIGHBOURS = r"(tn\s*\*\s*WPT|WPT\s*\*\s*tn)"
check_03_2 = _kernel(
    3,
    [(32, 32, 32), (32, 64, 32), (64, 32, 96)],
    [
        (
            r"Atile\s*\[[^\]]*\]\s*\[\s*tm\s*\](?!\s*=[^=])",
            "nobody reads A's tile yet: row tm, at step k.",
        ),
        (
            r"acc\s*\[[^\]]*\]\s*(\+=|=\s*(acc|fma|mad)\b)",
            "nothing is added to the sums yet: acc[j], for all j.",
        ),
        (
            rf"Btile\s*\[[^\]]*{_NEIGHBOURS}",
            "the columns are neighbours here: sum j has column tn*WPT + j of the tile.",
        ),
        (r"\bC\s*\[[^;]*\]\s*=[^=]", "nothing is stored to C yet."),
        (
            rf"\bC\s*\[[^;]*{_NEIGHBOURS}",
            "a sum is stored where it was computed: column n0 + tn*WPT + j of C.",
        ),
    ],
    "sum j belongs to column tn*WPT + j of the tile.",
    {"TS": 32, "WPT": 8},
    {
        "elements are off": (
            "Each sum needs its own column of B, at every step k, and A's element at row tm."
        ),
        "was never written": (
            "Some elements of C are stored by nobody: there are WPT of them per work-item."
        ),
    },
    beside=3,
)


@_safely
def check_03_3(settings):
    spec = gemmlab.catalog[3]
    params = spec.complete(settings)
    spec.validate(params)  # raises where a rule is broken
    items, memory = params["TS"] ** 2 // params["WPT"], spec.local_memory(params)
    if items > 1024:
        return gemmlab.verdict(
            False, "", f"that makes {items:,} work-items per group; a device allows 1,024."
        )
    if memory > 48 * 1024:
        return gemmlab.verdict(
            False, "", f"its tiles take {memory:,} bytes of local memory; there are {48 * 1024:,}."
        )
    roof = model.ceilings(3, params, model.H200)[0]
    words = f"{roof.resource} allows {roof.share:.1%}."
    hint = "Which of the loads become fewer with WPT, and what does TS still save?"
    right = f"{words} B's load, one per multiply-add, keeps every setting below 25 %."
    return gemmlab.verdict(roof.share >= 0.22, right, f"{words} {hint}")


check_04_1 = _number(
    lambda: 32 * 16 // 32,
    "512 bytes side by side are 16 segments.",
    {
        4: "that is a float for each lane; here it is a float4.",
        32: "two lanes share a segment of 32 bytes.",
        64: "a segment has 32 bytes, not 8.",
        512: "those are the bytes; a segment has 32 of them.",
    },
    "how many bytes does the warp move?",
)
check_04_2 = _kernel(
    4,
    [(32, 32, 32), (32, 64, 96), (64, 32, 32)],
    [
        (
            r"\bAtile\s*\[[^\]]*\]\s*\[\s*tm\s*\](?!\s*=[^=])",
            "nobody reads A's tile yet: vector tm, at step k.",
        ),
        (
            r"LANE\s*\((?!vector)",
            "a vector of B holds WIDTH steps of k: LANE(b, w) is step w of vector b.",
        ),
        (r"\bfma\s*\(", "there is no call of fma in the kernel yet."),
        (r"acc\s*=\s*fma\s*\(", "fma returns the new sum: assign it, acc = fma(...)."),
    ],
    "one rounding instead of two. A compiler may have used this instruction before; the times "
    "tell.",
    {"TS": 32, "WIDTH": 4},
    {
        "elements are off": (
            "Vector k of Btile[tn] holds WIDTH steps, from k*WIDTH on: which rows of Atile are "
            "those?"
        )
    },
    beside=4,
)


@_safely
def check_04_3(search):
    most, found = 16, landscape.recorded()[0]
    words = []
    for kernel in (4, 3):
        tried = {}

        def rate(settings, kernel=kernel, tried=tried):
            record = found.rate(kernel, settings)
            tried[tuple(sorted(settings.items()))] = record.gflops if record else 0.0
            return tried[tuple(sorted(settings.items()))]

        best = _ask(search, rate, {p.name: p.choices for p in gemmlab.catalog[kernel].params})
        if not isinstance(best, dict):
            return gemmlab.verdict(
                False, "", f"give the settings as a dictionary, not as a {type(best).__name__}."
            )
        many, share = len(tried), rate(best) / found.best(kernel).gflops
        words.append(
            f"kernel {kernel}: {share:.1%} of the best rate, found with {many} measurements"
        )
        if many > most:
            return gemmlab.verdict(False, "", f"{words[-1]}; at most {most} were asked for.")
        if share < 0.95:
            return gemmlab.verdict(
                False, "", f"{words[-1]}; from 95 % on it counts. Vary one parameter at a time."
            )
    return gemmlab.verdict(True, "; ".join(words) + ".", "")


def _on_h200(kernel: int, settings: dict) -> landscape.Record:
    """What an H200 reached with a setting of a kernel, as recorded."""
    params = gemmlab.catalog[kernel].complete(settings)
    gemmlab.catalog[kernel].validate(params)  # raises where a rule is broken
    found, words = (
        landscape.rate(kernel, params),
        " ".join(f"{name}={value}" for name, value in params.items()),
    )
    if found is None:
        raise _Missing(f"{words} is legal but was not recorded; the explorer offers what was.")
    if found.problem:
        raise _Missing(f"{words} does not count: {found.problem}")
    return found


check_05_1 = _function(
    lambda stride: model.stride_turns(stride),
    [(stride,) for stride in (1, 2, 3, 8, 12, 16, 17, 18, 24, 32, 33, 40, 64)],
    "gcd(stride, 32): an odd stride costs one turn.",
    [
        (
            lambda s: 32 // model.stride_turns(s),
            "That is the number of banks that are hit, not of lanes in each.",
        ),
        (lambda s: min(s, 32), "Only what the stride has in common with 32 counts."),
        (lambda s: s, "Only what the stride has in common with 32 counts."),
        (lambda s: s % 32, "Stride 17 leaves 17, and costs one turn."),
    ],
)
check_05_2 = _hole(
    5,
    [(32, 32, 16), (32, 64, 48), (64, 32, 32)],
    [
        (
            r"Atile\[[^;]*\]\s*=[^=]",
            "nothing is stored to Atile yet: Atile[j][tm] = ..., as in kernel 3.",
        ),
        (r"Btile\[[^;]*\]\s*=[^=]", "nothing is stored to Btile yet."),
    ],
    [
        (
            r"\bB\[[^;]*\*\s*K\b",
            "B comes as its transpose: element n of step k lies at B[k*N + n], as element m of A "
            "at A[k*M + m].",
        ),
        (
            r"\bB\[[^;]*\*\s*M\b",
            "A column of A is M floats long, one of the transposed B is N: equal by accident only.",
        ),
        (
            r"Btile\[\s*(?!tm)\w[^]]*\]\[\s*tm\s*\]\s*=",
            "Btile lies as [n][k], and tm counts n in it: the first index.",
        ),
        (
            r"(?s)for \(int j0 = 0;(?!.*j0 \+ tn)",
            "Each column of work-items loads a column of its own: j0 + tn.",
        ),
        (
            r"(?s)\A(?!.*\+= RTS)",
            "The group loads RTS columns at a time, so the loop goes on by RTS.",
        ),
        (r"\bB\[[^;]*\bm0\b", "The tile of B begins at column n0 of C, and not at m0."),
    ],
    "one loop for both tiles, at any depth.",
    {"TS": 32, "TSK": 16, "WPT": 8},
)


@_safely
def check_05_3(place):
    text = sources.read(gemmlab.catalog[5].file).replace("Btile[TS][TSK + PAD]", "Btile[TS*TSK]")
    text = text.replace("Btile[tm][j]", "Btile[place(tm, j)]").replace(
        "Btile[tn + j*RTS][k]", "Btile[place(tn + j*RTS, k)]"
    )
    text = text.replace(
        "__kernel",
        f"inline int place(const int n, const int k) {{ return {place}; }}\n\n__kernel",
        1,
    )
    found = {}
    for depth in (8, 16, 32):
        run = gemmlab.simulate(5, 32, 32, depth, {"TS": 32, "TSK": depth, "WPT": 8}, text)
        if run.findings or not run.ok:
            return gemmlab.verdict(
                False,
                "",
                f"with TSK = {depth}: {run.verdict}. Each element needs a place of its own.",
            )
        stored = views.touches(run, "Btile", store=True)
        if any(set(row // depth) != set(range(32)) for row in stored):
            return gemmlab.verdict(
                False,
                "",
                f"with TSK = {depth} the floats of an n do not stay in a row of their own.",
            )
        found[depth] = max(map(model.turns, stored))
    words = ", ".join(f"{turns} turns with TSK = {depth}" for depth, turns in found.items())
    right = f"a store takes {words}. Nothing was padded."
    hint = "Which rows begin in the same bank? Move their floats by different amounts."
    return gemmlab.verdict(max(found.values()) <= 4, right, f"a store takes {words}. {hint}")


check_06_1 = _function(
    lambda items, groups: min(255, 65536 // (items * groups)),
    [(256, 2), (256, 4), (256, 1), (64, 4), (128, 6), (1024, 2)],
    "all work-items of all groups share the registers, and none can have more than 255.",
    [
        (lambda items, groups: 65536 // (items * groups), "No work-item can have more than 255."),
        (
            lambda items, groups: 65536 / (items * groups),
            "Registers come whole, and none has more than 255.",
        ),
        (lambda items, groups: min(255, 65536 / (items * groups)), "Half a register is none."),
        (lambda items, groups: min(255, 65536 // items), "That is for a single group."),
        (
            lambda items, groups: 2048 // (items * groups),
            "That is the limit by work-items; registers were asked for.",
        ),
    ],
)
check_06_2 = _hole(
    6,
    [(32, 32, 16), (64, 32, 32), (32, 96, 48)],
    [
        (
            r"acc\[j\]\[i\]\s*\+=|acc\[j\]\[i\]\s*=\s*[^0\s]",
            "nothing is multiplied yet: acc[j][i] += a[i] * b[j].",
        )
    ],
    [
        (
            r"tm\s*\*\s*WPTM",
            "The rows of a work-item are not neighbours: they lie RTSM apart, from tm on.",
        ),
        (
            r"tn\s*\*\s*WPTN",
            "The columns of a work-item are not neighbours: they lie RTSN apart, from tn on.",
        ),
        (
            r"\ba\[j\]\s*\*\s*b\[i\]|\bb\[i\]\s*\*\s*a\[j\]",
            "The rows, i, belong to a, and the columns, j, to b.",
        ),
        (r"acc\[j\]\[i\]\s*=\s*a", "A sum is added to: += and not =."),
        (
            r"tm\s*\+\s*i\s*\*\s*RTSN|tn\s*\+\s*j\s*\*\s*RTSM",
            "Rows lie RTSM apart and columns RTSN; equal by accident only.",
        ),
        (r"Btile\[\s*k\s*\]", "Btile lies as [n][k]: k is its second index."),
    ],
    "WPTM + WPTN loads, WPTM WPTN multiply-adds.",
    {"TSM": 32, "TSN": 32, "TSK": 16, "WPTM": 4, "WPTN": 2},
)


@_safely
def check_06_3(settings):
    found, best = _on_h200(6, settings), landscape.rate(6, gemmlab.catalog[6].defaults)
    if found.registers > 64:
        hint = "The sums alone take WPTM WPTN."
        return gemmlab.verdict(
            False, "", f"the compiler gave it {found.registers} registers; at most 64. {hint}"
        )
    share = found.gflops / best.gflops
    words = (
        f"{found.registers} registers, {found.occupancy} % occupancy, {share:.0%} of the default's "
        "rate."
    )
    hint = "Blocks need not be square, and the loads per multiply-add are 1/WPTM + 1/WPTN."
    return gemmlab.verdict(share >= 0.7, words, f"{words} {hint}")


check_07_1 = _function(
    lambda wptm, rtsm: max(1, rtsm * math.gcd(wptm, 32) // 32),
    [(8, 16), (4, 8), (4, 16), (1, 16), (2, 32), (8, 32), (10, 16), (16, 8)],
    "rtsm different words, over the banks that a stride of wptm hits; the other lanes want the "
    "same words.",
    [
        (
            lambda wptm, rtsm: math.gcd(wptm, 32),
            "That is for 32 different words; here rtsm lanes have a tm of their own.",
        ),
        (lambda wptm, rtsm: wptm, "That is for 32 different words, and a stride that divides 32."),
        (lambda wptm, rtsm: rtsm, "That would be if all words lay in one bank."),
        (
            lambda wptm, rtsm: max(1, rtsm * wptm // 32),
            "Only what the stride has in common with 32 counts.",
        ),
        (lambda wptm, rtsm: rtsm * math.gcd(wptm, 32) / 32, "Fewer than one turn there is not."),
    ],
)
check_07_2 = _hole(
    7,
    [(32, 32, 16), (32, 64, 32), (64, 32, 48)],
    [
        (r"Atile\[[^;]*\]\s*=[^=]", "nothing is stored to Atile yet."),
        (r"Btile\[[^;]*\]\s*=[^=]", "nothing is stored to Btile yet."),
    ],
    [
        (r"e0\s*<\s*TSK\s*\*\s*TSM\s*;", "A tile has TSK*TSM/WIDTH vectors; e0 counts those."),
        (r"[%/]\s*\(?TS[MN]\)?\s*;", "A column of the tile has TSM/WIDTH vectors: divide by that."),
        (
            r"\b[AB]\[[^;]*[mn]0\s*\+",
            "The tile begins at vector m0/WIDTH of its column, and n0/WIDTH.",
        ),
        (r"\b[AB]\[[^;]*\*\s*[MN]\b", "A column of A is M floats long, which are M/WIDTH vectors."),
        (
            r"\bB\[[^;]*\bM\b",
            "The columns of the transposed B are N floats long; equal to M by accident only.",
        ),
        (r"Btile\[\s*i\s*\]\[\s*j\s*\]", "Btile lies as [k][n] now, like Atile."),
        (r"(?s)\A(?!.*e0 \+ tid)", "Vector e0 + tid is this work-item's."),
    ],
    "WIDTH floats by each instruction.",
    {"TSM": 32, "TSN": 32, "WPTM": 4, "WPTN": 2, "WIDTH": 2},
)


@_safely
def check_07_3(settings):
    if settings == {}:
        raise _Missing
    rates = {width: _on_h200(7, {**settings, "WIDTH": width}).gflops for width in (1, 2, 4, 8)}
    best = max(rates, key=rates.__getitem__)
    gain = rates[best] / rates[1]
    words = f"WIDTH {best} is {gain:.2f} times as fast as WIDTH 1."
    words = words if best > 1 else "With these settings no WIDTH is faster than WIDTH 1."
    hint = "For which tiles are the loads of vectors many beside the multiply-adds?"
    return gemmlab.verdict(gain >= 1.5, words, f"{words} {hint}")


check_08_1 = _function(
    lambda lane, j, rtsm: lane // rtsm * rtsm + j,
    [(0, 3, 16), (5, 2, 8), (17, 0, 16), (31, 7, 8), (20, 1, 4)],
    "the row's first lane, plus j.",
    [
        (lambda lane, j, rtsm: j, "That is right for the first row of a warp only."),
        (
            lambda lane, j, rtsm: lane + j,
            "Count from the first lane of the row, not from this lane.",
        ),
        (
            lambda lane, j, rtsm: lane % rtsm + j,
            "That is the place in the row; the row's first lane is needed.",
        ),
    ],
)
check_08_2 = _hole(
    3,
    [(32, 32, 32), (64, 32, 96), (32, 96, 64)],
    [
        (r"async_work_group_copy\s*\(", "there is no call of async_work_group_copy yet."),
        (r"wait_group_events\s*\(", "nobody waits for the copies: wait_group_events(1, &e)."),
        (r"Btile\[[^;]*\]\s*=[^=]", "the tile of B is to be loaded as before."),
        (
            r"(?s)\A(?!.*async_work_group_copy\s*\([^;]*,\s*0\s*\)\s*;\s*\}.*wait_group_events\s*\(\s*1\b)",
            "each call with 0 makes a new event, and only the last is waited for: give a call the "
            "event before it.",
        ),
        (
            r"(?s)\A(?!.*async_work_group_copy\s*\([^;]*\bt[mn]\b)",
            "all work-items of the group must make the same call: no tm and no tn in it.",
        ),
    ],
    [
        (r"async_work_group_copy\s*\([^;]*\*\s*K\b", "A column of A is M floats long."),
        (
            r"async_work_group_copy\s*\([^;]*TS\s*\*\s*TS",
            "Only the floats of one column lie side by side: TS per call.",
        ),
    ],
    "a portable request for hardware that copies.",
    {"TS": 32, "WPT": 8},
)


@_safely
def check_08_3(settings):
    plain, shuffled = (_on_h200(8, {**settings, "SHUFFLE": switch}) for switch in (0, 1))
    gain = shuffled.gflops / plain.gflops
    words = f"with shuffles {gain:.2f} times the rate."
    hint = "Small blocks, small tiles, and one thing moved at a time."
    return gemmlab.verdict(gain >= 1.05, words, f"{words} {hint}")


check_09_1 = _function(
    lambda tiles, load, compute, buffers: max(
        s.end for s in schedules.spans(tiles, load, compute, buffers)
    ),
    [(4, 3, 2, 1), (4, 3, 2, 2), (6, 1, 5, 2), (1, 2, 3, 2), (8, 2, 2, 2), (5, 1, 4, 1)],
    "load + (tiles - 1) max(load, compute) + compute with two buffers.",
    [
        (
            lambda tiles, load, compute, buffers: tiles * (load + compute),
            "The second buffer must change something.",
        ),
        (
            lambda tiles, load, compute, buffers: tiles * max(load, compute),
            "The first load stands alone; so does the end.",
        ),
        (
            lambda tiles, load, compute, buffers: (
                tiles * (load + compute) if buffers == 1 else tiles * max(load, compute)
            ),
            "With two buffers the first load and the last computation stand alone.",
        ),
    ],
)
check_09_2 = _hole(
    9,
    [(32, 32, 16), (32, 64, 48), (64, 32, 32)],
    [
        (
            r"(?s)k1 = k0 \+ TSK;.*Atile\[[^;]*\]\s*=[^=]",
            "nothing is stored to a buffer of Atile yet.",
        ),
        (
            r"(?s)k1 = k0 \+ TSK;.*Btile\[[^;]*\]\s*=[^=]",
            "nothing is stored to a buffer of Btile yet.",
        ),
    ],
    [
        (
            r"tile\[\s*now\s*\][^;]*=[^=]",
            "The group computes from buffer `now`: fill buffer `next`.",
        ),
        (
            r"[AB]\[\s*\(?\s*k0\b",
            "The next tiles begin at step k1; from k0 on is what the group computes with.",
        ),
        (
            r"(?s)\A(?!.*if\s*\()",
            "The last round has no next tile: what lies behind A and B must not be read.",
        ),
        (r"k1\s*<=\s*K", "If k1 is K, there is no next tile."),
        (
            r"\bB\[[^;]*\bM\b",
            "The columns of the transposed B are N floats long; equal to M by accident only.",
        ),
        (
            r"\b[AB]\[[^;]*[mn]0\s*\+",
            "The tile begins at vector m0/WIDTH of its column, and n0/WIDTH.",
        ),
    ],
    "the next tile is under way while this one is multiplied.",
    {"TSM": 32, "TSN": 32, "TSK": 16, "WPTM": 4, "WPTN": 4},
)


@_safely
def check_09_3(halves):
    early, late = (re.sub(r"//.*", "", half) for half in halves)
    for half, pattern, wanted, hint in (
        (early, r"\b[AB]\[", True, "early fetches nothing from A and B yet."),
        (
            early,
            r"[AB]tile\[",
            False,
            "early still touches local memory: keep what it fetches in registers.",
        ),
        (
            late,
            r"[AB]tile\[\s*next\b",
            True,
            "late stores nothing to Atile[next] and Btile[next] yet.",
        ),
        (
            late,
            r"\b[AB]\[",
            False,
            "late still reads from A or B; that was to be done before computing.",
        ),
    ):
        if bool(re.search(pattern, half)) != wanted:
            return gemmlab.verdict(False, "", hint)
    text = sources.read(gemmlab.catalog[9].file)
    text = text.replace(sources.part(text, "load: the next"), early).replace(
        "        now = next;", f"{late}\n        now = next;"
    )
    once = [(r"(?s)\A(?!.*if\s*\()", "The last round has no next tile to fetch.")]
    settings = {"TSM": 32, "TSN": 32, "TSK": 16, "WPTM": 4, "WPTN": 4}
    return _grade(
        text,
        9,
        [(32, 32, 16), (32, 64, 48), (64, 32, 32)],
        [],
        once,
        "fetched early, stored late.",
        settings,
    )


def _whole(size, tile):
    return -(-size // tile) * tile


check_10_1 = _function(
    lambda m, n, k, x, y, z: 1 - m * n * k / (_whole(m, x) * _whole(n, y) * _whole(k, z)),
    [(1025, 1025, 1025, 128, 128, 16), (128, 128, 16, 128, 128, 16), (1, 100, 1000, 64, 32, 16)],
    "what is not useful, over all that is computed.",
    [
        (
            lambda m, n, k, x, y, z: _whole(m, x) * _whole(n, y) * _whole(k, z) / (m * n * k) - 1,
            "That is padding over useful work; divide by all the work instead.",
        ),
        (
            lambda m, n, k, x, y, z: m * n * k / (_whole(m, x) * _whole(n, y) * _whole(k, z)),
            "That is the useful share.",
        ),
        (lambda m, n, k, x, y, z: 1 - m * n / (_whole(m, x) * _whole(n, y)), "K is padded too."),
    ],
)


#: The text from where the next tiles are loaded; the code before it loads the first ones in much
#: the same way.
_NEXT = r"(?s)if\s*\(\s*k1\s*<\s*K\s*\)"

check_10_2 = _hole(
    10,
    [(64, 64, 32), (128, 32, 48), (64, 32, 16)],
    [
        (
            _NEXT + r".*Atile\[[^;]*\]\s*=[^=]",
            "nothing is stored to Atile yet: Atile[next][j][i] = ...",
        ),
        (
            _NEXT + r".*Btile\[[^;]*\]\s*=[^=]",
            "nothing is stored to Btile yet, which wants a loop of its own.",
        ),
    ],
    [
        (
            _NEXT + r"(?!.*TSK\s*\*\s*TSN)",
            "The loop over B's tile ends where that has no more vectors: TSK*TSN/WIDTH.",
        ),
        (
            _NEXT + r"(?!.*[%/]\s*\(?\s*TSN)",
            "A column of B's tile has TSN/WIDTH vectors: i and j follow from these.",
        ),
        (
            _NEXT + r".*\b[AB]\[\s*\(?\s*j\b",
            "Step j of the next tiles is step k1 + j of A and of B.",
        ),
        (
            _NEXT + r".*tile\[\s*now\s*\][^;]*=[^=]",
            "The group computes from buffer `now`: fill buffer `next`.",
        ),
        (
            _NEXT + r".*\bB\[[^;]*\bM\b",
            "The columns of the transposed B are N floats long; equal to M by accident only.",
        ),
    ],
    "each tile is walked with its own number of vectors per column.",
    {"TSM": 64, "TSN": 32, "TSK": 16, "WPTM": 4, "WPTN": 4},
)


@_safely
def check_10_3(settings):
    spec = gemmlab.catalog[10]
    params = spec.complete(settings)
    spec.validate(params)  # raises where a rule is broken
    sums, memory = params["WPTM"] * params["WPTN"], spec.local_memory(params)
    if sums > 100:
        return gemmlab.verdict(False, "", f"{sums} sums per work-item; at most 100 are allowed.")
    if memory > 48 * 1024:
        return gemmlab.verdict(
            False, "", f"its tiles take {memory:,} bytes; there are {48 * 1024:,}."
        )
    roof = model.ceilings(10, params, model.H200, 1025)[0]
    words = f"the lowest ceiling at 1025 is {roof.share:.1%}, that of {roof.resource}."
    return gemmlab.verdict(
        roof.share >= 0.66, words, f"{words} Is that because of the tile's size or its blocks?"
    )


check_11_1 = _function(
    lambda rx, ry, width: rx // width * ry + rx // width + 1,
    [(48, 8, 16), (32, 12, 16), (8, 4, 4), (16, 8, 8)],
    "VX RY sums, VX of A, one of B. Which blocks fit into 16 registers, and which into 32?",
    [
        (lambda rx, ry, width: rx // width * ry, "Those are the sums alone."),
        (
            lambda rx, ry, width: rx * ry + rx + 1,
            "That counts floats; a register holds width of them.",
        ),
        (
            lambda rx, ry, width: rx // width * ry + rx // width + ry,
            "One element of B at a time is enough.",
        ),
    ],
)
check_11_2 = _hole(
    11,
    [(64, 32, 16), (64, 64, 7), (128, 32, 33)],
    [
        (r"vload4\s*\(", "there is no vload4 in the kernel yet."),
        (r"(?s)\A(?!.*\(floatX\)\s*\(\s*B(?:_AT\(|\[))", "B is still loaded element by element."),
    ],
    [
        (
            r"(?s)\A(?!.*acc\[[^;]*=[^;]*\ba\[)",
            "Nothing is multiplied yet: acc[j][i] += a[i] * b, for all i and j.",
        ),
        (
            r"vload4\([^;k]*;",
            "The four of step k begin at B[k*N + n]: there is no k in the address.",
        ),
        (
            r"(?s)(\.(x|s0)\b|four\[0\])(?!.*(\.(y|s1)\b|four\[1\]))",
            "The first of the four belongs to column n; column n + j wants the j-th.",
        ),
        (r"acc\[j\]\[i\]\s*=\s*a", "A sum is added to: += and not =."),
    ],
    "one load instruction instead of four. It ties the kernel to RY = 4, though.",
    {"RX": 8, "RY": 4, "WIDTH": 4},
)


@_safely
def check_11_3(settings):
    spec = gemmlab.catalog[11]
    spec.validate(spec.complete(settings))  # raises where a rule is broken
    one = board.attempt(11, settings, sources.read(spec.file))
    words = f"{one.challenge}: {one}"
    return gemmlab.verdict(
        one.share >= 0.1,
        words,
        f"{words}. A tenth or more passes: larger blocks, wider vectors?",
    )


check_12_1 = _function(
    lambda m, n, tile: -(-m // tile) * -(-n // tile) - (m // tile) * (n // tile),
    [(100, 100, 16), (96, 100, 16), (64, 64, 16), (3, 3, 2), (5, 40, 8)],
    "all, less those that lie wholly inside.",
    [
        (lambda m, n, tile: -(-m // tile) * -(-n // tile), "Those are all tiles."),
        (
            lambda m, n, tile: -(-m // tile) + -(-n // tile) - 1,
            "A side that is a multiple of the tile has no tile across its edge.",
        ),
        (lambda m, n, tile: -(-m // tile) + -(-n // tile), "The corner is counted twice."),
    ],
)
check_12_2 = _hole(
    12,
    [(33, 17, 5), (3, 40, 31), (1, 1, 1), (32, 32, 32)],
    [
        (r"Atile\[[^;]*\]\s*=[^=]", "nothing is stored to Atile[j][tm] yet."),
        (r"Btile\[[^;]*\]\s*=[^=]", "nothing is stored to Btile[j][tm] yet."),
        (
            r"\A(?![\s\S]*\?\s*[AB]\[)",
            "A or B is still chosen by a guard: load always, and multiply.",
        ),
    ],
    [
        (
            r"tile\[j\]\[tm\]\s*=\s*(\w+|[AB]\[[^;]*\]);",
            "An element that is loaded a second time counts, unless it is multiplied by 0.0f.",
        ),
        (
            r"(?s)\A(?!.*\bN\s*-\s*1)",
            "For B it is the other way round: is column n0 + j inside N, and row k0 + tm inside K?",
        ),
        (
            r"(?s)\A(?!.*\bM\s*-\s*1)",
            "A load that is always made needs a position that exists: row min(m0 + tm, M - 1).",
        ),
        (
            r"(?s)\A(?!.*\bK\s*-\s*1)",
            "The last tiles may reach beyond K as well: min(k0 + j, K - 1).",
        ),
    ],
    "no lane goes another way. But infinity times zero is not a number: only for finite matrices.",
    {"TS": 16, "WPT": 4},
)


@_safely
def check_12_3(sizes):
    m, n, k = sizes
    if min(m, n, k) < 64:
        return gemmlab.verdict(False, "", f"the smallest of {m}, {n} and {k} is below 64.")
    share = divergence.share(m, n, k, 32)
    counts = {
        x: sum(part.diverging for part in divergence.formula(x, m, n, k, 32).values()) for x in "AB"
    }
    words = f"{share:.1%} of all warp-phases diverge: {counts['A']} in A and {counts['B']} in B."
    hint = "For each of the two: which size decides whether a warp lies across its edge?"
    return gemmlab.verdict(share >= 0.3, words, f"{words} {hint}")


check_13_1 = _function(
    lambda t, m, rows: (min(t * rows, m - rows), min(rows, m - t * rows)),
    [(0, 100, 32), (3, 100, 32), (2, 96, 32), (2, 11, 4)],
    "moved back only if it must, and owning what nobody owned before.",
    [
        (
            lambda t, m, rows: (t * rows, min(rows, m - t * rows)),
            "The last tile would reach beyond the matrix.",
        ),
        (
            lambda t, m, rows: (min(t * rows, m - rows), rows),
            "A moved tile owns less than it computes.",
        ),
        (
            lambda t, m, rows: (m - rows, m - t * rows),
            "Only a tile that would reach beyond is moved.",
        ),
    ],
)
check_13_2 = _hole(
    13,
    [(50, 50, 33), (33, 40, 60), (64, 35, 1)],
    [
        (_NEXT + r".*vload4[^;]*\bA\b", "A is not loaded by vload4 yet."),
        (_NEXT + r".*vload4[^;]*\bB\b", "B is not loaded by vload4 yet."),
    ],
    [
        (
            _NEXT + r".*TSK\s*\*\s*TS[MN]\s*;",
            "A tile has a fourth as many vectors as floats: e0 runs to TSK*TSM/4 and TSK*TSN/4.",
        ),
        (
            _NEXT + r"(?!.*(\*\s*4|4\s*\*))",
            "A vector begins at every fourth row: i is 4 times its number in the column.",
        ),
        (
            _NEXT + r"(?!.*<\s*K\b)",
            "Beyond K the tiles want zeroes, (float4)(0.0f): a step that exists would count twice.",
        ),
        (
            _NEXT + r"(?!.*vstore4.*vstore4)",
            "All four go to the tile: vstore4(a, 0, &Atile[next][j][i]).",
        ),
    ],
    "right for any M and N, though a moved tile begins anywhere.",
    {"TSM": 32, "TSN": 32, "TSK": 16, "WPTM": 4, "WPTN": 2},
)


@_safely
def check_13_3(choose):
    ways = ("pad", "guard", "shift", "split")
    near = [edges.rates(1000, 1100), edges.rates(4000, 4200)]
    rates = {
        size: {way: found[way][size] for way in ways} for found in near for size in found["pad"]
    }
    shares, padded = {}, [rate["pad"] / max(rate.values()) for rate in rates.values()]
    for size, rate in rates.items():
        way = _ask(choose, size)
        if way not in ways:
            return gemmlab.verdict(
                False, "", f"for {size} it gives {way!r}, which is none of {', '.join(ways)}."
            )
        shares[size] = rate[way] / max(rate.values())
    mean, worst = sum(shares.values()) / len(shares), min(shares, key=lambda size: shares[size])
    words = (
        f"{mean:.3f} of the best of the four, on average; always 'pad' is "
        f"{sum(padded) / len(padded):.3f}."
    )
    why = (
        f"It loses most at {worst}, where {choose(worst)!r} reaches {shares[worst]:.2f} of the "
        "best."
    )
    return gemmlab.verdict(mean >= 0.99, words, f"{words} {why}")


@_safely
def check_14_1(tile):
    sizes, others = (480, 336, 160), [{"TSM": 64, "TSN": 64, "TSK": 16}, {"TSM": 32, "TSN": 32}]
    full = tiles.complete_tile(tile)
    for size, name, side in zip(sizes, "MNK", ("TSM", "TSN", "TSK"), strict=True):
        if size % full[side]:
            return gemmlab.verdict(
                False, "", f"{name} = {size} is no multiple of {side} = {full[side]}."
            )
    if full["TSM"] * full["TSN"] < 1000:
        few = model.tile_intensity(full["TSM"], full["TSN"])
        return gemmlab.verdict(
            False, "", f"so small a tile does {few:.0f} operations per element that it loads."
        )
    layouts = (tiles.OperandLayout("N", 0, size) for size in (sizes[0], sizes[2]))
    # raises where parameters contradict each other
    tiles.configure("s", full, sizes, *layouts)
    found = selection.launches(sizes, [{"size": 400, "tiles": [*others, tile]}])
    return gemmlab.verdict(
        len(found) == 1, "one launch, without a single guard.", f"it takes {len(found)} launches."
    )


@_safely
def check_14_2(text):
    m, n, k = 16, 8, 8
    c = Schedule(beta=True, tile=(8, 8), micro_tile=(2, 2), depth=8)
    lines = text.strip("\n").splitlines()
    if "C[" not in re.sub(r"//.*", "", text):
        raise _Missing("nothing is stored to C yet: C[n*M + m] = ...")
    a, b = check.exact_inputs(m, n, k)
    bias = np.linspace(-20, 20, m, dtype=np.float32).round()
    flat = [x.T.ravel() for x in (a, b)]
    args = [m, n, k, 2.0, flat[0], 0, m, flat[1], 0, k, 3.0, bias, 0, 1, 0, simt.Empty(m * n)]
    run = simt.run(write(c, store=lambda c: lines), None, (8, 4), None, args)
    got, plain = run.arrays["C"].reshape(n, m).T, 2 * a @ b + 3 * bias[:, None]
    hints = {
        "nothing happens to what is negative yet.": plain,
        "the bias comes first, and then the 0.": np.maximum(2 * a @ b, 0) + 3 * bias[:, None],
        "that keeps what is negative, and replaces the rest.": np.minimum(plain, 0),
        "where is the bias? beta*C0[...] belongs to the sum.": np.maximum(2 * a @ b, 0),
    }
    hint = next(
        (words for words, wrong in hints.items() if np.array_equal(got, wrong)), run.verdict
    )
    right = run.ok and np.array_equal(got, np.maximum(plain, 0))
    return gemmlab.verdict(
        right, "a variant that costs an instruction for each element of C, and no pass.", hint
    )


@_safely
def check_14_3(answer):
    sizes, params = answer
    device, tile = gemmlab.default_device(), tiles.complete_tile(params)
    m, n, k = sizes
    a, b = check.exact_inputs(n, m, k)
    if not check.exact(gemmlab.matmul(a, b, kernel="family", params=tile, device=device), a, b).ok:
        return gemmlab.verdict(False, "", "with this tile the product is not exact.")
    ways = {"own": {"kernel": "family", "params": tile}, "selected": {"edges": "split"}}
    best = {
        way: max(rates.rate(sizes, device, 0.03, **options) for _ in range(3))
        for way, options in ways.items()
    }
    words = f"{best['own'] / best['selected']:.1f} times as fast as the selection's launches."
    return gemmlab.verdict(best["own"] >= 1.1 * best["selected"], words, words)


check_15_1 = _function(
    lambda p, q, rows: rows * p + 32 // rows * q,
    [(8, 8, 8), (8, 8, 32), (4, 8, 4), (4, 4, 16), (8, 4, 1)],
    "the warp's rows of A and its columns of B. The more square the block, the fewer: 4 or 8 rows "
    "of work-items.",
    [
        (lambda p, q, rows: p + q, "That is what one work-item needs."),
        (
            lambda p, q, rows: 32 * (p + q),
            "So many are asked for; work-items in a row of the block want the same.",
        ),
        (
            lambda p, q, rows: rows * p + rows * q,
            "The block has `rows` rows of work-items, and 32/`rows` columns.",
        ),
        (
            lambda p, q, rows: rows * p * (32 // rows) * q,
            "Those are the elements of C; the floats lie along two sides.",
        ),
    ],
)
check_15_2 = _kernel(
    15,
    [(64, 64, 32), (64, 128, 16)],
    [
        (
            r"\bfloatL\b[\s\S]*float a\[WPTM\][^;]*;[\s\S]*floatL[\s\S]*Atile",
            "a is not loaded as vectors of type floatL yet.",
        ),
        (
            r"float b\[WPTN\][^;]*;[\s\S]*floatL[\s\S]*Btile",
            "b is not loaded as vectors of type floatL yet.",
        ),
        (
            r"\*WARPM\]",
            "the vector that begins with a[i] lies i*WARPM rows below tm: between them are those "
            "of the neighbours.",
        ),
        (r"\*WARPN\]", "the vector that begins with b[j] lies j*WARPN columns behind tn."),
        (
            r"acc\[j\]\[i\]\s*\+=",
            "nothing is multiplied yet: acc[j][i] += a[i] * b[j] for all i and j.",
        ),
    ],
    "a fourth of the loads, and not one float less.",
    {"TSM": 64, "TSN": 64, "TSK": 16, "WPTM": 8, "WPTN": 8},
)


@_safely
def check_15_3(settings):
    params = gemmlab.catalog[15].complete(settings)
    gemmlab.catalog[15].validate(params)  # raises where a rule is broken
    sums = params["WPTM"] * params["WPTN"]
    if sums > 16:
        return gemmlab.verdict(False, "", f"WPTM times WPTN is {sums}; at most 16 were asked for.")
    if gemmlab.catalog[15].local_memory(params) > 48 * 1024:
        return gemmlab.verdict(
            False, "", "an H200 gives a work-group 48 KB of local memory; this takes more."
        )
    roof = model.ceilings(15, params, model.H200)[0]
    words = f"{roof.resource} allows {roof.share:.1%}."
    return gemmlab.verdict(roof.share >= 0.8, words, f"{words} Which of its inputs can you lower?")


check_16_1 = _function(
    lambda m, n, k, stages, lanes: (4 * stages * k * (m + n), (stages - 1) * m * n * k / lanes),
    [(256, 128, 8, 3, 128), (128, 64, 16, 2, 128), (64, 64, 8, 4, 64)],
    "local memory grows with the stages, and so does the time: each tile more is a tile's time "
    "more.",
    [
        (
            lambda m, n, k, stages, lanes: (stages * k * (m + n), (stages - 1) * m * n * k / lanes),
            "Those are floats; a float has four bytes.",
        ),
        (
            lambda m, n, k, stages, lanes: (4 * stages * k * (m + n), stages * m * n * k / lanes),
            "One of the stages is being multiplied: no copy goes there.",
        ),
        (
            lambda m, n, k, stages, lanes: (4 * stages * k * (m + n), (stages - 1) * m * n * k),
            "The chip makes `lanes` multiply-adds per cycle.",
        ),
        (
            lambda m, n, k, stages, lanes: (
                4 * stages * k * m * n,
                (stages - 1) * m * n * k / lanes,
            ),
            "A stage holds TSK columns of TSM floats of A, and as many of TSN floats of B; C is "
            "in registers.",
        ),
    ],
)
check_16_2 = _kernel(
    16,
    [(64, 64, 8), (64, 128, 40), (128, 64, 64)],
    [
        (
            r"FRAGMENT\([^)]*\)[^;]*?\n[\s\S]*acc\[j\]\[i\] \+=[\s\S]*\Z",
            "there is no FRAGMENT in the loop yet.",
        ),
        (
            r"for \(int k = 0; k < TSK[\s\S]*FRAGMENT[\s\S]*k\s*\+\s*1",
            "load the fragments of step k + 1, while those of k are multiplied.",
        ),
        (
            r"for \(int k = 0; k < TSK[\s\S]*AWAIT\(",
            "before the next stage is read, AWAIT its copies. Your CPU would not notice.",
        ),
        (
            r"for \(int k = 0; k < TSK[\s\S]*AWAIT\(\s*STAGES\s*-\s*2\s*\)",
            "the next tile must be there: all batches but the last STAGES - 2.",
        ),
        (
            r"for \(int k = 0; k < TSK[\s\S]*AWAIT\([\s\S]*barrier\(",
            "AWAIT is for a work-item's own copies; a barrier behind it waits for those of all.",
        ),
    ],
    "the fragments of a step are loaded while the step before is multiplied, across tiles, too.",
    {"TSM": 64, "TSN": 64, "TSK": 8, "WPTM": 8},
)


@_safely
def check_16_3(settings):
    spec = gemmlab.catalog[16]
    params = spec.complete(settings)
    spec.validate(params)  # raises where a rule is broken
    memory = spec.local_memory(params)
    if memory > 48 * 1024:
        return gemmlab.verdict(
            False, "", f"its stages take {memory:,} bytes; there are {48 * 1024:,}."
        )
    registers = spec.local_size(params)[0] * (8 * params["WPTM"] + 2 * (params["WPTM"] + 8))
    if registers > 65536:
        return gemmlab.verdict(
            False, "", f"sums and fragments take {registers:,} registers; there are 65,536."
        )
    cycles = (
        (params["STAGES"] - 1) * params["TSM"] * params["TSN"] * params["TSK"] // model.H200.lanes
    )
    words = f"{cycles:,} cycles for a copy."
    return gemmlab.verdict(
        cycles >= 4096, words, f"{words} What does a larger tile cost, and what one more stage?"
    )


def _cut(step, end, steps):
    """A stretch of the line of all steps as (tile, first step, steps), tile by tile."""
    found = []
    while step < end:
        found.append((step // steps, step % steps, min(end - step, steps - step % steps)))
        step += found[-1][2]
    return found


def _length(tiles, steps, groups):
    return -(-tiles * steps // groups)


check_17_1 = _function(
    lambda group, groups, tiles, steps: schedules.pieces(tiles, steps, groups)[group],
    [(0, 4, 3, 8), (1, 4, 3, 8), (2, 4, 5, 7), (3, 4, 5, 7), (5, 8, 2, 16), (1, 3, 3, 4)],
    "from line*g/G to line*(g + 1)/G, cut where a tile ends: split K and Stream-K alike.",
    [
        (
            lambda g, groups, tiles, steps: [
                (tile, 0, steps) for tile in range(tiles * g // groups, tiles * (g + 1) // groups)
            ],
            "Those are whole tiles; the line of steps is cut, not the line of tiles.",
        ),
        (
            lambda g, groups, tiles, steps: [
                divmod(tiles * steps * g // groups, steps)
                + (tiles * steps * (g + 1) // groups - tiles * steps * g // groups,)
            ],
            "A piece ends where its tile ends; what is left belongs to the next tile, from its "
            "step 0 on.",
        ),
        (
            lambda g, groups, tiles, steps: [
                (tile, first, first + number)
                for tile, first, number in _cut(
                    tiles * steps * g // groups, tiles * steps * (g + 1) // groups, steps
                )
            ],
            "The third number is how many steps it does, not where it ends.",
        ),
        (
            lambda g, groups, tiles, steps: _cut(
                g * _length(tiles, steps, groups),
                min(tiles * steps, (g + 1) * _length(tiles, steps, groups)),
                steps,
            ),
            "That rounds every length up, and leaves less to the last group; line*g//G spreads "
            "the rest.",
        ),
    ],
)
check_17_2 = _kernel(
    17,
    [(320, 384, 16), (192, 640, 32), (64, 64, 24)],
    [
        (
            r"band\s*=\s*tile\s*/\s*\(\s*ORDER\s*\*\s*tiles_m\s*\)",
            "a band of ORDER columns holds ORDER*tiles_m tiles: begin with the line of `band`.",
        ),
        (
            r"tiles_n\s*-\s*band",
            "the last band may be narrower: it has min(ORDER, tiles_n - band) columns.",
        ),
        (
            r"m0\s*=\s*\(?\s*tile\s*%\s*\(\s*ORDER\s*\*\s*tiles_m\s*\)\s*/",
            "the number inside the band, divided by its columns, is the row of tiles: m0 has no "
            "`band` any more.",
        ),
    ],
    "along a row of the band, then on to the next row. For equal shares `fixup.cl` would have to "
    "count so, too.",
    {"TSM": 64, "TSN": 64, "ORDER": 4, "GROUPS": 0},
)


@_safely
def check_17_3(place):
    rows, columns, places = 32, 64, 132

    def mean(order):
        """Floats per step of k that a wave wants, on average."""
        waves = [order[first : first + places] for first in range(0, len(order), places)]
        return np.mean(
            [256 * len({m for m, _ in wave}) + 128 * len({n for _, n in wave}) for wave in waves]
        )

    found = [tuple(map(int, _ask(place, tile, rows, columns))) for tile in range(rows * columns)]
    outside = next((p for p in found if not (0 <= p[0] < rows and 0 <= p[1] < columns)), None)
    if outside:
        return gemmlab.verdict(
            False,
            "",
            f"{outside} lies outside C: rows go from 0 to {rows - 1}, columns to {columns - 1}.",
        )
    if len(set(found)) < len(found):
        twice = next(p for i, p in enumerate(found) if p in found[:i])
        return gemmlab.verdict(False, "", f"{twice} is computed twice, and another tile never.")
    bands = mean([schedules.ordered(tile, rows, columns, 8) for tile in range(rows * columns)])
    level = mean(found) / bands
    words = (
        f"a wave wants {mean(found):,.0f} floats per step: {level:.3f} of what bands of eight want."
    )
    return gemmlab.verdict(level <= 1, words, f"{words} Lay the first wave out as a compact block.")


check_18_1 = _function(
    lambda p, rounded: 2.0 ** -(p + 1) if rounded else 2.0**-p,
    [(10, True), (10, False), (7, True), (7, False), (3, True), (3, False), (23, True)],
    "half of the last place that stays, or all of it: rounding is worth a bit.",
    [
        (lambda p, rounded: 2.0**-p, "The nearest number is at most half a step away."),
        (
            lambda p, rounded: 2.0 ** -(p + 1),
            "Cutting goes to the number below, however near the next one is.",
        ),
        (lambda p, rounded: 2.0**-p if rounded else 2.0 ** -(p + 1), "It is the other way round."),
        (lambda p, rounded: 10.0**-p, "Those are decimal places; bits halve."),
        (
            lambda p, rounded: 2.0 ** -(p + 2) if rounded else 2.0 ** -(p + 1),
            "One bit too good: the 1 before the point is no bit after it.",
        ),
    ],
)


@_safely
def check_18_2(split):
    rng = np.random.default_rng(18)
    x = (rng.standard_normal(4096) * 2.0 ** rng.integers(-60, 60, 4096)).astype(np.float32)
    big, small = (np.asarray(part) for part in _ask(split, x.copy()))
    for name, part in (("big", big), ("small", small)):
        if part.dtype != np.float32 or part.shape != x.shape:
            return gemmlab.verdict(
                False,
                "",
                f"{name} is {part.dtype} of shape {part.shape}, not float32 of {x.shape}.",
            )
        if (part.view(np.uint32) & 0x1FFF).any():
            return gemmlab.verdict(
                False, "", f"{name} has bits that TF32 does not: the last 13 must be zero."
            )
    if (np.abs(small) > np.abs(big)).any():
        return gemmlab.verdict(False, "", "give big first: small is what it leaves.")
    worst = float(np.max(np.abs(x - big.astype(np.float64) - small) / np.abs(x)))
    hint = "."
    if not np.array_equal(big, tf32.nearest(x)):
        cut = np.array_equal(big, tf32.cut(x))
        hint = (
            ": big is cut off, not rounded, and that costs a bit."
            if cut
            else ": big is not the nearest TF32 number."
        )
    elif not small.any():
        hint = ": small is zero; it is what big leaves of x."
    right = (
        f"off by 2^{np.log2(worst):.1f} of x at most: all but the last of 24 digits."
        if worst
        else ""
    )
    return gemmlab.verdict(
        worst <= 2.0**-22, right, f"the sum is off by up to {worst:.1e} of x{hint}"
    )


@_safely
def check_18_3(answer):
    parts, added = answer
    spec, params = gemmlab.catalog[18], {"TSM": 64, "TSN": 64, "TSK": 8, "TENSOR": 0}
    if "0xffff0000" not in parts.lower():
        return gemmlab.verdict(
            False, "", "bfloat16 is a float's upper half: BIG masks with 0xffff0000u."
        )
    if "0x8000" not in parts.lower():
        return gemmlab.verdict(
            False, "", "BIG rounds to nearest: add half of the last place that stays, 0x8000u."
        )
    text = re.sub(
        r"#define BIG\(x\).*\n#define SMALL\(x\).*\n",
        lambda _: parts.strip() + "\n",
        sources.read(spec.file),
    )
    text = re.sub(r"\(PARTS - 1\)\*.*BIG\(a\)\*BIG\(b\)", lambda _: added, text)
    for m, n, k in ((64, 64, 40), (64, 128, 24)):
        outcome = gemmlab.trial(18, m, n, k, source=text, params=params, repeats=1)
        if not outcome.ok or outcome.seen:
            return gemmlab.verdict(False, "", f"at M={m}, N={n}, K={k}: {outcome.verdict}")
        if outcome.result.error > outcome.result.bound / 10:
            wrong = (
                f"at K={k} the error is {outcome.result.error:.0e}: some product of parts is "
                "missing."
            )
            return gemmlab.verdict(False, "", wrong)
    return gemmlab.verdict(
        True, "three numbers of 8 digits hold all 24 of a float; six products make one.", ""
    )


check_19_1 = _number(
    lambda: 64,
    "a float of B meets the 64 rows of A's part.",
    {
        128: "that is how often it uses a float of A.",
        8: "those are the steps of k; each has floats of its own.",
        65536: "those are all its multiply-adds; how many floats of B does it read for them?",
        512: "that is the number of floats of A.",
        1024: "that is the number of floats of B.",
    },
    "64*128*8 multiply-adds, and 8*128 floats of B.",
)
check_19_2 = _function(
    lambda k, n, row: (k // 4 * row + n) * 4 + k % 4,
    [(0, 0, 130), (5, 3, 130), (7, 127, 130), (13, 64, 130), (2, 1, 34)],
    "[k/4][n][k%4]: the row of vectors, the vector, the float.",
    [
        (
            lambda k, n, row: k * row + n,
            "That is a tile whose rows are steps of k, as in kernel 18.",
        ),
        (
            lambda k, n, row: (k // 4 * row + n) * 4,
            "Which of the four floats of that vector is it?",
        ),
        (
            lambda k, n, row: k // 4 * row + n * 4 + k % 4,
            "A row has `row` vectors, each of 4 floats.",
        ),
        (
            lambda k, n, row: (k // 4 * 128 + n) * 4 + k % 4,
            "A row is longer than the tile: there are `row` vectors.",
        ),
        (
            lambda k, n, row: (k % 4 * row + n) * 4 + k // 4,
            "Four *neighbouring* steps of k lie side by side.",
        ),
    ],
)


@_safely
def check_19_3(split):
    code = re.sub(r"//.*", "", split)
    for wanted, hint in (
        (
            r"BIG\(",
            "an instruction cuts off what it cannot see: round with BIG, or the parts lose a bit.",
        ),
        (r"Bsmall", "the small parts belong into Bsmall; nobody stores them yet."),
    ):
        if not re.search(wanted, code):
            return gemmlab.verdict(False, "", hint)
    lines = [line.rstrip() for line in code.splitlines() if line.strip()]
    text = sources.read(gemmlab.catalog[19].file)
    macro = "#define SPLIT_B(to) \\\n" + " \\\n".join(lines) + " \\\n    SHOW()\n"
    text = re.sub(r"#define SPLIT_B\(to\).*?SHOW\(\)\n", lambda _: macro, text, flags=re.S)
    for m, n, k in ((128, 128, 24), (128, 256, 16)):
        outcome = gemmlab.trial(
            19, m, n, k, source=text, params={"TSM": 128, "TSK": 8, "TENSOR": 0}, repeats=1
        )
        if not outcome.ok or outcome.seen:
            return gemmlab.verdict(False, "", f"at M={m}, N={n}, K={k}: {outcome.verdict}")
    return gemmlab.verdict(
        True, "each number is split once, for all 256 rows that will meet it.", ""
    )


check_20_1 = _number(
    lambda: cluster.Cut(4096, 4096, 4096, 2, 2).moved_bytes / 2**20,
    "16 MiB of A and 16 MiB of B; C stays where it is computed.",
    {
        64: "that is what it holds of A and B; half of each was there before.",
        96: "that is all that it holds; C is computed here, and some of A and B was there before.",
        16: "that is A alone; B is received as well.",
        128: "that is what all four receive together.",
    },
    "how large is a device's strip of A, and how much of it was there before?",
)
check_20_2 = _function(
    lambda m, n, k, rows, columns: (
        m * k / rows * (1 - 1 / columns) + k * n / columns * (1 - 1 / rows)
    ),
    [(64, 32, 128, 2, 4), (64, 64, 64, 8, 8), (100, 100, 100, 1, 1), (40, 50, 60, 1, 5)],
    "a strip of A and one of B, less what was there before.",
    [
        (
            lambda m, n, k, rows, columns: m * k / rows + k * n / columns,
            "Some of each strip was there before.",
        ),
        (
            lambda m, n, k, rows, columns: (
                m * k / rows * (1 - 1 / rows) + k * n / columns * (1 - 1 / columns)
            ),
            "A strip of A is shared by the devices of a row of the grid, and there are `columns` "
            "of them.",
        ),
        (
            lambda m, n, k, rows, columns: (m * k + k * n) * (1 - 1 / (rows * columns)),
            "That is all of A and B; a device needs a strip of each.",
        ),
    ],
)


class _Term:
    """A term of a sum that counts how many sums one after the other led to it."""

    def __init__(self, value: int, depth: int = 0):
        self.value, self.depth = value, depth

    def __add__(self, other):
        return (
            self
            if other == 0
            else _Term(self.value + other.value, 1 + max(self.depth, other.depth))
        )

    __radd__ = __add__


@_safely
def check_20_3(tree):
    for number in (8, 1, 2, 5, 7):
        given = _ask(tree, [_Term(3**i) for i in range(number)])
        if not isinstance(given, _Term):
            return gemmlab.verdict(
                False,
                "",
                f"for {number} matrices it gives a {type(given).__name__}, not their sum.",
            )
        if given.value != sum(3**i for i in range(number)):
            return gemmlab.verdict(
                False, "", f"for {number} matrices some are missing from the sum, or there twice."
            )
        if given.depth > (number - 1).bit_length():
            chain = (
                f"for {number} matrices {given.depth} sums follow one after the other; a tree is"
            )
            return gemmlab.verdict(
                False, "", f"the sum is right, but {chain} {(number - 1).bit_length()} deep."
            )
    return gemmlab.verdict(
        True,
        "8 products are added in 3 steps, by several workers, and no worker holds them all.",
        "",
    )


check_21_1 = _number(
    lambda: 1 / (8 * (1 + 1 / 8)),
    "8 warps of multiply-adds per access, and 1 1/8 accesses per multiply-add: half of the H200's "
    "share.",
    {
        1 / 4.5: (
            "that is the share of today's H200; beside more multiply-adds the same memory is less."
        ),
        1 / 2.25: "more multiply-adds per cycle make the share smaller, not larger.",
        1 / 8: "nearly: beside the float of B, there is an eighth of a float of A.",
        1.125: "those are the loads per multiply-add.",
    },
    "how many multiply-adds of a warp fit into the time of one access, and how many accesses does "
    "each need?",
)
check_21_2 = _function(
    lambda tile, block, lanes, words, fetched: min(
        1, words * block / (2 * lanes), fetched * tile / (2 * lanes)
    ),
    [
        (128, 8, 128, 32, 5),
        (16, 1, 128, 32, 5),
        (64, 4, 128, 32, 1),
        (32, 2, 192, 32, 4),
        (128, 16, 64, 32, 8),
    ],
    "min(1, words block / 2 lanes, fetched tile / 2 lanes): whichever memory is asked for too "
    "much decides.",
    [
        (
            lambda t, b, lanes, w, f: min(1, w * b / lanes, f * t / lanes),
            "A multiply-add needs two floats, not one.",
        ),
        (
            lambda t, b, lanes, w, f: min(w * b / (2 * lanes), f * t / (2 * lanes)),
            "No share is above 1.",
        ),
        (
            lambda t, b, lanes, w, f: max(w * b / (2 * lanes), f * t / (2 * lanes)),
            "The lowest roof counts.",
        ),
        (
            lambda t, b, lanes, w, f: min(1, w * b / (2 * lanes)),
            "And what comes from beyond local memory?",
        ),
        (
            lambda t, b, lanes, w, f: 1 / (1 + 2 * lanes / (w * b) + 2 * lanes / (f * t)),
            "That adds the times up; a roof is what remains if all of them overlap.",
        ),
    ],
)


@_safely
def check_21_3(answer):
    kernel, settings, text = answer
    if not text.strip():
        raise _Missing("there is no text of a kernel yet.")
    one = board.attempt(kernel, settings, text)
    if one.share < 0.1:
        return gemmlab.verdict(
            False, "", f"right, but {one.share:.2f} of the goal: from a tenth on it counts."
        )
    board.Board().add(one)
    return gemmlab.verdict(True, str(one), "")
