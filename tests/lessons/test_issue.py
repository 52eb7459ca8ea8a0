"""The scheduler of `lessons.issue`: the rules that it keeps, and the units that it fills."""

import pytest

from gemmlab import catalog, model, simulate
from gemmlab.model import H200
from lessons.issue import LOCAL_LATENCY, MEASURED, WARM_UP, draw, instructions, issue


def kernel(number, k=16, **params):
    spec = catalog[number]
    full = spec.validate(params)
    rows, cols, _ = spec.tiles(full)
    return simulate(number, rows, cols, k, full, groups=[(0, 0)])


def test_the_instructions_are_those_of_the_text():
    program = instructions(kernel(2, TS=16))
    assert program == [("load", 1), ("load", 1), ("multiply-add", 1)] * 16
    assert instructions(kernel(3, TS=16, WPT=2))[:5] == [("load", 1)] * 2 + [
        ("multiply-add", 1), ("load", 1), ("multiply-add", 1)]  # fmt: skip
    with pytest.raises(ValueError, match="kernel 1 reads no local memory"):
        instructions(kernel(1, TS=16))


def test_one_instruction_per_cycle_and_none_before_its_loads():
    program = [("load", 1), ("load", 2), ("multiply-add", 1), ("multiply-add", 1)]
    slots = issue(program, 3, 500)
    assert len({s.cycle for s in slots}) == len(slots)
    for w in range(3):
        mine = [s for s in slots if s.warp == w]
        assert [s.what for s in mine[:4]] == [what for what, _ in program]
        for before, s in zip(mine, mine[1:], strict=False):
            if s.what == "multiply-add" and before.what == "load":
                assert s.cycle >= before.end + LOCAL_LATENCY
    loads = [s for s in slots if s.what == "load"]
    assert all(a.end <= b.begin for a, b in zip(loads, loads[1:], strict=False))  # one path


def test_enough_warps_fill_local_memory_and_no_number_beats_its_ceiling():
    """Kernel 2: two turns per multiply-add, of which the chip has a quarter: 12.5 % of the peak."""
    program = [("load", 1), ("load", 1), ("multiply-add", 1)]
    rates = []
    for warps in (1, 4, 16):
        slots = issue(program, warps, 4000)
        rates.append(sum(s.what == "multiply-add" for s in slots) / 4000)
    assert rates == sorted(rates) and rates[-1] == pytest.approx(0.125, rel=0.05)
    assert issue(program, 16, 4000, H200) == issue(program, 16, 4000)


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match="program is empty"):
        issue([], 1)
    with pytest.raises(ValueError, match="warps=0 and cycles=100 must be at least 1"):
        issue([("load", 1)], 0, 100)


@pytest.mark.parametrize("number", (2, 3, 6, "warp_tiling"))
def test_a_picture_says_how_busy_the_units_are(number):
    small = {"TSM": 32, "TSN": 32, "TSK": 8, "WPTM": 4, "WPTN": 4}
    params = {2: {"TS": 16}, 3: {"TS": 16}, 6: small, "warp_tiling": small | {"GROUPS": 0}}
    run = simulate(number, 32, 32, 32, params[number], groups=[(0, 0)])
    slots = issue(instructions(run), 4, WARM_UP + MEASURED)
    busy = sum(s.what == "multiply-add" and s.cycle >= WARM_UP for s in slots) / MEASURED
    assert f"multiply-add units busy {model.percent(busy)}" in draw(run, 4, 100).alt
