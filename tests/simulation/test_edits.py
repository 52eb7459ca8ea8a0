"""Every barrier removed, every index shifted by one, every guard that always holds: the simulator
finds it.
"""

from __future__ import annotations

import random
from functools import cache

import pytest
from simulation.cases import SMALL, THIN, WARPS, line_of
from simulation.edits import Edit, edits

import clscope
import gemmlab
from gemmlab.ladder import find
from gemmlab.ladder.sources import read

#: Parameters and M, N, K; under one of them an edit must be found. Two tiles and more, and edges
#: where there are any.
SETTINGS = {number: [(params, (16, 32, 16))] for number, params in SMALL.items()}
SETTINGS[12] = [(SMALL[12], (11, 13, 19))]
SETTINGS[13] = [(SMALL[13], (11, 13, 19)), (SMALL[13], (11, 13, 5))]
SETTINGS["warp_tiling"] = [
    ({**WARPS, **more}, (37, 41, 27)) for more in ({}, {"TRANSPOSED": 0}, {"WIDTH": 1, "STAGES": 3})
]
SETTINGS["warp_tiling"] += [({**WARPS, "GROUPS": 5}, (70, 34, 40)), (WARPS, (36, 41, 9))]
SETTINGS["narrow"] = [(params, sizes) for sizes, params in THIN]
#: Beyond the tutorial: as many tiles along K as there are stages to fill anew, and rows off the
#: multiple of 4.
TILES = {"TSM": 64, "TSN": 64}
SETTINGS[15] = [({"TSM": 16, "TSN": 32, "TSK": 8, "WPTM": 4, "WPTN": 4, "WARPM": 4}, (32, 32, 24))]
SETTINGS[16] = [(TILES, (64, 64, 32))]
SETTINGS[17] = [({**TILES, "GROUPS": 3}, (128, 64, 48)), ({**TILES, "GROUPS": 3}, (64, 64, 40))]
SETTINGS[18] = [({**TILES, "PARTS": p}, (64, 64, 32)) for p in (1, 2)]
SETTINGS[19] = [
    ({"TSM": 128, "TSK": depth, "PARTS": p}, (128, 128, 3 * depth))
    for depth, p in ((16, 1), (8, 2))
]
BLOCKS = {"TSM": 32, "TSN": 32, "TSK": 8, "WM": 32, "WN": 32}
SETTINGS["tensor_cores"] = [
    ({**BLOCKS, "PARTS": 1}, (21, 37, 35)),
    ({**BLOCKS, "PARTS": 2}, (36, 35, 9)),
]
SETTINGS["warpgroups"] = [
    ({"TSK": 8, "PARTS": p}, sizes)
    for p, sizes in ((1, (20, 24, 13)), (2, (21, 24, 29)), (1, (256, 24, 9)))
]
#: What takes longer than a few seconds.
LARGE = (16, 18, 19, "tensor_cores", "warpgroups")

#: What is not found, by kernel, what was changed and a part of its line (of a barrier the line
#: behind it); and why that is no mistake of the simulator.
HARMLESS = [
    # the tile behind the last is loaded as zeroes, and nobody reads it
    (13, "guard", "if (1 || k1 < K) {"),
    # another part of the tiles serves as well
    ("warp_tiling", "index", "block = &Atile[0 + 1][0][0]"),
    ("warp_tiling", "index", "block = &Atile[0][0 + 1][0]"),
    # sums are moved more often, which rounds nothing here
    ("tensor_cores", "guard", "%EVERY == EVERY - 1"),
    # it waits for asynchronous copies; copies of another kind have arrived at the barrier before
    ("warpgroups", "barrier", "CUT_B(next, 1 - odd);"),
    # it stores what nobody reads
    (19, "guard", "// else nothing reads the small parts"),
    # it makes an array longer
    ("narrow", "index", "vector w[WPT + 1]"),
]
#: Parts of the lines whose results the simulator does not use. Shuffles are NVIDIA's and Intel's;
#: and a product without tensor cores reads its factors in memory, instead of fragments.
UNREAD = {
    8: ("mine",),
    18: ("rows[", "columns["),
    19: ("a[l] =", "a[k"),
}


@cache
def all_of(number: int) -> list[Edit]:
    """The edits under all settings, each once."""
    spec = find(number)
    every = [
        e for params, _ in SETTINGS[number] for e in edits(read(spec.file), spec.validate(params))
    ]
    # what comes here is done only where work-groups share tiles, which `THIN` has none of
    if number == "narrow":
        fix_up = line_of(read(spec.file), "// fix-up")
        every = [e for e in every if e.line < fix_up and "pieces[" not in shown(e)]
    every = [e for e in every if not any(part in shown(e) for part in UNREAD.get(number, ()))]
    return list(dict.fromkeys(every))


def shown(edit: Edit) -> str:
    """The line that was changed; the line behind, if a barrier was in it."""
    return edit.source.splitlines()[edit.line - (edit.what != "barrier")]


def harmless(name: int | str, edit: Edit) -> bool:
    return any(
        name == n and edit.what == what and part in shown(edit) for n, what, part in HARMLESS
    )


def is_found(number: int, edit: Edit) -> bool:
    for params, sizes in SETTINGS[number]:
        try:
            if not gemmlab.simulate(number, *sizes, params, edit.source).ok:
                return True
        except clscope.TextError:
            return True
    return False


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "number", [pytest.param(n, marks=pytest.mark.system) if n in LARGE else n for n in SETTINGS]
)
def test_a_wrong_text_is_found_and_a_harmless_one_is_not(number):
    """All barriers, what is called harmless, and of the rest a seeded sample."""
    every = all_of(number)
    assert {e.what for e in every} >= ({"index", "barrier"} if number not in (1, 11) else {"index"})
    known = [e for e in every if harmless(number, e)]
    assert len(known) == sum(n == number for n, _, _ in HARMLESS)
    rest = [e for e in every if e.what != "barrier" and e not in known]
    some = random.Random(number).sample(rest, min(6, len(rest)))
    chosen = [e for e in every if e not in rest] + some
    assert [str(e) for e in chosen if is_found(number, e) == harmless(number, e)] == []
