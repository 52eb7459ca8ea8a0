"""The checks of the exercises. Each shows a verdict and returns True or False; none raises."""

import re

import numpy as np

import gemmlab
from gemmlab import check, model, simt
from gemmlab.bench import edges, records
from gemmlab.bench import tiles as rates
from gemmlab.catalog import sources
from gemmlab.family import Configuration, split, tiles, write
from gemmlab.model import cluster, divergence, tf32
from gemmlab.widgets import board


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


def _safely(check):
    """An answer that raises is a wrong answer, and its error is the hint."""

    def checked(answer):
        try:
            if answer is None:
                raise _Missing
            if isinstance(answer, str) and answer.strip().isdigit():
                raise _Missing(f"{answer!r} is a text; a number has no quotes around it.")
            return check(answer)
        except _Missing as missing:
            return gemmlab.verdict(False, "", str(missing))
        except Exception as error:
            return gemmlab.verdict(False, "", f"your answer raises {type(error).__name__}: {error}")

    return checked


def _hint(answer, hints: dict, otherwise: str) -> str:
    """The hint for a typical wrong answer."""
    return next((hint for value, hint in hints.items() if answer == value), otherwise)


def _right_everywhere(kernel: int, source: str, sizes, params=None) -> str:
    """Run a kernel's text in the child process at several sizes: "" if it is right, else what went wrong.

    A text that has a race is not right, even if the device gets it right by luck.
    """
    for m, n, k in sizes:  # the source begins in the cell's second line
        outcome = gemmlab.trial(kernel, m, n, k, source=f"\n{source}", params=params, repeats=1)
        if not outcome.ok:
            return f"at M={m}, N={n}, K={k}: {outcome.verdict}"
    return ""


@_safely
def check_00_1(answer):
    m, n, k = 300, 200, 100
    hints = {
        m * n * k: "that counts the terms; each is a multiplication and an addition.",
        m * n * (2 * k - 1): "close: that leaves out the first addition, to zero; the field counts it.",
        m * n: "that is the number of elements of C; how much work is one of them?",
    }
    right = "M N elements of C, K terms each, two operations a term."
    return gemmlab.verdict(
        answer == model.flops(m, n, k), right, _hint(answer, hints, "count the terms of one element.")
    )


@_safely
def check_00_2(gflops):
    cases = [(100, 200, 300, 0.5), (64, 64, 64, 1e-3), (4096, 4096, 4096, 0.01)]
    got = [_ask(gflops, *case) / model.gflops(*case) for case in cases]
    hints = {0.5: "half of what it should be: a term is two operations.", 1e9: "that is FLOPS; giga is 10^9."}
    hint = _hint(round(got[0], 6), hints, f"for {cases[0]} it gives {gflops(*cases[0])!r}.")
    return gemmlab.verdict(all(abs(g - 1) < 1e-6 for g in got), "2 M N K operations over the time, in 10^9.", hint)


@_safely
def check_00_3(source):
    wrong = _right_everywhere(1, source, [(64, 64, 64), (32, 64, 96), (64, 32, 7)])
    if "M=32" in wrong or "M=64, N=32" in wrong:
        wrong = f"right for square matrices, but {wrong}. Which length lies between two columns of B?"
    return gemmlab.verdict(not wrong, "B is K x N, so column n begins at n*K.", wrong)


@_safely
def check_01_1(answer):
    ts, k = 32, 64
    hints = {
        2 * k: "that is one work-item; a work-group has TS x TS of them.",
        ts * ts * k: "that is A alone; B is read as often.",
        2 * ts * k: "that many different floats there are; the kernel asks for them more than once.",
        4 * 2 * ts * ts * k: "those are bytes; floats were asked for.",
    }
    ok = answer == model.loads(1, {"TS": ts})["global"] * ts * ts * k
    return gemmlab.verdict(
        ok,
        "two loads a term, K terms, TS x TS work-items.",
        _hint(answer, hints, "start with one work-item: how many floats does it load for one term?"),
    )


@_safely
def check_01_2(intensity):
    cases = [(64, 64, 64), (256, 128, 32), (1000, 1000, 1)]
    wanted = [model.intensity(model.flops(*c), model.requested_bytes(1, *c)) for c in cases]
    got = [_ask(intensity, *case) for case in cases]
    if all(abs(g / w - 1) < 1e-9 for g, w in zip(got, wanted, strict=True)):
        return gemmlab.verdict(True, "almost a quarter of an operation a byte, whatever the size.", "")
    hint = f"for M, N, K = {cases[2]} it gives {got[2]:.4g}, expected {wanted[2]:.4g}."
    if all(abs(g - 0.25) < 1e-9 for g in got):
        hint = "you left out the stores of C; with K = 1 they count. " + hint
    elif abs(got[0] / wanted[0] - 4) < 1e-6:
        hint = "those are operations a float; a float has four bytes. " + hint
    return gemmlab.verdict(False, "", hint)


@_safely
def check_01_3(source):
    code = re.sub(r"//.*", "", source)
    row = re.search(r"const int m = ([^;]*);", code)
    column = re.search(r"const int n = ([^;]*);", code)
    if not row or not column:
        return gemmlab.verdict(False, "", "keep the two lines that begin with `const int m` and `const int n`.")
    if not re.search(r"get_(local|global)_id\(1\)", row[1]) or not re.search(r"get_(local|global)_id\(0\)", column[1]):
        return gemmlab.verdict(False, "", "dimension 0 of the work-group does not walk along the columns yet.")
    wrong = _right_everywhere(1, source, [(64, 64, 32), (32, 96, 40), (96, 32, 5)])
    if wrong and re.search(r"get_(group|global)_id\(1\)", row[1]):
        wrong += " The grid has M/TS groups in dimension 0: exchange the local identifiers only."
    return gemmlab.verdict(not wrong, "the same product, by other hands. Measure it: was it slower?", wrong)


