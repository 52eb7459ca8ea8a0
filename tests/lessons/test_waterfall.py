"""The recorded variants, and the rungs that the last chapter shows. No device needed."""

import pytest

from gemmlab import catalog
from lessons import waterfall


def test_each_step_has_its_idea_first_and_rates_within_their_spread():
    kernels = waterfall.by_kernel()
    assert {15, 16, 17, 18, 19} <= set(kernels)
    for kernel, (first, *others) in kernels.items():
        assert first.low <= first.gflops <= first.high
        assert all(one.kernel == kernel and one.variant != first.variant for one in others)


def test_parts_switched_off_and_instructions_alone_are_recorded():
    variants, alone = waterfall.variants("warpgroups"), waterfall.alone()
    assert {"18", "18 sums kept", "19", "19 waiting"} <= set(variants)
    assert variants["19"].registers is None  # the compiler has not seen its instructions
    assert waterfall.errors("18 sums kept")[4096] > 10 * waterfall.errors("18")[4096]
    for title, name, instructions in (
        ("18 PARTS=1", "mma.sync", 1),
        ("18", "mma.sync", 3),
        ("19", "wgmma", 3),
    ):
        assert variants[title].gflops < alone[name] / instructions  # nothing is above its roof


@pytest.mark.system
def test_rungs_are_the_numbered_kernels_with_what_they_cost():
    rungs = waterfall.rungs()
    assert set(rungs) == {number for number in catalog if isinstance(number, int)}
    assert rungs[3].lifted(rungs[2]).startswith("local memory")
    assert rungs[2].lifted(rungs[3]) == ""
    assert rungs[1].lifted(None) == "" and rungs[18].lifted(rungs[17]) == ""
    assert rungs[1].lines < rungs[6].lines < rungs[17].lines and rungs[11].local_memory == 0
