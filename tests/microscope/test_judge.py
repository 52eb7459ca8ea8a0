"""The front end beside clang: what is accepted, where a text is refused, and the types of all
expressions.
"""

from __future__ import annotations

import random

import pytest
from microscope.corpus import RIGHT
from microscope.fuzz import edit
from microscope.generator import kernel
from microscope.harness import FULL, NO_SKIP
from microscope.snippets import SNIPPETS
from microscope.test_language import CONSTRUCTS, simulated, written

import clscope

if not NO_SKIP:
    pytest.importorskip("clang.cindex")
from microscope.judge import agree, differences, stricter


def test_constructs():
    compared = 0
    for case in CONSTRUCTS:
        wrong, count = differences(written(case))
        assert wrong == [] or "const float a[4]" in case[1] or "g[y]" in case[2], wrong
        compared += count
    assert compared > 3000


def test_kernels():
    for case in RIGHT:
        wrong, count = differences(case.text)
        assert wrong == [] and count > 5, case.name


@pytest.mark.parametrize("before, body", SNIPPETS)
def test_snippets_are_accepted_and_refused_as_by_clang(before, body):
    """All versions of a call, conversions, declarations ... right and wrong."""
    if "half" in body:  # which the simulator knows, as devices with cl_khr_fp16 do
        return
    case = ("int", before, body)
    assert agree(written(case))
    try:
        simulated(case)  # no Python error
    except clscope.TextError as error:
        assert error.known or stricter(error.message), error


@pytest.mark.parametrize("seed", range(200 if FULL else 10))
def test_random_kernels(seed):
    wrong, count = differences(kernel(seed, 8))
    assert wrong == [] and count > 100


def test_single_token_edits():
    rng = random.Random(0)
    texts = [edit(case.text, rng) for case in RIGHT for _ in range(100 if FULL else 10)]
    same = [agree(text) for text in texts]
    assert sum(same) >= len(same) - 1 - len(same) // 50
