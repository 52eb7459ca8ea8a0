"""The recorded waterfall, and the rungs that the last chapter shows. No device needed."""

import pytest

from gemmlab import catalog
from gemmlab.bench import explained, waterfall
from gemmlab.draw import tensors
from gemmlab.draw.waterfall import waterfall as drawn


def test_each_step_has_its_idea_first_and_rates_within_their_spread():
    steps = waterfall.steps()
    assert {15, 16, 17, 18, 19} <= set(steps)
    for kernel, step in steps.items():
        assert step.least <= step.gflops <= step.most
        assert all(way.kernel == kernel and way.title != step.title for way in waterfall.without(kernel))


def test_parts_switched_off_and_instructions_alone_are_recorded():
    ways, alone = waterfall.ways("warpgroups"), waterfall.alone()
    assert {"18", "18 sums kept", "19", "19 waiting"} <= set(ways)
    assert ways["18 sums kept"].errors[4096] > 10 * ways["18"].errors[4096]
    for title, name, instructions in (("18 PARTS=1", "mma.sync", 1), ("18", "mma.sync", 3), ("19", "wgmma", 3)):
        assert ways[title].gflops < alone[name] / instructions  # nothing is above its roof


def test_registers_of_hidden_instructions_are_not_told():
    assert all(way.registers is None for way in waterfall.ways("warpgroups").values() if way.kernel == 19)


def test_rungs_are_the_numbered_kernels_with_what_they_cost():
    rungs = waterfall.rungs()
    assert set(rungs) == {number for number in catalog if isinstance(number, int)}
    assert rungs[3].lifted(rungs[2]).startswith("local memory")
    assert rungs[1].lifted(None) == "" and rungs[18].lifted(rungs[17]) == ""
    assert rungs[1].lines < rungs[6].lines < rungs[17].lines and rungs[11].local_memory == 0


def test_a_roof_that_stays_is_not_lifted():
    one, three = explained.rung(2), explained.rung(3)
    assert explained.lifted(one, three).share > one.roof.share
    assert explained.lifted(three, one) is None


def test_the_waterfall_draws_gains_and_losses():
    picture = drawn({"first": 5000.0, "second": 30000.0, "third": 20000.0}, {"second": "local memory"})
    bars = picture.axes[0].patches
    assert [(bar.get_x(), bar.get_width()) for bar in bars] == [(0, 5), (5, 25), (20, 10)]
    assert bars[2].get_facecolor() != bars[1].get_facecolor() == bars[0].get_facecolor()
    assert "second: 30.0, local memory" in picture.alt
    with pytest.raises(ValueError, match="rates"):
        drawn({})


@pytest.mark.parametrize(("warps", "waits", "busy"), [(1, True, "50%"), (1, False, "86%"), (2, True, "92%")])
def test_warps_that_wait_leave_gaps(warps, waits, busy):
    assert f"busy {busy}" in tensors.waiting(2, 2, warps, waits).alt


def test_every_element_of_b_has_a_place_of_its_own():
    said = [tensors.laid(k, n).alt for k in (0, 3, 4) for n in (0, 5)]
    assert [int(words.split("float ")[1].split()[0]) for words in said] == [0, 20, 3, 23, 520, 540]
