"""The front end beside clang: what is accepted, where a text is refused, and the types of all
expressions.
"""

from __future__ import annotations

import random
import re

import pytest
from conftest import FULL, NO_SKIP
from simt.cases import SMALL
from simt.constructs import CONSTRUCTS
from simt.generator import kernel
from simt.snippets import SNIPPETS
from simt.test_language import REFUSED, written
from simt.test_random import edit

from gemmlab import catalog
from gemmlab.catalog.sources import read
from gemmlab.simt import tree
from gemmlab.simt.text import Preprocessor, TextError
from gemmlab.simt.translate import parsed

if not NO_SKIP:
    pytest.importorskip("clang.cindex")
from simt.judge import judged

#: What the simulator refuses on purpose although clang takes it, as an extension or with a warning.
STRICTER = re.compile(
    "not known to this simulator|cannot have 0 elements|too many values|one value is expected|has "
    "no element|not one character|that is no number|is no number|#include|twice|expected '{', "
    "found 'case'|takes a pointer to int|no '}'"
)
#: Settings under which each kernel is read.
SETTINGS = {
    name: catalog[name].complete(SMALL.get(name) or catalog[name].defaults) for name in catalog
}


def ours(text: str, defines=None) -> tuple[int, str, dict[str, tree.Function]]:
    """The line of the first mistake (0: none), what it is, and the functions."""
    try:
        functions, _ = parsed(text, Preprocessor(defines))
        problem = next((f.problem for f in functions.values() if f.problem), None)
        if problem:
            raise problem
        return 0, "", functions
    except TextError as error:
        return error.line, error.message, {}


def start(node: tree.Expr) -> tree.Expr:
    """The expression that begins where this one does."""
    parts = {
        "Binary": "left",
        "Index": "array",
        "Assign": "target",
        "Choice": "condition",
        "Member": "vector",
        "Convert": "operand",
    }
    while type(node).__name__ in parts or (isinstance(node, tree.Step) and not node.before):
        node = getattr(node, parts.get(type(node).__name__, "target"))
    return node


def differences(text: str, defines=None) -> tuple[list[str], int]:
    """Expressions whose type is not clang's, and how many are compared."""
    verdict = judged(text, defines, types=True)
    line, message, functions = ours(text, defines)
    assert verdict is not None
    assert (line, verdict.line) == (0, 0), (message, verdict.message)
    lines, wrong, count = text.split("\n"), [], 0
    for node in (n for f in functions.values() if f.body for n in f.body.walk()):
        if not isinstance(node, tree.Expr) or isinstance(
            node, (tree.Convert, tree.Braces, tree.Text, tree.Part)
        ):
            continue
        first = start(node)
        before = lines[first.spot.line - 1][: first.spot.column - 1].rstrip()
        theirs = verdict.types.get((first.spot.line, first.spot.column))
        bracket = first is not node and before.endswith("(")
        shown = str(node.type)
        if (
            node.spot.macro
            or first.spot.macro
            or theirs is None
            or bracket
            or "struct" in shown
            or "union" in shown
        ):
            continue
        count += 1
        if "(*)" in shown:  # libclang does not say in which memory the array is
            shown = re.sub("^(local|global|constant) | (?=[(])", "", shown)
        if shown not in theirs:
            wrong.append(
                f"{node.spot.line}:{node.spot.column} {tree.written(node)}: {shown}, not {theirs}"
            )
    return wrong, count


def agree(text: str, defines=None) -> bool:
    """Both accept a text, or both refuse it; whether in the same line."""
    verdict = judged(text, defines)
    if verdict is None:
        return True
    line, message, _ = ours(text, defines)
    if not STRICTER.search(message):
        assert (line > 0) == (verdict.line > 0), f"{text}\nclang: {verdict}\nours: {line} {message}"
    return line == verdict.line


def test_constructs():
    compared = 0
    for case in CONSTRUCTS:
        wrong, count = differences(written(case))
        assert wrong == [] or "const float a[4]" in case[1] or "g[y]" in case[2], wrong
        compared += count
    assert compared > 3000


@pytest.mark.parametrize("name", SETTINGS)
def test_kernels(name):
    wrong, count = differences(read(catalog[name].file), SETTINGS[name])
    assert wrong == [] and count > 30


@pytest.mark.parametrize("before, body, part", [c for c in REFUSED if c[2]])
def test_refusals_are_in_the_same_line(before, body, part):
    assert agree(written(("int", before, body)))


@pytest.mark.parametrize("before, body", SNIPPETS)
def test_snippets_are_accepted_and_refused_as_by_clang(before, body):
    """All versions of a call, conversions, declarations ... right and wrong."""
    if "half" in body:  # which the simulator knows, as devices with cl_khr_fp16 do
        return
    text = written(("int", before, body))
    assert agree(text) or STRICTER.search(ours(text)[1])


@pytest.mark.parametrize("seed", range(200 if FULL else 10))
def test_random_kernels(seed):
    wrong, count = differences(kernel(seed, 8))
    assert wrong == [] and count > 100


@pytest.mark.parametrize("name", SETTINGS)
def test_single_token_edits(name):
    rng = random.Random(str(name))
    texts = [edit(read(catalog[name].file), rng) for _ in range(250 if FULL else 15)]
    same = [agree(text, SETTINGS[name]) for text in texts]
    assert sum(same) >= 0.8 * len(same)
