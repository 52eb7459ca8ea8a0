"""The front end beside clang: what is accepted, where a text is refused, and the types of all
expressions.
"""

from __future__ import annotations

import contextlib
import random

import pytest
from conftest import FULL, NO_SKIP
from simt.fuzz import SETTINGS, edit
from simt.generator import kernel
from simt.snippets import SNIPPETS
from simt.test_language import CONSTRUCTS, REFUSED, simulated, written

from gemmlab import catalog, simt
from gemmlab.catalog.sources import read

if not NO_SKIP:
    pytest.importorskip("clang.cindex")
from simt.judge import agree, differences, ours, stricter


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
    case = ("int", before, body)
    assert agree(written(case)) or stricter(ours(written(case))[1])
    with contextlib.suppress(simt.TextError):
        simulated(case)  # no Python error


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
