"""The checks of the exercises. Each shows a verdict and returns True or False; none raises."""

import re

import gemmlab
from gemmlab import model


class _Missing(Exception):
    """The stub is still there."""


def _ask(function, *case):
    """What a learner's function gives; a stub returns `...`."""
    given = function(*case)
    if given is ... or given is None:
        raise _Missing
    return given


def _safely(check):
    """An answer that raises is a wrong answer, and its error is the hint."""

    def checked(answer):
        try:
            if answer is None:
                raise _Missing
            return check(answer)
        except _Missing:
            return gemmlab.verdict(False, "", "there is no answer in the cell yet.")
        except Exception as error:
            return gemmlab.verdict(False, "", f"your answer raises {type(error).__name__}: {error}")

    return checked


def _hint(answer, hints: dict, otherwise: str) -> str:
    """The hint for a typical wrong answer."""
    return next((hint for value, hint in hints.items() if answer == value), otherwise)


def _right_everywhere(kernel: int, source: str, sizes, params=None) -> str:
    """Run a kernel's text in the child process at several sizes: "" if it is right, else what went wrong."""
    for m, n, k in sizes:
        outcome = gemmlab.trial(kernel, m, n, k, source=source, params=params, repeats=1)
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
