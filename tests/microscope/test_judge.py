"""The front end beside clang: what is accepted, where a text is refused, and the types of all
expressions.
"""

from __future__ import annotations

import random

import pytest
from conftest import FULL, NO_SKIP
from microscope.fuzz import SETTINGS, edit
from microscope.generator import kernel
from microscope.snippets import SNIPPETS
from microscope.test_language import CONSTRUCTS, simulated, written

import clscope
from gemmlab import catalog
from gemmlab.ladder.sources import read

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


@pytest.mark.parametrize("name", SETTINGS)
def test_kernels(name):
    wrong, count = differences(read(catalog[name].file), SETTINGS[name])
    assert wrong == [] and count > 30


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


@pytest.mark.parametrize("name", SETTINGS)
def test_single_token_edits(name):
    rng = random.Random(str(name))
    texts = [edit(read(catalog[name].file), rng) for _ in range(250 if FULL else 15)]
    same = [agree(text, SETTINGS[name]) for text in texts]
    assert sum(same) >= len(same) - 1 - len(same) // 50
