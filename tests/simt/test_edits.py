"""Every barrier removed, every index shifted by one, every guard that always holds: the simulator finds it."""

from __future__ import annotations

import random
from functools import cache

import pytest
from conftest import FULL
from simt.cases import SMALL, WARPS, text
from simt.edits import Edit, edits

from gemmlab import catalog, simt

#: Parameters and M, N, K; under one of them an edit must be found. Two tiles and more, and edges where there are any.
SETTINGS = {number: [(params, (16, 32, 16))] for number, params in SMALL.items()}
SETTINGS[12] = [(SMALL[12], (11, 13, 19))]
SETTINGS[13] = [(SMALL[13], (11, 13, 19)), (SMALL[13], (11, 13, 5))]
SETTINGS["warp_tiling"] = [
    ({**WARPS, **more}, (37, 41, 27)) for more in ({}, {"TRANSPOSED": 0}, {"WIDTH": 1, "STAGES": 3})
]
SETTINGS["warp_tiling"] += [({**WARPS, "GROUPS": 5}, (70, 34, 40)), (WARPS, (36, 41, 9))]

#: What is not found, by kernel, what was changed and a part of its line; and why that is no mistake of the simulator.
HARMLESS = {
    (13, "guard", "if (1 || k1 < K) {"): "the tile behind the last is loaded as zeroes, and nobody reads it",
    (
        "warp_tiling",
        "index",
        "block = &Atile[0 + 1][0][0]",
    ): "another part of the tiles serves as well",
    (
        "warp_tiling",
        "index",
        "block = &Atile[0][0 + 1][0]",
    ): "another part of the tiles serves as well",
}


@cache
def all_of(number: int) -> list[Edit]:
    """The edits under all settings, each once."""
    spec = catalog[number]
    found = [e for params, _ in SETTINGS[number] for e in edits(text(number), spec.validate(params))]
    return list(dict.fromkeys(found))


def harmless(number: int, edit: Edit) -> bool:
    line = edit.source.splitlines()[edit.line - 1]
    return any(number == n and edit.what == what and part in line for n, what, part in HARMLESS)


def found(number: int, edit: Edit) -> bool:
    for params, sizes in SETTINGS[number]:
        try:
            if not simt.simulate(number, *sizes, params, edit.source).ok:
                return True
        except simt.TextError:
            return True
    return False


@pytest.mark.parametrize("number", SETTINGS)
def test_a_wrong_text_is_found(number):
    """All barriers, and of the rest a seeded sample; with GEMMLAB_FULL=1 all."""
    every = all_of(number)
    assert {e.what for e in every} >= ({"index", "barrier"} if number not in (1, 11) else {"index"})
    rest = [e for e in every if e.what != "barrier"]
    chosen = every if FULL else [e for e in every if e.what == "barrier"] + random.Random(number).sample(
        rest, min(6, len(rest)))  # fmt: skip
    missed = [str(e) for e in chosen if not harmless(number, e) and not found(number, e)]
    assert missed == []


@pytest.mark.parametrize(("number", "what", "part"), HARMLESS)
def test_what_is_called_harmless_is_right(number, what, part):
    (edit,) = (e for e in all_of(number) if e.what == what and part in e.source.splitlines()[e.line - 1])
    for params, sizes in SETTINGS[number]:
        assert simt.simulate(number, *sizes, params, edit.source).ok