def _number(right, because: str, hints: dict, otherwise: str):
    """The check of a number to read off. `right` is called, so that formulas give the answer."""

    @_safely
    def checked(answer):
        ok = isinstance(answer, (int, float)) and abs(answer - right()) <= 1e-6 * abs(right())
        return gemmlab.verdict(ok, because, _hint(answer, hints, otherwise))

    return checked


def _function(right, cases, because: str, typical: list, otherwise: str = ""):
    """The check of a function: `typical` are (wrong function, hint) for answers that agree with it everywhere."""

    @_safely
    def checked(answer):
        got = [_ask(answer, *case) for case in cases]

        def same(other):
            wanted = [other(*case) for case in cases]
            return all(_close(g, w) for g, w in zip(got, wanted, strict=True))

        case, given = next(((c, g) for c, g in zip(cases, got, strict=True) if not _close(g, right(*c))), (cases[0], 0))
        hint = next((hint for wrong, hint in typical if same(wrong)), otherwise)
        said = f"for {', '.join(map(str, case))} it gives {given}, expected {right(*case)}. {hint}"
        return gemmlab.verdict(same(right), because, said.strip())

    return checked


def _close(given, wanted) -> bool:
    if isinstance(wanted, (tuple, list)):
        return len(given) == len(wanted) and all(map(_close, given, wanted))
    return abs(given - wanted) <= 1e-9 * max(1, abs(wanted))


