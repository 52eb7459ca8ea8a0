"""A configuration is right or refused in words, and its name says all of it."""

import itertools
from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest
from configurations import every

from gemmlab import ParameterError
from gemmlab.catalog import Limits
from gemmlab.family import Configuration
from gemmlab.family.configuration import PRECISIONS, letter_of


def test_the_name_says_everything():
    """Two configurations that differ in anything differ in their names."""
    known = every()
    assert len({c.name for c in known}) == len(known) == len(set(known))
    one = Configuration("c", stages=2, unroll=16)
    others = {
        "precision": "d", "a": "T", "b": "C", "beta": True, "tile": (64, 32), "micro_tile": (2, 4), "depth": 32,
        "unroll": 2, "widths": (1, 2), "stages": 1, "edges": "rows", "tail": True, "batch": True,
        "part": True, "unit": "warps", "shares": 2, "stored": 2,
    }  # fmt: skip
    assert set(others) == {field.name for field in fields(Configuration)}
    warps = replace(one, unit="warps")  # only warps share tiles, and store several rows at once
    names = [replace(warps, **{name: others.pop(name)}).name for name in ("shares", "stored")]
    names += [one.name, *(replace(one, **{name: value}).name for name, value in others.items())]
    assert len(set(names)) == len(names)
    assert Configuration("s", "N", "T", True, (128, 64), (8, 8)).name.startswith("sgemm_NT_beta_128x64x16_8x8_")


def test_it_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        Configuration().precision = "d"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"precision": "h"}, ["precision must be one of", "'h'"]),
        ({"precision": np.float32}, ["precision must be one of"]),
        ({"a": "t"}, ["a must be one of", "'t'"]),
        ({"b": 1}, ["b must be one of", "not 1"]),
        ({"a": "C"}, ["a='C' conjugates", "'s' is real"]),
        ({"precision": "d", "b": "R"}, ["b='R' conjugates", "'d' is real"]),
        ({"beta": 1}, ["beta must be one of False, True", "not 1"]),
        ({"beta": True, "batch": True}, ["beta adds one matrix", "batch=False"]),
        ({"edges": "all"}, ["edges must be one of", "'all'"]),
        ({"stages": True}, ["stages must be one of 0, 1, 2", "not True"]),
        ({"stages": 3}, ["stages must be one of 0, 1, 2", "not 3"]),
        ({"unit": "warp"}, ["unit must be one of", "'tensor'", "'warp'"]),
        ({"unit": "warps"}, ["stages must be one of 2, 3, 4", "not 1"]),
        ({"unit": "tensor", "stages": 2}, ["multiplies float64 and complex128", "'s'", "depth=16", "unroll=4"]),
        ({"unit": "warps", "stages": 2, "micro_tile": (2, 32)}, ["64 columns", "blocks of 128", "groups of 4"]),
        ({"unit": "warps", "stages": 2, "unroll": 16, "widths": (1, 4)}, ["b is turned round"]),
        ({"unit": "tensor", "precision": "z", "stages": 2, "unroll": 16, "widths": (2, 1)}, ["no asynchronous copy"]),
        ({"unit": "tensor", "precision": "d", "stages": 2, "depth": 24, "unroll": 24}, ["depth=24", "multiple of 16"]),
        ({"shares": 2}, ["only warps share tiles", "shares=2"]),
        ({"shares": 0}, ["shares must be a whole number", "not 0"]),
        ({"shares": 2, "batch": True}, ["shares or a batch's pairs", "shares=2", "batch=True"]),
        ({"stored": 4}, ["stored=4", "only warps store 16 bytes", "unit='items'"]),
        ({"unit": "warps", "stages": 2, "unroll": 16, "precision": "c", "stored": 4}, ["stored=4", "'c'"]),
        ({"unit": "warps", "stages": 2, "unroll": 16, "stored": 4, "beta": True}, ["stored=4", "beta=True"]),
        ({"stages": 0}, ["without stages depth, unroll", "1 numbers are no vector"]),
        ({"stages": 0, "depth": 1, "unroll": 1, "widths": (8, 1)}, ["4 rows does not consist of vectors of 8"]),
        ({"tail": None}, ["tail must be one of", "None"]),
        ({"tile": 64}, ["tile must be two whole numbers", "not 64"]),
        ({"tile": (64, 0)}, ["tile must be two whole numbers", "(64, 0)"]),
        ({"micro_tile": (4, 4, 4)}, ["micro_tile must be two whole numbers"]),
        ({"widths": (1.0, 1)}, ["widths must be two whole numbers", "1.0"]),
        ({"depth": -8}, ["depth must be a whole number", "-8"]),
        ({"unroll": True}, ["unroll must be a whole number", "True"]),
        ({"tile": (64, 30)}, ["a tile of 30 columns", "micro-tiles of 4"]),
        ({"depth": 16, "unroll": 3}, ["depth=16 is not a multiple of unroll=3"]),
        ({"widths": (3, 1)}, ["no vector of OpenCL C holds 3 elements"]),
        ({"precision": "z", "widths": (16, 1)}, ["no vector of OpenCL C holds 16 elements of precision 'z'"]),
        ({"depth": 2, "unroll": 2, "widths": (1, 4)}, ["loads of 4 do not divide the 2 neighbours of b"]),
        ({"tile": (8, 8), "micro_tile": (1, 1), "depth": 4}, ["64 work-items cannot share the 8 x 4 elements of a"]),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_in_words(wrong, words):
    with pytest.raises(ParameterError) as error:
        Configuration(**wrong)
    assert [word for word in words if word not in str(error.value)] == [], str(error.value)


def test_limits_of_a_device():
    small = Limits("a small device", 64, (64, 4, 4), 4096, vector=2)
    c = Configuration("d", tile=(32, 32), micro_tile=(4, 4), depth=16, widths=(4, 1))
    found = c.problems(small)
    assert len(found) == 3
    assert "8 x 8" in found[0] and f"{c.local_memory:,} bytes" in found[1] and "4 numbers" in found[2]
    assert c.problems(Limits("roomy", 1024, (1024,) * 3, 2**20)) == []


def test_local_memory_is_what_the_text_declares():
    for c in every()[:40]:
        rows = sum(c.row(operand) for operand in "ab")
        assert c.local_memory == c.stages * c.depth * rows * PRECISIONS[c.precision].size
        assert all(c.row(operand) >= c.side(operand) for operand in "ab")


def test_letters():
    names = ("float32", "float64", "complex64", "complex128")
    for letter, name in itertools.zip_longest("sdcz", names):
        assert letter_of(name) == letter and PRECISIONS[letter].dtype == np.dtype(name)
    with pytest.raises(KeyError):
        letter_of(np.float16)
