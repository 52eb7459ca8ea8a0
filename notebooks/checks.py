"""The checks of the exercises. Each shows a verdict and returns True or False; none raises."""

import math
import re
from functools import partial

import numpy as np

import clscope
import gemmlab
from clscope import views
from gemmlab import check, model
from gemmlab.generate import Schedule, tiles, write
from gemmlab.ladder import sources
from gemmlab.measurement import landscape
from gemmlab.measurement.comparison import BUDGET
from gemmlab.measurement.records import Row
from gemmlab.widgets import panel
from lessons import board, cluster, divergence, edges, puzzles, rates, schedules, selection, tf32

#: What an H200 gives a work-group, in bytes, by OpenCL.
LOCAL_MEMORY = 48 * 1024


class _NotYet(Exception):
    """An answer that does not pass; the words are its hint. By default the stub is still there."""

    def __init__(self, words: str = "there is no answer in the cell yet."):
        super().__init__(words)


def _ask(function, *case):
    """What a learner's function gives; a stub returns `...`."""
    given = function(*case)
    if given is ...:
        raise _NotYet
    if given is None:
        raise _NotYet("your function returns nothing. Did you mean `return` where it prints?")
    return given


def _exercise(check) -> str:
    """The number of the exercise that a check of this module is of, such as "02.3"."""
    name = next(name for name, value in globals().items() if value is check)
    return name.removeprefix("check_").replace("_", ".")


def _safely(check):
    """A check that notes what is solved in `Progress`, and for which an error is a wrong answer."""

    def checked(answer):
        try:
            if answer is None:
                raise _NotYet
            if isinstance(answer, str) and answer.strip().isdigit():
                raise _NotYet(f"{answer!r} is a text; a number has no quotes around it.")
            verdict = check(answer)
            if verdict:
                gemmlab.Progress().note(_exercise(checked), True)
            return verdict
        except _NotYet as hint:
            return gemmlab.verdict(False, "", str(hint))
        except Exception as error:
            return gemmlab.verdict(False, "", f"your answer raises {type(error).__name__}: {error}")

    return checked


def _close(given, wanted) -> bool:
    if isinstance(wanted, (tuple, list)):
        return len(given) == len(wanted) and all(map(_close, given, wanted))
    return abs(given - wanted) <= 1e-9 * max(1, abs(wanted))


def _number(right, because: str, typical: dict, otherwise: str):
    """The check of a number, which `right()` gives; `typical` has hints by wrong answers."""

    @_safely
    def checked(answer):
        hint = next((hint for wrong, hint in typical.items() if answer == wrong), otherwise)
        ok = isinstance(answer, (int, float)) and _close(answer, right())
        return gemmlab.verdict(ok, because, hint)

    checked.typical = list(typical)
    return checked


def _function(right, cases, because: str, typical: list):
    """The check of a function; `typical` has (wrong function, hint)."""

    @_safely
    def checked(answer):
        got = [_ask(answer, *case) for case in cases]
        for case, given in zip(cases, got, strict=True):
            if not _close(given, right(*case)):
                break
        else:
            return gemmlab.verdict(True, because, "")
        words = f"for {', '.join(map(str, case))} it gives {given}, expected {right(*case)}."
        for wrong, hint in typical:
            if _close(got, [wrong(*case) for case in cases]):
                words += f" {hint}"
                break
        raise _NotYet(words)

    checked.typical = [wrong for wrong, _ in typical]
    return checked


def _puzzle(number: int, because: str):
    """The check of a puzzle: see `puzzles.check`."""

    @_safely
    def checked(text):
        said = puzzles.check(number, text)
        return gemmlab.verdict(said == "solved", because, f"{said}.")

    return checked


def _kernel(*case):
    """The check of a changed kernel: see `_grade`."""
    return _safely(lambda source: _grade(source, *case))


def _grade(source: str, number: int, sizes, must: list, typical: list, because: str, params: dict):
    """The verdict on a text: it compiles, is right at these sizes and has no race; how fast it is.

    Args:
        must: (pattern, hint): what the text has to contain, whatever it computes.
        typical: (pattern, hint) for texts that are wrong: the first pattern that matches the text,
            or what went wrong, says why.
        because: what a right text shows.
    """
    code = re.sub(r"//.*", "", source)
    for pattern, hint in must:
        if not re.search(pattern, code):
            raise _NotYet(hint)
    wrong = _wrong(number, source, sizes, params)
    if wrong:
        hints = (hint for pattern, hint in typical if re.search(pattern, f"{code}\n{wrong}"))
        raise _NotYet(f"{wrong}. {next(hints, '')}".strip())
    return gemmlab.verdict(True, f"{because} {_beside(number, source, params)}".strip(), "")


def _wrong(kernel: int, source: str, sizes, params=None) -> str:
    """What goes wrong with a text at some of these sizes, if only a race; "" if nothing does."""
    for m, n, k in sizes:  # the source begins in the cell's second line
        outcome = gemmlab.trial(kernel, m, n, k, source=f"\n{source}", params=params, repeats=1)
        seen = outcome.seen
        # what the simulator could not read may have a race; a limit only ends the search for more
        if not outcome.ok or (seen and (seen.unread or seen.elsewhere)):
            return f"at M={m}, N={n}, K={k}: {outcome.verdict}"
    return ""


def _beside(number: int, source: str, params: dict | None = None) -> str:
    """How fast a right text is beside the original kernel, as a sentence."""
    device, spec = gemmlab.default_device(), gemmlab.catalog[number]
    params = spec.complete(params) if params else spec.fit(device.limits)
    sizes = dict.fromkeys("mnk", 256 if device.kind == "CPU" else 2048)
    original = {"kernel": number, "params": params, "source": None, **sizes}
    found = gemmlab.trial(
        number, params=params, source=f"\n{source}", **sizes, reference=original, budget=BUDGET
    ).compared
    if found is None:
        return "It compiles, is right, and has no race; how fast it is could not be measured."
    sentence = panel.beside(found, f"kernel {number}")
    return f"It compiles, is right, and has no race. {sentence}."


def _settings(kernel: int, settings: dict) -> dict:
    """All parameters of a kernel, legal and within an H200's local memory."""
    spec = gemmlab.catalog[kernel]
    params = spec.complete(settings)
    spec.validate(params)  # raises where a rule is broken
    memory = spec.local_memory(params)
    if memory > LOCAL_MEMORY:
        raise _NotYet(f"its tiles take {memory:,} bytes of local memory; {LOCAL_MEMORY:,} fit.")
    return params


def _ceiling(kernel: int, least: float, limit, hint: str, size: int = 4096):
    """The check of settings whose lowest ceiling on an H200 is to be at least `least`.

    `limit` is (a function of the parameters, its largest value, what it counts).
    """

    @_safely
    def checked(settings):
        params = _settings(kernel, settings)
        count, most, what = limit
        if count(params) > most:
            raise _NotYet(f"that makes {count(params):,} {what}; at most {most:,} are allowed.")
        roof = model.ceilings(kernel, params, model.H200, size)[0]
        words = f"{roof.resource} allows {roof.share:.1%}."
        return gemmlab.verdict(roof.share >= least, words, f"{words} {hint}")

    return checked