def _kernel(number: int | str, sizes, wanted: list, because: str, params=None):
    """The check of a changed kernel: `wanted` are (pattern, hint) that its code must hold; then it must be right."""

    @_safely
    def checked(source):
        code = re.sub(r"//.*", "", source)
        for pattern, hint in wanted:
            if not re.search(pattern, code):
                return gemmlab.verdict(False, "", hint)
        wrong = _right_everywhere(number, source, sizes, params)
        return gemmlab.verdict(not wrong, because, wrong)

    return checked


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
check_02_2 = _function(
    lambda m, n, k, ts: 2 * m * n * k // ts,
    [(64, 64, 64, 16), (32, 64, 96, 8), (128, 32, 64, 32)],
    "(M/TS)(N/TS) groups, K/TS steps, 2 TS² floats: 2 M N K / TS.",
    [
        (lambda m, n, k, ts: 2 * m * n * k, "That is kernel 1."),
        (lambda m, n, k, ts: m * n * k // ts, "Two tiles are loaded in each step."),
        (lambda m, n, k, ts: 2 * m * n * k // ts**2, "A float is used TS times, not TS² times."),
    ],
)
check_02_3 = _kernel(
    2,
    [(32, 32, 32), (32, 48, 16), (16, 32, 64)],
    [
        (r"Btile\[k\]\[tn\]", "keep the compute line, which reads Btile[k][tn]; change the load instead."),
        (r"Btile\[[^\]]*\]\[[^\]]*\]\s*=", "keep a line that stores to Btile."),
    ],
    "Btile lies as [k][n] now; the work-item that fetched row tm stores it as row tm.",
    {"TS": 16},
)
check_03_1 = _number(
    lambda: 32 * 32 // 8,
    "TS x TS/WPT: 32 x 4.",
    {
        1024: "that is the number of elements in the tile; each work-item computes WPT of them.",
        256: "that is TS times WPT; WPT divides.",
        4: "those are the columns of work-items; there are TS rows of them.",
    },
    "how many elements has the tile, and how many of them does one work-item compute?",
)
check_03_2 = _function(
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
check_03_3 = _kernel(
    3,
    [(32, 32, 32), (32, 64, 32), (64, 32, 96)],
    [(r"Btile\[\s*tn\s*\*\s*WPT\s*\+\s*j\s*\]", "keep the compute line: it reads Btile[tn*WPT + j][k].")],
    "accumulator j belongs to column tn*WPT + j of the tile. Is it faster or slower than before?",
    {"TS": 32, "WPT": 8},
)
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
check_04_2 = _function(
    lambda i, width: divmod(i, width),
    [(0, 4), (5, 4), (23, 8), (7, 2)],
    "the vectors lie one after the other.",
    [
        (lambda i, width: (i % width, i // width), "Those are the right numbers in the wrong order."),
        (lambda i, width: (i * width, 0), "A vector holds several floats, so its number is smaller than the float's."),
    ],
)
check_04_3 = _kernel(
    4,
    [(32, 32, 32), (32, 64, 96), (64, 32, 32)],
    [
        (r"\bfma\s*\(", "there is no call of fma in the kernel yet."),
        (r"acc\s*=\s*fma\s*\(", "fma returns the new sum: assign it, acc = fma(...)."),
    ],
    "one rounding instead of two, and on most devices the instruction that was used anyway.",
    {"TS": 32, "WIDTH": 4},
)


def _hole(number: int, sizes, must: list, typical: list, because: str, params: dict):
    """The check of a hole in a kernel, in steps: it compiles, is right and has no race; then how fast it is.

    Args:
        number, sizes, params: the kernel, the sizes at which it must be right, and its parameters.
        must: (pattern, hint): what the text has to contain, whatever it computes.
        typical: (pattern, hint) for texts that are wrong: the first pattern that is found says why.
        because: what a right text shows.
    """

    @_safely
    def checked(source):
        code = re.sub(r"//.*", "", source)
        missing = next((hint for pattern, hint in must if not re.search(pattern, code)), None)
        if missing:
            return gemmlab.verdict(False, "", missing)
        wrong = _right_everywhere(number, source, sizes, params)
        if wrong:
            hint = next((hint for pattern, hint in typical if re.search(pattern, code)), "")
            return gemmlab.verdict(False, "", f"{wrong}. {hint}".strip())
        return gemmlab.verdict(True, f"{because} {_beside(number, source, params)}", "")

    return checked


def _beside(number: int, source: str, params: dict) -> str:
    """How fast a right text is beside the kernel as it was, in a sentence."""
    size = 256 if gemmlab.default_device().kind == "CPU" else 2048
    texts = {"your text": f"\n{source}", "the kernel as it was": None}
    runs: dict[str, list] = {name: [] for name in texts}
    for _ in range(3):  # in turns, so that whatever else the machine does hits both
        for name, text in texts.items():
            runs[name].append(gemmlab.trial(number, size, source=text, params=params, repeats=5).result)
    if not all(all(found) for found in runs.values()):
        return "How fast it is could not be measured."
    sentence = records.told_apart({name: records.pooled(found) for name, found in runs.items()}).splitlines()[-1]
    return sentence[0].upper() + sentence[1:]


check_05_1 = _number(
    lambda: model.stride_turns(32),
    "every row begins in bank 0.",
    {
        16: "that is TSK = 16, where rows begin in two banks.",
        1: "that would need rows that begin in 32 different banks.",
        2: "how many different banks do the rows begin in?",
    },
    "row i begins at float 32 i: in which bank is that?",
)
check_05_2 = _function(
    lambda stride: model.stride_turns(stride),
    [(stride,) for stride in (1, 2, 3, 8, 12, 16, 17, 18, 24, 32, 33, 40, 64)],
    "gcd(stride, 32): an odd stride costs one turn.",
    [
        (lambda s: 32 // model.stride_turns(s), "That is the number of banks that are hit, not of lanes in each."),
        (lambda s: min(s, 32), "Only what the stride has in common with 32 counts."),
        (lambda s: s, "Only what the stride has in common with 32 counts."),
        (lambda s: s % 32, "Stride 17 leaves 17, and costs one turn."),
    ],
)
check_05_3 = _kernel(
    5,
    [(32, 32, 16), (32, 64, 48), (64, 32, 32)],
    [
        (r"Btile\[TSK\]\[TS\]", "declare the tile as Btile[TSK][TS], without padding."),
        (
            r"(?s)\A(?!.*Btile\[\s*tm\s*\]\[)",
            "the load stores to Btile[tm][j]: tm runs up to TS, and there are TSK rows now.",
        ),
        (
            r"(?s)\A(?!.*Btile\[[^\]]*\]\[\s*k\s*\])",
            "the compute line reads k as the second index; it is the first now.",
        ),
    ],
    "no conflict, and no memory lost: kernel 7 will lay it out like this.",
    {"TS": 32, "TSK": 16, "WPT": 8},
)
check_06_1 = _number(
    lambda: 1 / model.loads(6, {"WPTM": 8, "WPTN": 8})["local"],
    "64 multiply-adds for 16 loads.",
    {
        64: "those are the multiply-adds of a step; how many floats does it load for them?",
        8: "each float is used 8 times, but a multiply-add needs two of them.",
        0.25: "that is loads per multiply-add, the other way up.",
        16: "those are the loads of a step.",
    },
    "count one step of k: its multiply-adds, over the floats it loads.",
)
check_06_2 = _function(
    lambda items, registers: 65536 // (items * registers),
    [(256, 128), (256, 64), (1024, 32), (256, 96), (64, 224)],
    "whole groups only: the rest of the registers stays empty.",
    [
        (lambda items, registers: 65536 / (items * registers), "Half a work-group cannot run."),
        (lambda items, registers: 65536 // registers, "Those are work-items."),
        (lambda items, registers: 2048 // items, "That is the limit by work-items; registers were asked for."),
    ],
)
check_06_3 = _kernel(
    6,
    [(32, 32, 16), (64, 32, 32), (32, 96, 48)],
    [
        (r"(?<!_)float\s+a\s*=", "elements of A should come one at a time, into a `const float a`."),
        (r"(?s)\A(?!.*\ba\s*\[)", "the array a[WPTM] is still there; one `a` at a time is enough."),
    ],
    "the same loads, the same result, and WPTM - 1 registers fewer in the text. Did the compiler care?",
    {"TSM": 32, "TSN": 32, "TSK": 16, "WPTM": 4, "WPTN": 2},
)


check_07_1 = _number(
    lambda: 128 * 16 // 256 // 4,
    "2048 floats over 256 work-items are 8 each: two vectors of 4.",
    {
        8: "those are floats; a load brings 4 of them.",
        4: "that would be for both tiles, A's and B's.",
        512: "that is the whole work-group.",
    },
    "how many floats has the tile, and how many work-items share them?",
)
check_07_2 = _function(
    lambda tsm, tsn, tsk, wptm, wptn, width: tsm * tsk // ((tsm // wptm) * (tsn // wptn)) // width,
    [(128, 128, 16, 8, 8, 4), (64, 64, 16, 4, 4, 1), (32, 32, 8, 4, 4, 2), (64, 128, 16, 8, 8, 2)],
    "TSK WPTM WPTN / (TSN WIDTH): the rules of the kernel ask that this comes out even.",
    [
        (lambda tsm, tsn, tsk, wptm, wptn, width: tsm * tsk // ((tsm // wptm) * (tsn // wptn)), "Those are floats."),
        (lambda tsm, tsn, tsk, wptm, wptn, width: tsm * tsk // width, "That is the whole work-group."),
    ],
)
check_07_3 = _kernel(
    7,
    [(32, 32, 16), (32, 64, 32), (64, 32, 48)],
    [(r"Af\[\s*k\s*\*\s*TSM\s*\+\s*tm\s*\*\s*WPTM\s*\+\s*i\s*\]", "keep reading Af[k*TSM + tm*WPTM + i].")],
    "rows tm*WPTM + wm. On banks of 4 bytes this costs WPTM turns where the old order cost one.",
    {"TSM": 32, "TSN": 32, "WPTM": 4, "WPTN": 2, "WIDTH": 2},
)
check_08_1 = _number(
    lambda: (8 + 1) / 64,
    "nine loads for 64 multiply-adds, almost half of what it was.",
    {
        0.25: "that is the plain path.",
        0.125: "that leaves out the one load of B.",
        0.015625: "that is B alone; A is still loaded in full.",
        9: "those are the loads of a step; how many multiply-adds share them?",
    },
    "count the loads of one step k, and divide by its multiply-adds.",
)
check_08_2 = _function(
    lambda lane, j, rtsm: lane // rtsm * rtsm + j,
    [(0, 3, 16), (5, 2, 8), (17, 0, 16), (31, 7, 8), (20, 1, 4)],
    "the row's first lane, plus j.",
    [
        (lambda lane, j, rtsm: j, "That is right for the first row of a warp only."),
        (lambda lane, j, rtsm: lane + j, "Count from the first lane of the row, not from this lane."),
        (lambda lane, j, rtsm: lane % rtsm + j, "That is the place in the row; the row's first lane is needed."),
    ],
)
check_08_3 = _kernel(
    3,
    [(32, 32, 32), (64, 32, 64), (32, 96, 32)],
    [
        (r"async_work_group_copy\s*\(", "there is no call of async_work_group_copy yet."),
        (r"wait_group_events\s*\(", "nobody waits for the copy: wait_group_events(1, &e)."),
    ],
    "a portable request for hardware that copies. Was it faster here?",
    {"TS": 32, "WPT": 8},
)


check_09_1 = _number(
    lambda: 2 * 16 * (128 + 128) * 4,
    "2 buffers, 16 steps, 128 + 128 floats, 4 bytes.",
    {
        16384: "that is one buffer for each tile.",
        8192: "those are floats; a float has 4 bytes.",
        65536: "that counts each tile four times; there are two buffers.",
    },
    "count the floats of one tile of A first.",
)
check_09_2 = _function(
    lambda tiles, load, compute, buffers: max(s.end for s in model.timeline(tiles, load, compute, buffers)),
    [(4, 3, 2, 1), (4, 3, 2, 2), (6, 1, 5, 2), (1, 2, 3, 2), (8, 2, 2, 2), (5, 1, 4, 1)],
    "load + (tiles - 1) max(load, compute) + compute with two buffers.",
    [
        (lambda tiles, load, compute, buffers: tiles * (load + compute), "The second buffer must change something."),
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
check_09_3 = _kernel(
    9,
    [(32, 32, 16), (32, 64, 48), (64, 32, 32)],
    [
        (r"(?s)\A(?!.*\bif\s*\()", "there is still an `if` in the kernel."),
        (
            r"(?s)\A(?!.*k1\s*=\s*k0\s*\+\s*TSK\s*;.*[AB]\[\s*\(\s*k1\s*\+)(?!.*[AB]\[\s*\(\s*k0\s*\+\s*TSK)",
            "the last turn still fetches from step k0 + TSK on, outside A and B: a right result is luck.",
        ),
        (r"Atile\[next\]", "keep the second buffer."),
    ],
    "the last turn fetches a tile that nobody needs, instead of asking whether there is one.",
    {"TSM": 32, "TSN": 32, "TSK": 16, "WPTM": 4, "WPTN": 4},
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
            "That is padding over useful work; the share of all was asked for.",
        ),
        (
            lambda m, n, k, x, y, z: m * n * k / (_whole(m, x) * _whole(n, y) * _whole(k, z)),
            "That is the useful share.",
        ),
        (lambda m, n, k, x, y, z: 1 - m * n / (_whole(m, x) * _whole(n, y)), "K is padded too."),
    ],
)


#: The text from where the next tiles are loaded; the code before it loads the first ones in much the same way.
_NEXT = r"(?s)if\s*\(\s*k1\s*<\s*K\s*\)"

check_10_2 = _hole(
    10,
    [(64, 64, 32), (128, 32, 48), (64, 32, 16)],
    [
        (_NEXT + r".*Atile\[[^;]*\]\s*=[^=]", "nothing is stored to Atile yet: Atile[next][j][i] = ..."),
        (_NEXT + r".*Btile\[[^;]*\]\s*=[^=]", "nothing is stored to Btile yet, which wants a loop of its own."),
    ],
    [
        (_NEXT + r"(?!.*TSK\s*\*\s*TSN)", "The loop over B's tile ends where that has no more vectors: TSK*TSN/WIDTH."),
        (_NEXT + r"(?!.*[%/]\s*\(?\s*TSN)", "A column of B's tile has TSN/WIDTH vectors: i and j follow from these."),
        (_NEXT + r".*\b[AB]\[\s*\(?\s*j\b", "Step j of the next tiles is step k1 + j of A and of B."),
        (_NEXT + r".*tile\[\s*now\s*\][^;]*=[^=]", "The group computes from buffer `now`: fill buffer `next`."),
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
        return gemmlab.verdict(False, "", f"{sums} sums per work-item; at most 100 were asked for.")
    if memory > 48 * 1024:
        return gemmlab.verdict(False, "", f"its tiles take {memory:,} bytes; there are {48 * 1024:,}.")
    roof = model.ceilings(10, params, model.H200, 1025)[0]
    words = f"the lowest ceiling at 1025 is {roof.share:.1%}, that of {roof.resource}."
    return gemmlab.verdict(roof.share >= 0.66, words, f"{words} Is that because of the tile's size or its blocks?")


check_11_1 = _function(
    lambda rx, ry, width: rx // width * ry + rx // width + 1,
    [(48, 8, 16), (32, 12, 16), (8, 4, 4), (16, 8, 8)],
    "VX RY sums, VX of A, one of B. Does the search's choice for your device fit into 16 or 32?",
    [
        (lambda rx, ry, width: rx // width * ry, "Those are the sums alone."),
        (lambda rx, ry, width: rx * ry + rx + 1, "That counts floats; a register holds width of them."),
        (lambda rx, ry, width: rx // width * ry + rx // width + ry, "One element of B at a time is enough."),
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
        (r"(?s)\A(?!.*acc\[[^;]*=[^;]*\ba\[)", "Nothing is multiplied yet: acc[j][i] += a[i] * b, for all i and j."),
        (r"vload4\([^;k]*;", "The four of step k begin at B[k*N + n]: there is no k in the address."),
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
    one = board.attempt(board.fitting(), 11, settings, sources.read(spec.file))
    words = f"{one.challenge}: {one}"
    return gemmlab.verdict(
        one.share >= 0.1, words, f"{words}. From a tenth on it counts: larger blocks, wider vectors?"
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
        (r"\A(?![\s\S]*\?\s*[AB]\[)", "A or B is still chosen by a guard: load always, and multiply."),
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
        (r"(?s)\A(?!.*\bM\s*-\s*1)", "A load that is always made needs a place that exists: row min(m0 + tm, M - 1)."),
        (r"(?s)\A(?!.*\bK\s*-\s*1)", "The last tiles may reach beyond K as well: min(k0 + j, K - 1)."),
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
    counts = {x: sum(part.diverging for part in divergence.formula(x, m, n, k, 32).values()) for x in "AB"}
    words = f"{share:.1%} of all warp-phases diverge: {counts['A']} in A and {counts['B']} in B."
    hint = "For each of the two: which size decides whether a warp lies across its edge?"
    return gemmlab.verdict(share >= 0.3, words, f"{words} {hint}")


check_13_1 = _function(
    lambda t, m, rows: (min(t * rows, m - rows), min(rows, m - t * rows)),
    [(0, 100, 32), (3, 100, 32), (2, 96, 32), (2, 11, 4)],
    "moved back only if it must, and owning what nobody owned before.",
    [
        (lambda t, m, rows: (t * rows, min(rows, m - t * rows)), "The last tile would reach beyond the matrix."),
        (lambda t, m, rows: (min(t * rows, m - rows), rows), "A moved tile owns less than it computes."),
        (lambda t, m, rows: (m - rows, m - t * rows), "Only a tile that would reach beyond is moved."),
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
        (_NEXT + r"(?!.*vstore4.*vstore4)", "All four go to the tile: vstore4(a, 0, &Atile[next][j][i])."),
    ],
    "right for any M and N, though a moved tile begins anywhere.",
    {"TSM": 32, "TSN": 32, "TSK": 16, "WPTM": 4, "WPTN": 2},
)


@_safely
def check_13_3(choose):
    ways = ("pad", "guard", "shift", "split")
    found = next(ways for title, ways in edges.recorded().items() if "H200" in title)
    shares = {}
    for size in found["pad"]:
        way = _ask(choose, size)
        if way not in ways:
            return gemmlab.verdict(False, "", f"for {size} it gives {way!r}, which is none of {', '.join(ways)}.")
        shares[size] = found[way][size]["gflops"] / max(found[other][size]["gflops"] for other in ways)
    mean, worst = sum(shares.values()) / len(shares), min(shares, key=lambda size: shares[size])
    words = f"{mean:.3f} of the best of the four, on average."
    why = f"It loses most at {worst}, where {choose(worst)!r} reaches {shares[worst]:.2f} of the best."
    return gemmlab.verdict(mean >= 0.985, words, f"{words} {why}")


@_safely
def check_14_1(tile):
    sizes, others = (480, 336, 160), [{"TSM": 64, "TSN": 64, "TSK": 16}, {"TSM": 32, "TSN": 32}]
    full = tiles.complete_tile(tile)
    for size, name, side in zip(sizes, "MNK", ("TSM", "TSN", "TSK"), strict=True):
        if size % full[side]:
            return gemmlab.verdict(False, "", f"{name} = {size} is no multiple of {side} = {full[side]}.")
    if full["TSM"] * full["TSN"] < 1000:
        few = model.tile_intensity(full["TSM"], full["TSN"])
        return gemmlab.verdict(False, "", f"so small a tile does {few:.0f} operations per element that it loads.")
    lying = (tiles.Lying("N", 0, size) for size in (sizes[0], sizes[2]))
    tiles.configure("s", full, sizes, *lying, False)  # raises where parameters contradict each other
    found = split.launches(sizes, [{"size": 400, "tiles": [*others, tile]}])
    return gemmlab.verdict(len(found) == 1, "one launch, without a single guard.", f"it takes {len(found)} launches.")


@_safely
def check_14_2(text):
    m, n, k = 16, 8, 8
    c = Configuration(beta=True, tile=(8, 8), micro_tile=(2, 2), depth=8)
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
    hint = next((words for words, wrong in hints.items() if np.array_equal(got, wrong)), run.verdict)
    right = run.ok and np.array_equal(got, np.maximum(plain, 0))
    return gemmlab.verdict(right, "a variant that costs an instruction for each element of C, and no pass.", hint)


@_safely
def check_14_3(answer):
    sizes, params = answer
    device, tile = gemmlab.default_device(), tiles.complete_tile(params)
    if not rates.checked(device, "s", tile, sizes):
        return gemmlab.verdict(False, "", "with this tile the product is not exact.")
    ways = {"own": {"kernel": "family", "params": tile}, "selected": {"edges": "split"}}
    best = {
        way: max(rates.rate(device, "s", sizes, 0.03, **options) for _ in range(3)) for way, options in ways.items()
    }
    words = f"{best['own'] / best['selected']:.1f} times as fast as the selection's launches."
    return gemmlab.verdict(best["own"] >= 1.1 * best["selected"], words, words)


check_15_1 = _function(
    lambda p, q, rows: rows * p + 32 // rows * q,
    [(8, 8, 8), (8, 8, 32), (4, 8, 4), (4, 4, 16), (8, 4, 1)],
    "the warp's rows of A and its columns of B. The more square the block, the fewer: 4 or 8 rows of work-items.",
    [
        (lambda p, q, rows: p + q, "That is what one work-item needs."),
        (lambda p, q, rows: 32 * (p + q), "So many are asked for; work-items in a row of the block want the same."),
        (lambda p, q, rows: rows * p + rows * q, "The block has `rows` rows of work-items, and 32/`rows` columns."),
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
        (r"float b\[WPTN\][^;]*;[\s\S]*floatL[\s\S]*Btile", "b is not loaded as vectors of type floatL yet."),
        (
            r"\*WARPM\]",
            "the vector that begins with a[i] lies i*WARPM rows below tm: between them are those of the neighbours.",
        ),
        (r"\*WARPN\]", "the vector that begins with b[j] lies j*WARPN columns behind tn."),
        (r"acc\[j\]\[i\]\s*\+=", "nothing is multiplied yet: acc[j][i] += a[i] * b[j] for all i and j."),
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
        return gemmlab.verdict(False, "", "an H200 gives a work-group 48 KB of local memory; this takes more.")
    roof = model.ceilings(15, params, model.H200)[0]
    words = f"{roof.resource} allows {roof.share:.1%}."
    return gemmlab.verdict(roof.share >= 0.8, words, f"{words} Which of its inputs can you lower?")


check_16_1 = _function(
    lambda m, n, k, stages, lanes: (4 * stages * k * (m + n), (stages - 1) * m * n * k / lanes),
    [(256, 128, 8, 3, 128), (128, 64, 16, 2, 128), (64, 64, 8, 4, 64)],
    "local memory grows with the stages, and so does the time: each tile more is a tile's time more.",
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
            lambda m, n, k, stages, lanes: (4 * stages * k * m * n, (stages - 1) * m * n * k / lanes),
            "A stage holds TSK columns of TSM floats of A, and as many of TSN floats of B; C is in registers.",
        ),
    ],
)
check_16_2 = _kernel(
    16,
    [(64, 64, 8), (64, 128, 40), (128, 64, 64)],
    [
        (r"FRAGMENT\([^)]*\)[^;]*?\n[\s\S]*acc\[j\]\[i\] \+=[\s\S]*\Z", "there is no FRAGMENT in the loop yet."),
        (
            r"for \(int k = 0; k < TSK[\s\S]*FRAGMENT[\s\S]*k\s*\+\s*1",
            "load the fragments of step k + 1, while those of k are multiplied.",
        ),
        (
            r"for \(int k = 0; k < TSK[\s\S]*AWAIT\(",
            "before the next stage is read, AWAIT its copies. Your processor would not notice.",
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
        return gemmlab.verdict(False, "", f"its stages take {memory:,} bytes; there are {48 * 1024:,}.")
    registers = spec.local_size(params)[0] * (8 * params["WPTM"] + 2 * (params["WPTM"] + 8))
    if registers > 65536:
        return gemmlab.verdict(False, "", f"sums and fragments take {registers:,} registers; there are 65,536.")
    cycles = (params["STAGES"] - 1) * params["TSM"] * params["TSN"] * params["TSK"] // model.H200.lanes
    words = f"{cycles:,} cycles for a copy."
    return gemmlab.verdict(cycles >= 4096, words, f"{words} What does a larger tile cost, and what one more stage?")


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
    lambda group, groups, tiles, steps: model.pieces(tiles, steps, groups)[group],
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
            "A piece ends where its tile ends; what is left belongs to the next tile, from its step 0 on.",
        ),
        (
            lambda g, groups, tiles, steps: [
                (tile, first, first + number)
                for tile, first, number in _cut(tiles * steps * g // groups, tiles * steps * (g + 1) // groups, steps)
            ],
            "The third number is how many steps it does, not where it ends.",
        ),
        (
            lambda g, groups, tiles, steps: _cut(
                g * _length(tiles, steps, groups),
                min(tiles * steps, (g + 1) * _length(tiles, steps, groups)),
                steps,
            ),
            "That rounds every length up, and leaves less to the last group; line*g//G spreads the rest.",
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
        (r"tiles_n\s*-\s*band", "the last band may be narrower: it has min(ORDER, tiles_n - band) columns."),
        (
            r"m0\s*=\s*\(?\s*tile\s*%\s*\(\s*ORDER\s*\*\s*tiles_m\s*\)\s*/",
            "the number inside the band, divided by its columns, is the row of tiles: m0 has no `band` any more.",
        ),
    ],
    "along a row of the band, then on to the next row. For equal shares `fixup.cl` would have to count so, too.",
    {"TSM": 64, "TSN": 64, "ORDER": 4, "GROUPS": 0},
)


@_safely
def check_17_3(place):
    rows, columns, places = 32, 64, 132

    def mean(order):
        """Floats per step of k that a wave wants, on average."""
        waves = [order[first : first + places] for first in range(0, len(order), places)]
        return np.mean([256 * len({m for m, _ in wave}) + 128 * len({n for _, n in wave}) for wave in waves])

    found = [tuple(map(int, _ask(place, tile, rows, columns))) for tile in range(rows * columns)]
    outside = next((p for p in found if not (0 <= p[0] < rows and 0 <= p[1] < columns)), None)
    if outside:
        return gemmlab.verdict(
            False, "", f"{outside} lies outside C: rows go from 0 to {rows - 1}, columns to {columns - 1}."
        )
    if len(set(found)) < len(found):
        twice = next(p for i, p in enumerate(found) if p in found[:i])
        return gemmlab.verdict(False, "", f"{twice} is computed twice, and another tile never.")
    bands = mean([model.ordered(tile, rows, columns, 8) for tile in range(rows * columns)])
    level = mean(found) / bands
    words = f"a wave wants {mean(found):,.0f} floats per step: {level:.3f} of what bands of eight want."
    return gemmlab.verdict(level <= 1, words, f"{words} Lay the first wave out as a compact block.")


check_18_1 = _function(
    lambda p, rounded: 2.0 ** -(p + 1) if rounded else 2.0**-p,
    [(10, True), (10, False), (7, True), (7, False), (3, True), (3, False), (23, True)],
    "half of the last place that stays, or all of it: rounding is worth a bit.",
    [
        (lambda p, rounded: 2.0**-p, "The nearest number is at most half a step away."),
        (lambda p, rounded: 2.0 ** -(p + 1), "Cutting goes to the number below, however near the next one is."),
        (lambda p, rounded: 2.0**-p if rounded else 2.0 ** -(p + 1), "It is the other way round."),
        (lambda p, rounded: 10.0**-p, "Those are decimal places; bits halve."),
        (lambda p, rounded: 2.0 ** -(p + 2) if rounded else 2.0 ** -(p + 1), "One bit too good: the 1 before the point "
         "is no bit after it."),
    ],
)  # fmt: skip


@_safely
def check_18_2(split):
    rng = np.random.default_rng(18)
    x = (rng.standard_normal(4096) * 2.0 ** rng.integers(-60, 60, 4096)).astype(np.float32)
    big, small = (np.asarray(part) for part in _ask(split, x.copy()))
    for name, part in (("big", big), ("small", small)):
        if part.dtype != np.float32 or part.shape != x.shape:
            return gemmlab.verdict(
                False, "", f"{name} is {part.dtype} of shape {part.shape}, not float32 of {x.shape}."
            )
        if (part.view(np.uint32) & 0x1FFF).any():
            return gemmlab.verdict(False, "", f"{name} has bits that TF32 does not: the last 13 must be zero.")
    if (np.abs(small) > np.abs(big)).any():
        return gemmlab.verdict(False, "", "give big first: small is what it leaves.")
    worst = float(np.max(np.abs(x - big.astype(np.float64) - small) / np.abs(x)))
    hint = "."
    if not np.array_equal(big, tf32.nearest(x)):
        cut = np.array_equal(big, tf32.cut(x))
        hint = (
            ": big is cut off, not rounded, and that costs a bit." if cut else ": big is not the nearest TF32 number."
        )
    elif not small.any():
        hint = ": small is zero; it is what big leaves of x."
    right = f"off by 2^{np.log2(worst):.1f} of x at most: all but the last of 24 digits." if worst else ""
    return gemmlab.verdict(worst <= 2.0**-22, right, f"the sum is off by up to {worst:.1e} of x{hint}")


@_safely
def check_18_3(answer):
    parts, added = answer
    spec, params = gemmlab.catalog[18], {"TSM": 64, "TSN": 64, "TSK": 8, "TENSOR": 0}
    if "0xffff0000" not in parts.lower():
        return gemmlab.verdict(False, "", "bfloat16 is a float's upper half: BIG masks with 0xffff0000u.")
    if "0x8000" not in parts.lower():
        return gemmlab.verdict(False, "", "BIG rounds to nearest: add half of the last place that stays, 0x8000u.")
    text = re.sub(
        r"#define BIG\(x\).*\n#define SMALL\(x\).*\n", lambda _: parts.strip() + "\n", sources.read(spec.file)
    )
    text = re.sub(r"\(PARTS - 1\)\*.*BIG\(a\)\*BIG\(b\)", lambda _: added, text)
    for m, n, k in ((64, 64, 40), (64, 128, 24)):
        outcome = gemmlab.trial(18, m, n, k, source=text, params=params, repeats=1)
        if not outcome.ok:
            return gemmlab.verdict(False, "", f"at M={m}, N={n}, K={k}: {outcome.verdict}")
        if outcome.result.error > outcome.result.bound / 10:
            wrong = f"at K={k} the error is {outcome.result.error:.0e}: some product of parts is missing."
            return gemmlab.verdict(False, "", wrong)
    return gemmlab.verdict(True, "three numbers of 8 digits hold all 24 of a float; six products make one.", "")


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
        (lambda k, n, row: k * row + n, "That is a tile whose rows are steps of k, as in kernel 18."),
        (lambda k, n, row: (k // 4 * row + n) * 4, "Which of the four floats of that vector is it?"),
        (lambda k, n, row: k // 4 * row + n * 4 + k % 4, "A row has `row` vectors, each of 4 floats."),
        (lambda k, n, row: (k // 4 * 128 + n) * 4 + k % 4, "A row is longer than the tile: there are `row` vectors."),
        (lambda k, n, row: (k % 4 * row + n) * 4 + k // 4, "Four *neighbouring* steps of k lie side by side."),
    ],
)


@_safely
def check_19_3(split):
    code = re.sub(r"//.*", "", split)
    for wanted, hint in (
        (r"BIG\(", "an instruction cuts off what it cannot see: round with BIG, or the parts lose a bit."),
        (r"Bsmall", "the small parts belong into Bsmall; nobody stores them yet."),
    ):
        if not re.search(wanted, code):
            return gemmlab.verdict(False, "", hint)
    lines = [line.rstrip() for line in code.splitlines() if line.strip()]
    text = sources.read(gemmlab.catalog[19].file)
    macro = "#define SPLIT_B(to) \\\n" + " \\\n".join(lines) + " \\\n    SHOW()\n"
    text = re.sub(r"#define SPLIT_B\(to\).*?SHOW\(\)\n", lambda _: macro, text, flags=re.S)
    for m, n, k in ((128, 128, 24), (128, 256, 16)):
        outcome = gemmlab.trial(19, m, n, k, source=text, params={"TSM": 128, "TSK": 8, "TENSOR": 0}, repeats=1)
        if not outcome.ok:
            return gemmlab.verdict(False, "", f"at M={m}, N={n}, K={k}: {outcome.verdict}")
    return gemmlab.verdict(True, "each number is split once, for all 256 rows that will meet it.", "")


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
    lambda m, n, k, rows, columns: m * k / rows * (1 - 1 / columns) + k * n / columns * (1 - 1 / rows),
    [(64, 32, 128, 2, 4), (64, 64, 64, 8, 8), (100, 100, 100, 1, 1), (40, 50, 60, 1, 5)],
    "a strip of A and one of B, less what was there before.",
    [
        (
            lambda m, n, k, rows, columns: m * k / rows + k * n / columns,
            "Some of each strip was there before.",
        ),
        (
            lambda m, n, k, rows, columns: m * k / rows * (1 - 1 / rows) + k * n / columns * (1 - 1 / columns),
            "A strip of A is shared by the devices of a row of the grid, and there are `columns` of them.",
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
        return self if other == 0 else _Term(self.value + other.value, 1 + max(self.depth, other.depth))

    __radd__ = __add__


@_safely
def check_20_3(tree):
    for number in (8, 1, 2, 5, 7):
        given = _ask(tree, [_Term(3**i) for i in range(number)])
        if not isinstance(given, _Term):
            return gemmlab.verdict(
                False, "", f"for {number} matrices it gives a {type(given).__name__}, not their sum."
            )
        if given.value != sum(3**i for i in range(number)):
            return gemmlab.verdict(False, "", f"for {number} matrices some are missing from the sum, or there twice.")
        if given.depth > (number - 1).bit_length():
            chain = f"for {number} matrices {given.depth} sums follow one after the other; a tree is"
            return gemmlab.verdict(False, "", f"the sum is right, but {chain} {(number - 1).bit_length()} deep.")
    return gemmlab.verdict(
        True, "8 products are added in 3 steps, by several workers, and no worker holds them all.", ""
    )


check_21_1 = _number(
    lambda: 1 / (8 * (1 + 1 / 8)),
    "8 warps of multiply-adds per access, and 1 1/8 accesses per multiply-add: half of the H200's share.",
    {
        1 / 4.5: "that is the share of today's H200; beside more multiply-adds the same memory is less.",
        1 / 2.25: "more multiply-adds per cycle make the share smaller, not larger.",
        1 / 8: "nearly: beside the float of B, there is an eighth of a float of A.",
        1.125: "those are the loads per multiply-add.",
    },
    "how many multiply-adds of a warp fit into the time of one access, and how many accesses does each need?",
)
check_21_2 = _function(
    lambda tile, block, lanes, words, fetched: min(1, words * block / (2 * lanes), fetched * tile / (2 * lanes)),
    [(128, 8, 128, 32, 5), (16, 1, 128, 32, 5), (64, 4, 128, 32, 1), (32, 2, 192, 32, 4), (128, 16, 64, 32, 8)],
    "min(1, words block / 2 lanes, fetched tile / 2 lanes): whichever memory is asked for too much decides.",
    [
        (lambda t, b, lanes, w, f: min(1, w * b / lanes, f * t / lanes), "A multiply-add needs two floats, not one."),
        (lambda t, b, lanes, w, f: min(w * b / (2 * lanes), f * t / (2 * lanes)), "No share is above 1."),
        (lambda t, b, lanes, w, f: max(w * b / (2 * lanes), f * t / (2 * lanes)), "The lowest roof counts."),
        (lambda t, b, lanes, w, f: min(1, w * b / (2 * lanes)), "And what comes from beyond local memory?"),
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
    one = board.attempt(board.fitting(), kernel, settings, text)
    if one.share < 0.1:
        return gemmlab.verdict(False, "", f"right, but {one.share:.2f} of the goal: from a tenth on it counts.")
    board.Board().add(one)
    return gemmlab.verdict(True, str(one), "")
