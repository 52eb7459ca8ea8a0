"""Kernels with a learner's mistake, after public questions (mistakes.txt), and right ones of every
style (right.txt).

Each is a change of one of two kernels: its name, the kernel, for a mistake a part of the line that
must be named and the kind of the finding; then lines `old --> new` for the first occurrence,
`old ==> new` for all, and what comes `before:` the kernel or `first:` in it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from simulation.cases import line_of, product

import clscope
import gemmlab

KERNELS = {
    "TILED": """
__local float As[8][8];
__local float Bs[8][8];
float acc = 0.0f;
for (int t = 0; t < K; t += 8) {
As[tm][tn] = A[(t + tn)*M + m];
Bs[tn][tm] = B[n*K + t + tm];
barrier(CLK_LOCAL_MEM_FENCE);
for (int k = 0; k < 8; k++) {
acc += As[tm][k] * Bs[tn][k];
}
barrier(CLK_LOCAL_MEM_FENCE);
}
C[n*M + m] = acc;""",
    "NAIVE": """
float acc = 0.0f;
for (int k = 0; k < K; k++) {
acc += A[k*M + m] * B[n*K + k];
}
C[n*M + m] = acc;""",
    "WHOLE": "",
}


def cases(file: str) -> dict[str, tuple[str, list[str]]]:
    """By name the text of each kernel of a file, and what is expected of it."""
    found = {}
    for block in Path(__file__).with_name(file).read_text("utf-8").strip().split("\n\n"):
        head, *lines = block.split("\n")
        name, base, *expected = head.removeprefix("== ").split(" | ")
        body, before, first = KERNELS[base], "", ""
        for line in lines:
            line = line.replace("\\n", "\n").replace("\\\n", "\\n")
            old, one, new = line.partition("  -->")
            if not one:
                old, every, new = line.partition("  ==>")
            if line.startswith("before: "):
                before += line.removeprefix("before: ") + "\n"
            elif line.startswith("first: "):
                first += line.removeprefix("first: ") + "\n"
            elif base == "WHOLE":
                body += line + "\n"
            else:
                assert old in body, (name, old)
                body = body.replace(old, new.strip(), 1 if one else -1)
        assert name not in found
        found[name] = product(first + body, before), expected
    return found


MISTAKES, RIGHT = cases("mistakes.txt"), cases("right.txt")


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named(name):
    text, (part, kinds) = MISTAKES[name]
    try:
        run = gemmlab.simulate(2, 16, 24, 32, {"TS": 8}, text, limit=5_000)
    except clscope.TextError as error:
        assert any(word in error.message for word in kinds.split("|")), error
        assert error.line == line_of(text, part), error
        return
    assert not run.ok, "nothing was found"
    found = run.findings[0]
    assert found.kind in kinds.split("|"), run.verdict
    assert not part or found.line in {line_of(text, p) for p in part.split("|")}, run.verdict


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_kernel_is_right(name):
    for order in ("lockstep", "warps"):
        run = gemmlab.simulate(2, 16, 24, 16, {"TS": 8}, RIGHT[name][0], order=order)
        assert run.ok, run.verdict


def test_a_parameter_that_the_text_sets_itself_is_named():
    tiled = product(KERNELS["TILED"].replace("[8][8]", "[TS][TS]"), "#undef TS\n#define TS 4")
    run = gemmlab.simulate(2, 16, 24, 16, {"TS": 8}, tiled)
    assert run.findings[0].kind == "redefined" and run.findings[0].line == 2
    assert run.findings[0].message == "the text sets TS to 4 itself, but is launched for TS=8"
