"""The texts of the ladder in clscope's front end: types as clang's, and random edits."""

from __future__ import annotations

import random

import pytest
from conftest import NO_SKIP
from microscope.fuzz import edit, misread
from simulation.cases import SMALL

import clscope
import gemmlab
from clscope.translate import compile_kernel
from gemmlab import catalog
from gemmlab.ladder.sources import read

if not NO_SKIP:
    pytest.importorskip("clang.cindex")
from microscope.judge import agree, differences

#: Settings under which each kernel is read.
SETTINGS = {
    name: catalog[name].complete(SMALL.get(name) or catalog[name].defaults) for name in catalog
}


@pytest.mark.parametrize("name", SETTINGS)
def test_types_are_those_of_clang(name):
    wrong, count = differences(read(catalog[name].file), SETTINGS[name])
    assert wrong == [] and count > 30


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", SETTINGS)
def test_an_edited_token_is_refused_as_by_clang_and_never_an_internal_error(name):
    rng = random.Random(str(name))
    texts = [edit(read(catalog[name].file), rng) for _ in range(15)]
    same = [agree(text, SETTINGS[name]) for text in texts]
    assert sum(same) >= len(same) - 1 - len(same) // 50

    def simulate(source: str) -> clscope.Run | None:
        if name in SMALL:
            return gemmlab.simulate(name, 16, 16, 16, SMALL[name], source, limit=200)
        compile_kernel(source, None, SETTINGS[name])
        return None

    assert [text for text in texts if misread(text, simulate)] == []