def _sums(params: dict) -> int:
    return params["WPTM"] * params["WPTN"]


def _on_h200(kernel: int, settings: dict) -> Row:
    """What an H200 reached with a setting of a kernel, as recorded."""
    params = _settings(kernel, settings)
    found = landscape.rate(kernel, params)
    words = " ".join(f"{name}={value}" for name, value in params.items())
    if found is None:
        raise _NotYet(f"{words} is legal but was not recorded; the explorer offers what was.")
    if found.metric == "refused":
        raise _NotYet(f"{words} does not count: {found.note}")
    return found


def _stored(name: str, after: str = ""):
    """What a text must contain that fills a tile."""
    return after + rf"{name}\s*\[[^;]*\]\s*=[^=]", f"nothing is stored to {name} yet."


#: The text from where the next tiles are loaded; the code before it loads the first ones in much
#: the same way.
_NEXT = r"(?s)k1 = k0 \+ TSK;"
_ROWS_OF_B = (
    r"\bB\[[^;]*\bM\b",
    "The columns of the transposed B are N floats long; equal to M by accident only.",
)
_IN_VECTORS = (
    r"\b[AB]\[[^;]*[mn]0\s*\+",
    "The tile begins at vector m0/WIDTH of its column, and n0/WIDTH.",
)
_NEXT_BUFFER = (r"tile\[\s*now\s*\][^;]*=[^=]", "The group computes from `now`: fill `next`.")
_MULTIPLIED = (
    r"acc\[j\]\[i\]\s*\+?=\s*[^0\s]",
    "nothing is multiplied yet: acc[j][i] += a[i] * b[j].",
)
_ADDED = (r"acc\[j\]\[i\]\s*=\s*a", "Add to a sum: += and not =.")
_OFF = "elements are off"  # in a verdict

check_00_1 = _puzzle(1, "64 work-items, and each did one element.")
check_00_2 = _puzzle(3, "n columns of M elements come before, and m elements of its own column.")
check_00_3 = _puzzle(4, "this is kernel 1 of the ladder.")

check_01_1 = _number(
    lambda: 2 * 32 * 32 * 64,
    "two loads per term, K terms, TS x TS work-items.",
    {
        2 * 64: "that is one work-item; a work-group has TS x TS of them.",
        32 * 32 * 64: "that is A alone; B is read as often.",
        2 * 32 * 64: "that many different floats; the kernel loads them more than once.",
    },
    "start with one work-item: how many floats does it load for one term?",
)
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
        (r"(?<!float )\bacc\s*\+?=", "acc is what is stored: add the four sums into it."),
    ],
    [
        (r"K=7\b", "After the last whole round up to three terms are left."),
        (r"K=1\b", "It is right for larger K. What happens if there is no whole round?"),
        (_OFF, "Is every term in one of the four sums, and every sum in acc?"),
    ],
    "four chains of additions in place of one.",
    {"TS": 32},
)


@_safely
def check_01_3(source):
    code = re.sub(r"//.*|\s", "", source)
    if code == re.sub(r"//.*|\s", "", sources.body(sources.read("01_naive.cl"))):
        raise _NotYet("that is kernel 1 as it was.")
    if re.search(r"\b(__)?local\b", source):
        raise _NotYet("local memory is for chapter 02; here each work-item works alone.")
    return _grade(source, 1, [(32, 32, 32), (64, 32, 40), (32, 96, 5)], [], [], "", {})


check_02_1 = _number(
    lambda: 2 * 64**3 // 16,
    "2 M N K / TS: each float of a tile is fetched once and used TS times.",
    {
        2 * 64**3: "that is kernel 1; here each float of a tile serves TS work-items.",
        64**3 // 16: "that is one of the two matrices.",
        2 * 64 * 64: "so many different floats there are; several work-groups fetch each.",
    },
    "start from kernel 1's 2 M N K: how often is a fetched float used?",
)
check_02_2 = _kernel(
    2,
    [(32, 32, 32), (32, 48, 16), (16, 32, 64)],
    [
        _stored("Atile"),
        _stored("Btile"),
        (r"\bacc\s*\+=|\bacc\s*=\s*(acc|fma|mad)\b", "nothing is added to acc yet."),
        (
            r"Btile\s*\[\s*\w+\s*\]\s*\[\s*tn\s*\](?!\s*=[^=])",
            "B's tile is [k][n] here: step k of this work-item's column is Btile[k][tn].",
        ),
        (
            r"(?s)barrier\s*\(.*barrier\s*\(",
            "only a barrier ensures that the tiles are complete when work-items read them.",
        ),
    ],
    [
        ("no barrier between", "The barrier belongs between the stores and the loop."),
        (_OFF, "Row k0 + tm and column n0 + tn of B are step tm and column tn of the tile."),
    ],
    "the group fetches each element once; row tm of B's part is stored as row tm.",
    {"TS": 16},
)


@_safely
def check_02_3(source):
    wrong = _wrong(2, source, [(32, 32, 64), (32, 48, 16), (16, 32, 48)], {"TS": 16})
    if wrong:
        hint = ". Of two tiles, which one may be overwritten?" * ("no barrier between" in wrong)
        raise _NotYet(wrong + hint)
    groups, tiles = 4, 8
    passed = gemmlab.simulate(2, 32, 32, 16 * tiles, {"TS": 16}, source).counts.barriers // groups
    words = f"{passed} barriers for {tiles} tiles."
    if passed > tiles + 1:
        raise _NotYet(f"it is right, with {words} Give the next tiles separate memory.")
    return gemmlab.verdict(True, f"{words} {_beside(2, source, {'TS': 16})}", "")


