"""The arithmetic on paper: operations, tiles, banks, occupancy. No device needed."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemmlab import model


def test_arithmetic_on_paper():
    assert model.flops(3, 5, 7) == 210
    assert model.gflops(1000, 1000, 1000, 2.0) == pytest.approx(1.0)
    assert model.least_bytes(2, 3, 4) == 4 * (8 + 12 + 6)
    assert model.intensity(100, 50) == 2 and model.tile_intensity(3, 6) == 4
    peaks = model.Peaks(gflops=100, bandwidth=20)
    assert model.ridge(peaks) == 5
    assert [model.roofline(peaks, intensity) for intensity in (1, 5, 50)] == [20, 100, 100]
    assert model.loads(1) == {"global": 2, "local": 0}
    assert model.loads(2, {"TS": 16}) == {"global": 1 / 8, "local": 2}
    assert model.loads(3, {"TS": 32, "WPT": 8}) == {"global": 1 / 16, "local": 1.125}


@pytest.mark.parametrize("bank_bytes", (4, 8))
def test_turns_by_counting_and_by_formula(bank_bytes):
    for stride in range(1, 201):
        lanes = range(0, 32 * stride, stride)
        words = {4 * i // bank_bytes for i in lanes}
        most = max(sum(word % 32 == bank for word in words) for bank in range(32))
        assert model.turns(lanes, bank_bytes) == most == model.stride_turns(stride, bank_bytes), (
            stride
        )


def placed(chip, of_a_group, room):
    """How many groups fit, one after the other until the room is used up."""
    groups, used = 0, of_a_group
    while used <= room:
        groups, used = groups + 1, used + of_a_group
    return groups


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    st.sampled_from((model.K40M, model.H200)),
    st.integers(1, 1100),
    st.integers(1, 300),
    st.integers(0, 250 * 1024),
)
def test_occupancy_by_placing_group_after_group(chip, work_items, registers, local_memory):
    fits = model.occupancy(chip, work_items, registers, local_memory)
    warps = len(range(0, work_items, 32))
    # 256 registers at a time
    of_a_warp = next(r for r in range(0, 2**20, 256) if r >= 32 * registers)
    taken = local_memory + (1024 if chip is model.H200 else 0)  # Hopper keeps 1 KB for each group
    assert fits == {
        "work-items": placed(chip, 32 * warps, 2048),
        "registers": placed(chip, warps * of_a_warp, 65536) if registers <= 255 else 0,
        "local memory": placed(chip, taken, chip.local_memory) if taken else chip.groups,
        "groups": chip.groups,
    }