check_03_1 = _function(
    lambda p, q: (p + q) / (p * q),
    [(1, 1), (1, 8), (4, 4), (8, 2)],
    "(P + Q)/(P Q) = 1/P + 1/Q.",
    [
        (lambda p, q: p * q / (p + q), "That is the inverse: multiply-adds per load."),
        (lambda p, q: p + q, "Those are the loads of a step; how many multiply-adds share them?"),
        (lambda p, q: 1 + 1 / q, "That is kernel 3, with P = 1."),
    ],
)
_A_IS_READ = r"\bAtile\s*\[[^\]]*\]\s*\[\s*tm\s*\](?!\s*=[^=])"
_NEIGHBOURS = r"(tn\s*\*\s*WPT|WPT\s*\*\s*tn)"
check_03_2 = _kernel(
    3,
    [(32, 32, 32), (32, 64, 32), (64, 32, 96)],
    [
        (_A_IS_READ, "A's tile is not read: row tm, step k."),
        (r"acc\s*\[[^\]]*\]\s*(\+=|=\s*(acc|fma|mad)\b)", "nothing is added to acc[j] yet."),
        (
            rf"Btile\s*\[[^\]]*{_NEIGHBOURS}",
            "the columns are neighbours here: sum j has column tn*WPT + j of the tile.",
        ),
        (r"\bC\s*\[[^;]*\]\s*=[^=]", "nothing is stored to C yet."),
        (rf"\bC\s*\[[^;]*{_NEIGHBOURS}", "sum j belongs to column n0 + tn*WPT + j of C."),
    ],
    [
        (_OFF, "Each sum needs its own column of B, and A's element at row tm, at every step k."),
        ("was never written", "Each work-item stores WPT elements of C."),
    ],
    "sum j belongs to column tn*WPT + j of the tile.",
    {"TS": 32, "WPT": 8},
)
check_03_3 = _ceiling(
    3,
    0.22,
    (lambda p: p["TS"] ** 2 // p["WPT"], 1024, "work-items per group"),
    "Which of the loads become fewer with WPT, and what does TS still save?",
)

check_04_1 = _number(
    lambda: 32 * 16 // 32,
    "512 bytes side by side are 16 segments.",
    {
        4: "that is a float for each lane; here it is a float4.",
        32: "two lanes share a segment of 32 bytes.",
        64: "a segment has 32 bytes, not 8.",
    },
    "how many bytes does the warp move?",
)
check_04_2 = _kernel(
    4,
    [(32, 32, 32), (32, 64, 96), (64, 32, 32)],
    [
        (_A_IS_READ, "A's tile is not read yet: vector tm, at step k."),
        (r"Bf\[(?!.*get_local_id)[^;]*\bk\b", "B's tile is not read yet: element k of column tn."),
        (r"\bfma\s*\(", "there is no call of fma in the kernel yet."),
        (r"acc\s*=\s*fma\s*\(", "fma returns the new sum: assign it, acc = fma(...)."),
    ],
    [(_OFF, "Step k of A's tile meets element k of column tn of B's.")],
    "one rounding instead of two. A compiler may have done this before; the times tell.",
    {"TS": 32, "WIDTH": 4},
)


@_safely
def check_04_3(search):
    most, found, words = 16, landscape.landscapes()[0], []
    for kernel in (4, 3):
        tried = {}

        def rate(settings, kernel=kernel, tried=tried):
            record = found.rate(kernel, settings)
            key = tuple(sorted(settings.items()))
            rate = record.gflops if record and record.metric == "GFLOPS" else 0.0
            return tried.setdefault(key, rate)

        best = _ask(search, rate, {p.name: p.choices for p in gemmlab.catalog[kernel].params})
        if not isinstance(best, dict):
            raise _NotYet(f"give the settings as a dictionary, not as a {type(best).__name__}.")
        many, share = len(tried), rate(best) / found.best(kernel).gflops
        words.append(f"kernel {kernel}: {share:.1%} of the best rate, with {many} measurements")
        if many > most:
            raise _NotYet(f"{words[-1]}; at most {most} are allowed.")
        if share < 0.95:
            raise _NotYet(f"{words[-1]}; 95 % or more passes. Vary one parameter at a time.")
    return gemmlab.verdict(True, "; ".join(words) + ".", "")


check_05_1 = _function(
    model.stride_turns,
    [(stride,) for stride in (1, 2, 3, 8, 12, 16, 17, 18, 24, 32, 33, 40, 64)],
    "gcd(stride, 32): an odd stride costs one turn.",
    [
        (lambda s: 32 // math.gcd(s, 32), "That counts the banks that are hit."),
        (lambda s: min(s, 32), "Only what the stride has in common with 32 counts."),
        (lambda s: s % 32, "Stride 17 leaves 17, and costs one turn."),
    ],
)
check_05_2 = _kernel(
    5,
    [(32, 32, 16), (32, 64, 48), (64, 32, 32)],
    [_stored("Atile"), _stored("Btile")],
    [
        (r"\bB\[[^;]*\*\s*K\b", "B comes transposed: element n of step k is B[k*N + n]."),
        _ROWS_OF_B,
        (r"Btile\[\s*j\s*\]\[\s*i\s*\]\s*=", "Btile is [n][k], and the row of the tile counts n."),
        (r"(?s)\A(?!.*\+= *TS *\* *RTS)", "The group loads TS*RTS elements at a time."),
    ],
    "one loop for both tiles, at any depth.",
    {"TS": 32, "TSK": 16, "WPT": 8},
)


@_safely
def check_05_3(place):
    text = sources.read(gemmlab.catalog[5].file)
    for old, new in (
        ("Btile[TS][TSK + PAD]", "Btile[TS*TSK]"),
        ("Btile[tm][j]", "Btile[place(tm, j)]"),
        ("Btile[tn + j*RTS][k]", "Btile[place(tn + j*RTS, k)]"),
        ("__kernel", f"inline int place(int n, int k) {{ return {place}; }}\n\n__kernel"),
    ):
        text = text.replace(old, new, 1)
    found = {}
    for depth in (8, 16, 32):
        run = gemmlab.simulate(5, 32, 32, depth, {"TS": 32, "TSK": depth, "WPT": 8}, text)
        if run.findings or not run.ok:
            raise _NotYet(f"TSK = {depth}: {run.verdict}. Each element needs its own position.")
        stored = views.touches(run, "Btile", store=True)
        if any(set(row // depth) != set(range(32)) for row in stored):
            raise _NotYet(f"with TSK = {depth} the floats of an n do not stay in its row.")
        found[depth] = max(map(model.turns, stored))
    turns = ", ".join(f"{turns} turns with TSK = {depth}" for depth, turns in found.items())
    words = f"a store takes {turns}."
    hint = "Which rows begin in the same bank? Move their floats by different amounts."
    return gemmlab.verdict(max(found.values()) <= 4, words, f"{words} {hint}")


check_06_1 = _function(
    lambda items, groups: min(255, 65536 // (items * groups)),
    [(256, 2), (256, 4), (256, 1), (64, 4), (128, 6), (1024, 2)],
    "all work-items of all groups share the registers, and none can have more than 255.",
    [
        (lambda items, groups: 65536 // (items * groups), "No work-item can have more than 255."),
        (lambda items, groups: 65536 / (items * groups), "No fractions, and no more than 255."),
        (lambda items, groups: min(255, 65536 / (items * groups)), "Half a register is none."),
        (lambda items, groups: min(255, 65536 // items), "That is for a single group."),
    ],
)
check_06_2 = _kernel(
    6,
    [(32, 32, 16), (64, 32, 32), (32, 96, 48)],
    [_MULTIPLIED],
    [
        (r"tm\s*\*\s*WPTM", "The rows of a work-item are RTSM apart, from tm on."),
        (r"tn\s*\*\s*WPTN", "The columns of a work-item are RTSN apart, from tn on."),
        _ADDED,
        (r"i\s*\*\s*RTSN|j\s*\*\s*RTSM", "Rows are RTSM apart, columns RTSN; equal by accident."),
        (r"Btile\[\s*k\s*\]", "Btile is [n][k]: k is its second index."),
    ],
    "WPTM + WPTN loads, WPTM WPTN multiply-adds, and WPTM - 1 registers less.",
    {"TSM": 32, "TSN": 32, "TSK": 16, "WPTM": 4, "WPTN": 2},
)


@_safely
def check_06_3(settings):
    found, best = _on_h200(6, settings), landscape.rate(6, gemmlab.catalog[6].defaults)
    words = f"the compiler gave it {found.registers} registers"
    if found.registers > 64:
        raise _NotYet(f"{words}; at most 64. The sums alone take WPTM WPTN.")
    share = found.gflops / best.gflops
    words += f", {landscape.occupancy(found)} % occupancy, {share:.0%} of the default's rate."
    hint = "Blocks need not be square, and the loads per multiply-add are 1/WPTM + 1/WPTN."
    return gemmlab.verdict(share >= 0.7, words, f"{words} {hint}")


check_07_1 = _function(
    lambda wptm, rtsm: max(1, rtsm * math.gcd(wptm, 32) // 32),
    [(8, 16), (4, 8), (4, 16), (1, 16), (2, 32), (8, 32), (10, 16), (16, 8)],
    "rtsm different words, over the banks that a stride of wptm hits.",
    [
        (lambda wptm, rtsm: math.gcd(wptm, 32), "That is for 32 words; here there are rtsm."),
        (lambda wptm, rtsm: wptm, "That is for 32 words, and a stride that divides 32."),
        (lambda wptm, rtsm: rtsm, "That would be right if all words were in one bank."),
    ],
)
check_07_2 = _kernel(
    7,
    [(32, 32, 16), (32, 64, 32), (64, 32, 48)],
    [_stored("Atile"), _stored("Btile")],
    [
        (r"e0\s*<\s*TSK\s*\*\s*TSM\s*;", "A tile has TSK*TSM/WIDTH vectors; e0 counts those."),
        (r"[%/]\s*\(?TS[MN]\)?\s*;", "A column of the tile has TSM/WIDTH vectors: divide by that."),
        _IN_VECTORS,
        (r"\b[AB]\[[^;]*\*\s*[MN]\b", "A column of A has M/WIDTH vectors."),
        _ROWS_OF_B,
        (r"Btile\[\s*i\s*\]\[\s*j\s*\]", "Btile is [k][n] now, like Atile."),
    ],
    "WIDTH floats by each instruction.",
    {"TSM": 32, "TSN": 32, "WPTM": 4, "WPTN": 2, "WIDTH": 2},
)


@_safely
def check_07_3(settings):
    if settings == {}:
        raise _NotYet
    rates = {width: _on_h200(7, {**settings, "WIDTH": width}).gflops for width in (1, 2, 4, 8)}
    best = max(rates, key=rates.__getitem__)
    words = f"the best WIDTH, {best}, is {rates[best] / rates[1]:.2f} times as fast as WIDTH 1."
    hint = "For which tiles are there many loads of vectors per multiply-add?"
    return gemmlab.verdict(rates[best] >= 1.5 * rates[1], words, f"{words} {hint}")


check_08_1 = _function(
    lambda lane, j, rtsm: lane // rtsm * rtsm + j,
    [(0, 3, 16), (5, 2, 8), (17, 0, 16), (31, 7, 8), (20, 1, 4)],
    "the row's first lane, plus j.",
    [
        (lambda lane, j, rtsm: j, "That is right for the first row of a warp only."),
        (lambda lane, j, rtsm: lane + j, "Count from the first lane of the row."),
        (lambda lane, j, rtsm: lane % rtsm + j, "That is the position in the row."),
    ],
)
check_08_2 = _kernel(
    3,
    [(32, 32, 32), (64, 32, 96), (32, 96, 64)],
    [
        (r"async_work_group_copy\s*\(", "there is no call of async_work_group_copy yet."),
        (r"wait_group_events\s*\(", "nothing waits for the copies: wait_group_events(1, &e)."),
        _stored("Btile"),
        (
            r"(?s)\A(?!.*async_work_group_copy\s*\([^;]*,\s*0\s*\)\s*;\s*\}.*wait_group_events)",
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
        (r"async_work_group_copy\s*\([^;]*TS\s*\*\s*TS", "One call copies one column: TS floats."),
    ],
    "a portable request for hardware that copies.",
    {"TS": 32, "WPT": 8},
)


@_safely
def check_08_3(settings):
    plain, shuffled = (_on_h200(8, {**settings, "SHUFFLE": switch}) for switch in (0, 1))
    gain = shuffled.gflops / plain.gflops
    words = f"with shuffles {gain:.2f} times the rate."
    hint = "Small blocks, small tiles, and one change at a time."
    return gemmlab.verdict(gain >= 1.05, words, f"{words} {hint}")


check_09_1 = _function(
    lambda *case: max(s.end for s in schedules.spans(*case)),
    [(4, 3, 2, 1), (4, 3, 2, 2), (6, 1, 5, 2), (1, 2, 3, 2), (8, 2, 2, 2), (5, 1, 4, 1)],
    "load + (tiles - 1) max(load, compute) + compute with two buffers.",
    [
        (lambda t, load, compute, b: t * (load + compute), "The second buffer must save time."),
        (lambda t, load, compute, b: t * max(load, compute), "One buffer: one after the other."),
        (
            lambda t, load, compute, b: t * (load + compute if b == 1 else max(load, compute)),
            "With two buffers the first load and the last computation stand alone.",
        ),
    ],
)
_PREFETCH = {"TSM": 32, "TSN": 32, "TSK": 16, "WPTM": 4, "WPTN": 4}
_LAST_ROUND = (r"(?s)\A(?!.*if\s*\()", "The last round has no next tile to fetch.")
check_09_2 = _kernel(
    9,
    [(32, 32, 16), (32, 64, 48), (64, 32, 32)],
    [_stored("Atile", _NEXT + ".*"), _stored("Btile", _NEXT + ".*")],
    [
        _NEXT_BUFFER,
        (r"[AB]\[\s*\(?\s*k0\b", "The next tiles begin at step k1, not at k0."),
        _LAST_ROUND,
        _ROWS_OF_B,
        _IN_VECTORS,
    ],
    "the next tile is under way while this one is multiplied.",
    _PREFETCH,
)


@_safely
def check_09_3(halves):
    early, late = (re.sub(r"//.*", "", half) for half in halves)
    for half, pattern, wanted, hint in (
        (early, r"\b[AB]\[", True, "early fetches nothing from A and B yet."),
        (early, r"[AB]tile\[", False, "early touches local memory: keep its vectors in registers."),
        (late, r"[AB]tile\[\s*next\b", True, "late stores nothing to Atile[next] and Btile[next]."),
        (late, r"\b[AB]\[", False, "late reads from A or B; early should have done that."),
    ):
        if bool(re.search(pattern, half)) != wanted:
            raise _NotYet(hint)
    text = sources.read(gemmlab.catalog[9].file)
    text = text.replace(sources.part(text, "load: the next"), early)
    text = text.replace("        now = next;", f"{late}\n        now = next;")
    sizes = [(32, 32, 16), (32, 64, 48), (64, 32, 32)]
    return _grade(text, 9, sizes, [], [_LAST_ROUND], "fetched early, stored late.", _PREFETCH)


def _padded(m, n, k, x, y, z):
    """Multiply-adds of whole tiles."""
    return math.prod(-(-size // tile) * tile for size, tile in ((m, x), (n, y), (k, z)))


check_10_1 = _function(
    lambda m, n, k, *tile: 1 - m * n * k / _padded(m, n, k, *tile),
    [(1025, 1025, 1025, 128, 128, 16), (128, 128, 16, 128, 128, 16), (1, 100, 1000, 64, 32, 16)],
    "what is not useful, over all that is computed.",
    [
        (
            lambda m, n, k, *tile: _padded(m, n, k, *tile) / (m * n * k) - 1,
            "That is padding over useful work; divide by all the work instead.",
        ),
        (lambda m, n, k, *tile: m * n * k / _padded(m, n, k, *tile), "That is the useful share."),
        (lambda m, n, k, x, y, z: 1 - m * n / _padded(m, n, 1, x, y, 1), "K is padded, too."),
    ],
)
check_10_2 = _kernel(
    10,
    [(64, 64, 32), (128, 32, 48), (64, 32, 16)],
    [_stored("Atile", _NEXT + ".*"), _stored("Btile", _NEXT + ".*")],
    [
        (_NEXT + r"(?!.*[%/]\s*\(?\s*TSN)", "A column of B's tile has TSN/WIDTH vectors."),
        (_NEXT + r".*\b[AB]\[\s*\(?\s*j\b", "Step j of the next tiles is step k1 + j of A and B."),
        _NEXT_BUFFER,
        _ROWS_OF_B,
    ],
    "each tile has its own number of vectors per column.",
    {"TSM": 64, "TSN": 32, "TSK": 16, "WPTM": 4, "WPTN": 4},
)
check_10_3 = _ceiling(
    10,
    0.66,
    (_sums, 100, "sums per work-item"),
    "Is that because of the tile's size or its blocks?",
    1025,
)

check_11_1 = _function(
    lambda rx, ry, width: rx // width * ry + rx // width + 1,
    [(48, 8, 16), (32, 12, 16), (8, 4, 4), (16, 8, 8)],
    "VX RY sums, VX of A, one of B. Which blocks fit into 16 registers, and which into 32?",
    [
        (lambda rx, ry, width: rx // width * ry, "Those are the sums alone."),
        (lambda rx, ry, width: rx * ry + rx + 1, "That counts floats; a register holds several."),
        (lambda rx, ry, width: rx // width * (ry + 1) + ry, "One element of B is enough."),
    ],
)
check_11_2 = _kernel(
    11,
    [(64, 32, 16), (64, 64, 7), (128, 32, 33)],
    [
        (r"vload4\s*\(", "there is no vload4 in the kernel yet."),
        (r"(?s)\A(?!.*=\s*(?:TRANSPOSED|B\s*\[))", "B is still loaded element by element."),
    ],
    [
        (r"(?s)\A(?!.*acc\[[^;]*=[^;]*\ba\[)", "Nothing is multiplied yet: acc[j][i] += a[i] * b."),
        (r"vload4\([^;k]*;", "The four of step k begin at B[k*N + n]: k is missing."),
        (
            r"(?s)(\.(x|s0)\b|four\[0\])(?!.*(\.(y|s1)\b|four\[1\]))",
            "The first of the four belongs to column n; column n + j wants the j-th.",
        ),
        _ADDED,
    ],
    "one load instruction instead of four. It ties the kernel to RY = 4, though.",
    {"RX": 8, "RY": 4, "WIDTH": 4},
)


@_safely
def check_11_3(settings):
    one = board.attempt(11, _settings(11, settings), sources.read(gemmlab.catalog[11].file))
    words = f"{one.challenge}: {one}"
    hint = "A tenth or more passes: larger blocks, wider vectors?"
    return gemmlab.verdict(one.share >= 0.1, words, f"{words}. {hint}")


check_12_1 = _function(
    lambda m, n, tile: -(-m // tile) * -(-n // tile) - (m // tile) * (n // tile),
    [(100, 100, 16), (96, 100, 16), (64, 64, 16), (3, 3, 2), (5, 40, 8)],
    "all, less those that are wholly inside.",
    [
        (lambda m, n, tile: -(-m // tile) * -(-n // tile), "Those are all tiles."),
        (
            lambda m, n, tile: -(-m // tile) + -(-n // tile) - 1,
            "A whole number of tiles ends inside.",
        ),
        (lambda m, n, tile: -(-m // tile) + -(-n // tile), "The corner is counted twice."),
    ],
)
check_12_2 = _kernel(
    12,
    [(33, 17, 5), (3, 40, 31), (1, 1, 1), (32, 32, 32)],
    [
        _stored("Atile"),
        _stored("Btile"),
        (r"\A(?![\s\S]*\?\s*[AB]\[)", "a guard still chooses A or B: always load, and multiply."),
    ],
    [
        (r"tile\[j\]\[tm\]\s*=\s*(\w+|[AB]\[[^;]*\]);", "What is outside must be multiplied by 0."),
        (r"(?s)\A(?!.*\bN\s*-\s*1)", "For B column n0 + j must be inside N, row k0 + tm inside K."),
        (r"(?s)\A(?!.*\bM\s*-\s*1)", "Load from a row that exists: min(m0 + tm, M - 1)."),
        (r"(?s)\A(?!.*\bK\s*-\s*1)", "The last tiles may reach beyond K: min(k0 + j, K - 1)."),
    ],
    "no lane diverges. But infinity times zero is not a number: only for finite matrices.",
    {"TS": 16, "WPT": 4},
)


@_safely
def check_12_3(sizes):
    m, n, k = sizes
    if min(m, n, k) < 64:
        raise _NotYet(f"the smallest of {m}, {n} and {k} is below 64.")
    share = divergence.share(m, n, k, 32)
    counts = [sum(p.diverging for p in divergence.formula(x, m, n, k, 32).values()) for x in "AB"]
    words = f"{share:.1%} of all warp-phases diverge: {counts[0]} in A and {counts[1]} in B."
    hint = "For each of the two: which size decides whether a warp crosses its edge?"
    return gemmlab.verdict(share >= 0.3, words, f"{words} {hint}")


check_13_1 = _function(
    lambda t, m, rows: (min(t * rows, m - rows), min(rows, m - t * rows)),
    [(0, 100, 32), (3, 100, 32), (2, 96, 32), (2, 11, 4)],
    "moved back only if it must, and owning what no other tile owns.",
    [
        (lambda t, m, rows: (t * rows, min(rows, m - t * rows)), "The last tile is still outside."),
        (lambda t, m, rows: (min(t * rows, m - rows), rows), "A moved tile owns less."),
        (lambda t, m, rows: (m - rows, m - t * rows), "Only the last tile moves, if it must."),
    ],
)
check_13_2 = _kernel(
    13,
    [(50, 50, 33), (33, 40, 60), (64, 35, 1)],
    [
        (_NEXT + r".*vload4[^;]*\bA\b", "A is not loaded by vload4 yet."),
        (_NEXT + r".*vload4[^;]*\bB\b", "B is not loaded by vload4 yet."),
    ],
    [
        (_NEXT + r".*TSK\s*\*\s*TS[MN]\s*;", "e0 counts vectors: TSK*TSM/4 and TSK*TSN/4."),
        (_NEXT + r"(?!.*(\*\s*4|4\s*\*))", "A vector begins at every fourth row."),
        (_NEXT + r"(?!.*<\s*K\b)", "Beyond K the tiles want zeros, (float4)(0.0f)."),
        (_NEXT + r"(?!.*vstore4.*vstore4)", "All four go to the tile: vstore4."),
    ],
    "right for any M and N, though a moved tile begins anywhere.",
    {"TSM": 32, "TSN": 32, "TSK": 16, "WPTM": 4, "WPTN": 2},
)


@_safely
def check_13_3(choose):
    ways, shares, padded = ("pad", "guard", "shift", "split"), {}, []
    for found in (edges.rates(1000, 1100), edges.rates(4000, 4200)):
        for size in found["pad"]:
            way, best = _ask(choose, size), max(found[way][size] for way in ways)
            if way not in ways:
                raise _NotYet(f"for {size} it gives {way!r}, which is none of {', '.join(ways)}.")
            shares[size] = found[way][size] / best
            padded.append(found["pad"][size] / best)
    mean, always = np.mean(list(shares.values())), np.mean(padded)
    worst = min(shares, key=shares.__getitem__)
    words = f"{mean:.3f} of the best of the four, on average; always 'pad' is {always:.3f}."
    hint = f"At {worst}, {choose(worst)!r} reaches only {shares[worst]:.2f} of the best."
    return gemmlab.verdict(mean >= 0.99, words, f"{words} {hint}")


@_safely
def check_14_1(tile):
    sizes, others = (480, 336, 160), [{"TSM": 64, "TSN": 64, "TSK": 16}, {"TSM": 32, "TSN": 32}]
    full = tiles.complete_tile(tile)
    for size, side in zip(sizes, selection.SIDES, strict=True):
        if size % full[side]:
            raise _NotYet(f"{size} is no multiple of {side} = {full[side]}.")
    if full["TSM"] * full["TSN"] < 1000:
        few = model.tile_intensity(full["TSM"], full["TSN"])
        raise _NotYet(f"so small a tile does {few:.0f} operations per element that it loads.")
    layouts = (tiles.OperandLayout("N", 0, size) for size in (sizes[0], sizes[2]))
    tiles.configure("s", full, sizes, *layouts)  # raises where parameters contradict each other
    found = selection.launches(sizes, [{"size": 400, "tiles": [*others, tile]}])
    return gemmlab.verdict(
        len(found) == 1, "one launch, without a single guard.", f"it takes {len(found)} launches."
    )


@_safely
def check_14_2(text):
    if "C[" not in re.sub(r"//.*", "", text):
        raise _NotYet("nothing is stored to C yet: C[n*M + m] = ...")
    m, n, k = 16, 8, 8
    a, b = check.exact_inputs(m, n, k)
    bias = np.linspace(-20, 20, m, dtype=np.float32).round()
    flat = [x.T.ravel() for x in (a, b)]
    args = [m, n, k, 2.0, flat[0], 0, m, flat[1], 0, k, 3.0, bias, 0, 1, 0, clscope.Empty(m * n)]
    schedule = Schedule(beta=True, tile=(8, 8), micro_tile=(2, 2), depth=8)
    source = write(schedule, store=lambda c: text.strip("\n").splitlines())
    run = clscope.run(source, None, (8, 4), None, args)
    got, plain = run.arrays["C"].reshape(n, m).T, 2 * a @ b + 3 * bias[:, None]
    typical = {
        "negative sums are not replaced yet.": plain,
        "that keeps what is negative, and replaces the rest.": np.minimum(plain, 0),
        "where is the bias? beta*C0[...] belongs to the sum.": np.maximum(2 * a @ b, 0),
    }
    hints = (hint for hint, wrong in typical.items() if np.array_equal(got, wrong))
    right = run.ok and np.array_equal(got, np.maximum(plain, 0))
    because = "that costs an instruction for each element of C, and no pass."
    return gemmlab.verdict(right, because, next(hints, run.verdict))


@_safely
def check_14_3(answer):
    (m, n, k), params = answer
    device, tile = gemmlab.default_device(), tiles.complete_tile(params)
    a, b = check.exact_inputs(n, m, k)
    if not check.exact(gemmlab.matmul(a, b, kernel="family", params=tile, device=device), a, b).ok:
        raise _NotYet("with this tile the product is not exact.")
    own, selected = (
        max(rates.rate((m, n, k), device, 0.03, **way) for _ in range(3))
        for way in ({"kernel": "family", "params": tile}, {"edges": "split"})
    )
    words = f"{own / selected:.1f} times as fast as the selection's launches."
    return gemmlab.verdict(own >= 1.1 * selected, words, words)


check_15_1 = _function(
    lambda p, q, rows: rows * p + 32 // rows * q,
    [(8, 8, 8), (8, 8, 32), (4, 8, 4), (4, 4, 16), (8, 4, 1)],
    "the warp's rows of A and its columns of B. The more square the block, the fewer.",
    [
        (lambda p, q, rows: p + q, "That is what one work-item needs."),
        (lambda p, q, rows: 32 * (p + q), "Work-items in a row of the block want the same floats."),
        (lambda p, q, rows: rows * (p + q), "The block has 32/`rows` columns of work-items."),
    ],
)
check_15_2 = _kernel(
    15,
    [(64, 64, 32), (64, 128, 16)],
    [
        (
            r"(?s)float a\[WPTM\][^;]*;.*floatX.*Atile",
            "a is not loaded as vectors of type floatX yet.",
        ),
        (
            r"(?s)float b\[WPTN\][^;]*;.*floatX.*Btile",
            "b is not loaded as vectors of type floatX yet.",
        ),
        (r"\*WARPM\]", "the vector that begins with a[i] is i*WARPM rows below tm."),
        (r"\*WARPN\]", "the vector that begins with b[j] is j*WARPN columns behind tn."),
        _MULTIPLIED,
    ],
    [],
    "a quarter of the loads, and the same floats.",
    {"TSM": 64, "TSN": 64, "TSK": 16, "WPTM": 8, "WPTN": 8},
)
check_15_3 = _ceiling(
    15, 0.8, (_sums, 16, "sums per work-item"), "Which of its inputs can you lower?"
)


def _staged(m, n, k, stages, lanes, *, floats=1, multiplied=1):
    """Bytes of the stages, and cycles in which a copy may arrive."""
    return 4 // floats * stages * k * (m + n), (stages - multiplied) * m * n * k / lanes


check_16_1 = _function(
    _staged,
    [(256, 128, 8, 3, 128), (128, 64, 16, 2, 128), (64, 64, 8, 4, 64)],
    "each further stage takes memory for a tile, and gives a copy the time of a tile.",
    [
        (partial(_staged, floats=4), "Those are floats; a float has four bytes."),
        (partial(_staged, multiplied=0), "One of the stages is multiplied: no copy goes there."),
        (lambda *case: _staged(*case[:4], 1), "The chip makes `lanes` multiply-adds per cycle."),
    ],
)
_LOOP = r"for \(int k = 0; k < TSK[\s\S]*"
check_16_2 = _kernel(
    16,
    [(64, 64, 8), (64, 128, 40), (128, 64, 64)],
    [
        (_LOOP + r"fragment\([\s\S]*k\s*\+\s*1", "load the fragments of step k + 1 in the loop."),
        (
            _LOOP + r"AWAIT\(",
            "AWAIT the copies before reading the next stage; a CPU never notices.",
        ),
        (
            _LOOP + r"AWAIT\(\s*STAGES\s*-\s*2\s*\)",
            "the next tile must have arrived: all batches but the last STAGES - 2.",
        ),
        (
            _LOOP + r"AWAIT\([\s\S]*barrier\(",
            "AWAIT is for this work-item's copies; a barrier behind it waits for everybody's.",
        ),
    ],
    [],
    "the fragments of a step are loaded while the step before is multiplied, across tiles, too.",
    {"TSM": 64, "TSN": 64, "TSK": 8, "WPTM": 8},
)


@_safely
def check_16_3(settings):
    params = _settings(16, settings)
    items, block = gemmlab.catalog[16].local_size(params)[0], params["WPTM"]
    registers = items * (8 * block + 2 * (block + 8))
    if registers > 65536:
        raise _NotYet(f"sums and fragments take {registers:,} registers; there are 65,536.")
    terms = params["TSM"] * params["TSN"] * params["TSK"]
    cycles = (params["STAGES"] - 1) * terms // model.H200.lanes
    words = f"{cycles:,} cycles for a copy."
    hint = "What does a larger tile cost, and what one more stage?"
    return gemmlab.verdict(cycles >= 4096, words, f"{words} {hint}")


def _pieces(group, groups, tiles, steps):
    return schedules.pieces(tiles, steps, groups)[group]


def _whole_tiles(group, groups, tiles, steps):
    first, end = (tiles * g // groups for g in (group, group + 1))
    return [(tile, 0, steps) for tile in range(first, end)]


def _across_tiles(*case):
    return [(*_pieces(*case)[0][:2], sum(number for _, _, number in _pieces(*case)))]


def _to_the_end(*case):
    return [(tile, first, first + number) for tile, first, number in _pieces(*case)]


check_17_1 = _function(
    _pieces,
    [(0, 4, 3, 8), (1, 4, 3, 8), (2, 4, 5, 7), (3, 4, 5, 7), (5, 8, 2, 16), (1, 3, 3, 4)],
    "from line*g/G to line*(g + 1)/G, cut where a tile ends.",
    [
        (_whole_tiles, "Those are whole tiles; the line of steps is cut, not the line of tiles."),
        (
            _across_tiles,
            "A piece ends with its tile; the rest is the next one's, from its step 0 on.",
        ),
        (_to_the_end, "The third number is how many steps it does, not where it ends."),
    ],
)
check_17_2 = _kernel(
    17,
    [(320, 384, 16), (192, 640, 32), (64, 64, 24)],
    [
        (
            r"band\s*=\s*tile\s*/\s*\(\s*ORDER\s*\*\s*tiles_m\s*\)",
            "a band of ORDER columns has ORDER*tiles_m tiles: begin with the line of `band`.",
        ),
        (r"tiles_n\s*-\s*band", "the last band has only min(ORDER, tiles_n - band) columns."),
        (
            r"m0\s*=\s*\(?\s*tile\s*%\s*\(\s*ORDER\s*\*\s*tiles_m\s*\)\s*/",
            "the number inside the band, divided by its columns, is the row of tiles.",
        ),
    ],
    [],
    "along a row of the band, then on to the next row. For equal shares `fixup.cl` would have to "
    "count so, too.",
    {"TSM": 64, "TSN": 64, "ORDER": 4, "GROUPS": 0},
)


@_safely
def check_17_3(place):
    rows, columns, at_once = 32, 64, 132

    def mean(order):
        """Floats per step of k that a wave wants, on average."""
        waves = [order[first : first + at_once] for first in range(0, len(order), at_once)]
        return np.mean([256 * len({m for m, _ in w}) + 128 * len({n for _, n in w}) for w in waves])

    found = [tuple(map(int, _ask(place, tile, rows, columns))) for tile in range(rows * columns)]
    for m, n in found:
        if not (0 <= m < rows and 0 <= n < columns):
            raise _NotYet(f"{m, n} is outside C, which has {rows} rows and {columns} columns.")
    if len(set(found)) < len(found):
        raise _NotYet(f"{len(found) - len(set(found))} tiles are never computed, others twice.")
    bands = mean([schedules.ordered(tile, rows, columns, 8) for tile in range(rows * columns)])
    level = mean(found) / bands
    words = f"a wave wants {mean(found):,.0f} floats per step: {level:.3f} of bands of eight."
    return gemmlab.verdict(level <= 1, words, f"{words} Make the first wave a compact block.")


check_18_1 = _function(
    lambda p, rounded: 2.0 ** -(p + 1) if rounded else 2.0**-p,
    [(10, True), (10, False), (7, True), (7, False), (3, True), (3, False), (23, True)],
    "half of the last place that stays, or all of it: rounding gains a bit.",
    [
        (lambda p, rounded: 2.0**-p, "The nearest number is at most half a step away."),
        (lambda p, rounded: 2.0 ** -(p + 1), "Cutting always goes to the number below."),
        (lambda p, rounded: 2.0**-p if rounded else 2.0 ** -(p + 1), "It is the other way round."),
    ],
)


@_safely
def check_18_2(split):
    rng = np.random.default_rng(18)
    x = (rng.standard_normal(4096) * 2.0 ** rng.integers(-60, 60, 4096)).astype(np.float32)
    big, small = (np.asarray(part) for part in _ask(split, x.copy()))
    for name, part in (("big", big), ("small", small)):
        if part.dtype != np.float32 or part.shape != x.shape:
            raise _NotYet(f"{name} is {part.dtype} of shape {part.shape}, not float32 {x.shape}.")
        if (part.view(np.uint32) & 0x1FFF).any():
            raise _NotYet(f"{name} has bits that TF32 does not: the last 13 must be zero.")
    worst = float(np.max(np.abs(x - big.astype(np.float64) - small) / np.abs(x)))
    hint = "."
    if np.array_equal(big, tf32.cut(x)):
        hint = ": big is cut off, not rounded, and that costs a bit."
    elif not small.any():
        hint = ": small is zero; it is what big leaves of x."
    words = f"the sum is off by up to {worst:.1e} of x"
    return gemmlab.verdict(
        worst <= 2.0**-22, f"{words}: two parts hold 23 of 24 bits.", words + hint
    )


@_safely
def check_18_3(answer):
    parts, added = answer
    for bits, hint in (
        ("0xffff0000", "bfloat16 is a float's upper half: BIG masks with 0xffff0000u."),
        ("0x8000", "BIG rounds to nearest: add half of the last place that stays, 0x8000u."),
    ):
        if bits not in parts.lower():
            raise _NotYet(hint)
    # one call of `mma` for the three of kernel 18, which adds all products
    text = re.sub(r" *sum = mma\(sum.*SMALL.*\n", "", sources.read(gemmlab.catalog[18].file))
    text = re.sub(r"cut\(part\((\w+\[.+?\]), part_\w\)\)", r"\1", text)
    text = re.sub(r"\b(x\d)\*(y\d)\b", r"added(\1, \2)", text)
    function = f"static inline float added(float a, float b) {{ return {added}; }}"
    text = text.replace("static inline float4 mma", f"{function}\nstatic inline float4 mma")
    text = text.replace("#define BIG 0\n#define SMALL 1\n", f"{parts.strip()}\n")
    text = re.sub(r"which == BIG", "which == 0", text)
    text = re.sub(r"\bBIG,", "0,", text)
    params = {"TSM": 64, "TSN": 64, "TSK": 8, "TENSOR": 0}
    wrong = _wrong(18, text, [(64, 64, 40), (64, 128, 24)], params)
    if wrong:
        raise _NotYet(wrong)
    result = gemmlab.trial(18, 64, 64, 40, source=text, params=params, repeats=1).result
    hint = f"the error is {result.error:.0e}: some product of parts is missing."
    because = "three numbers of 8 digits hold all 24 of a float; six products make one."
    return gemmlab.verdict(result.error <= result.bound / 10, because, hint)


check_19_1 = _number(
    lambda: 64,
    "a float of B meets the 64 rows of A's part.",
    {
        128: "that is how often it uses a float of A.",
        8: "those are the steps of k; each has its own floats.",
        65536: "those are all its multiply-adds; how many floats of B does it read for them?",
    },
    "64*128*8 multiply-adds, and 8*128 floats of B.",
)
check_19_2 = _function(
    lambda k, n, row: (k // 4 * row + n) * 4 + k % 4,
    [(0, 0, 130), (5, 3, 130), (7, 127, 130), (13, 64, 130), (2, 1, 34)],
    "[k/4][n][k%4]: the row of vectors, the vector, the float.",
    [
        (lambda k, n, row: k * row + n, "In that tile rows are steps of k, as in kernel 18."),
        (lambda k, n, row: (k // 4 * row + n) * 4, "Which of the four floats is it?"),
        (lambda k, n, row: k // 4 * row + n * 4 + k % 4, "A row has `row` vectors of 4 floats."),
    ],
)


@_safely
def check_19_3(split):
    code = re.sub(r"//.*", "", split)
    for wanted, hint in (
        (r"BIG\)", "an instruction truncates: round with BIG, or the parts lose a bit."),
        (r"to_small", "the small parts belong to to_small; nothing is stored there yet."),
    ):
        if not re.search(wanted, code):
            raise _NotYet(hint)
    text = sources.read(gemmlab.catalog[19].file)
    text = re.sub(r"(void split\(.*\)\n\{\n)[^}]*\}\n\}", lambda m: f"{m[1]}{code}}}", text)
    params = {"TSM": 128, "TSK": 8, "TENSOR": 0}
    wrong = _wrong(19, text, [(128, 128, 24), (128, 256, 16)], params)
    because = "each number is split once, for all 256 rows that will meet it."
    return gemmlab.verdict(not wrong, because, wrong)


check_20_1 = _number(
    lambda: cluster.Cut(4096, 4096, 4096, 2, 2).moved_bytes / 2**20,
    "16 MiB of A and 16 MiB of B; C stays where it is computed.",
    {
        64: "that is what it holds of A and B; half of each was there before.",
        96: "that is all that it holds; C is computed here, and some of A and B was there before.",
        16: "that is A alone; B is received as well.",
    },
    "how large is a device's strip of A, and how much of it was there before?",
)


def _received(m, n, k, rows, columns):
    """Elements that a device of a grid receives."""
    return m * k / rows * (1 - 1 / columns) + k * n / columns * (1 - 1 / rows)


def _strips(m, n, k, rows, columns):
    return m * k / rows + k * n / columns


def _exchanged(m, n, k, rows, columns):
    return m * k / rows * (1 - 1 / rows) + k * n / columns * (1 - 1 / columns)


def _everything(m, n, k, rows, columns):
    return (m * k + k * n) * (1 - 1 / (rows * columns))


check_20_2 = _function(
    _received,
    [(64, 32, 128, 2, 4), (64, 64, 64, 8, 8), (100, 100, 100, 1, 1), (40, 50, 60, 1, 5)],
    "a strip of A and one of B, less what was there before.",
    [
        (_strips, "Some of each strip was there before."),
        (_exchanged, "A row of the grid, which has `columns` devices, shares a strip of A."),
        (_everything, "That is all of A and B; a device needs a strip of each."),
    ],
)


class _Term:
    """A term of a sum that counts how many sums one after the other led to it."""

    def __init__(self, value: int, depth: int = 0):
        self.value, self.depth = value, depth

    def __add__(self, other):
        if other == 0:
            return self
        return _Term(self.value + other.value, 1 + max(self.depth, other.depth))

    __radd__ = __add__


@_safely
def check_20_3(tree):
    for number in (8, 1, 2, 5, 7):
        given, deep = _ask(tree, [_Term(3**i) for i in range(number)]), (number - 1).bit_length()
        if not isinstance(given, _Term):
            raise _NotYet(f"for {number} matrices it gives a {type(given).__name__}, not a sum.")
        if given.value != sum(3**i for i in range(number)):
            raise _NotYet(f"for {number} matrices some are missing from the sum, or there twice.")
        if given.depth > deep:
            raise _NotYet(
                f"the sum of {number} matrices is right, but {given.depth} sums follow one after "
                f"the other; a tree is {deep} deep."
            )
    because = "8 products are added in 3 steps, by several workers, and no worker holds them all."
    return gemmlab.verdict(True, because, "")


check_21_1 = _number(
    lambda: 1 / (8 * (1 + 1 / 8)),
    "8 warps of multiply-adds per access, and 1 1/8 accesses per multiply-add.",
    {
        1 / 4.5: "that is today's H200; the same memory has more multiply-adds to feed.",
        1 / 2.25: "more multiply-adds per cycle make the share smaller, not larger.",
        1 / 8: "nearly: for the float of B there is also an eighth of a float of A.",
    },
    "how many multiply-adds of a warp fit into the time of one access, and how many accesses does "
    "each need?",
)
check_21_2 = _function(
    lambda t, b, lanes, words, fetched: min(1, words * b / (2 * lanes), fetched * t / (2 * lanes)),
    [
        (128, 8, 128, 32, 5),
        (16, 1, 128, 32, 5),
        (64, 4, 128, 32, 1),
        (32, 2, 192, 32, 4),
        (128, 16, 64, 32, 8),
    ],
    "min(1, words block / 2 lanes, fetched tile / 2 lanes): the scarcest memory decides.",
    [
        (
            lambda t, b, lanes, w, f: min(1, w * b / lanes, f * t / lanes),
            "It needs two floats, not one.",
        ),
        (lambda t, b, lanes, w, f: min(w * b, f * t) / (2 * lanes), "No share is above 1."),
        (lambda t, b, lanes, w, f: max(w * b, f * t) / (2 * lanes), "The lowest roof counts."),
    ],
)


@_safely
def check_21_3(answer):
    kernel, settings, text = answer
    if not text.strip():
        raise _NotYet("there is no text of a kernel yet.")
    one = board.attempt(kernel, settings, text)
    if one.share < 0.1:
        raise _NotYet(f"right, but {one.share:.2f} of the goal: a tenth or more passes.")
    board.Board().add(one)
    return gemmlab.verdict(True, str(one), "")
