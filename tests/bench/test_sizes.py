"""What sizes cost that do not suit the tiles, beside what AutoGEMM published."""

import pytest

from gemmlab.bench import edges


def test_shares_are_of_the_best_rate_of_a_device():
    found = edges.shares(1000, 1100)
    assert set(found) == {"AutoGEMM", "pad", "guard", "shift", "auto", "split"}
    ours = [share for way, by_size in found.items() if way != "AutoGEMM" for share in by_size.values()]
    for one in (ours, found["AutoGEMM"].values()):
        assert max(one) == pytest.approx(100) and min(one) > 0
    assert all(1000 <= size <= 1100 for by_size in found.values() for size in by_size)
    rates = edges.recorded()["NVIDIA H200"]
    assert found["pad"][1021] / found["guard"][1049] == pytest.approx(
        rates["pad"][1021]["gflops"] / rates["guard"][1049]["gflops"]
    )


def test_what_has_no_such_sizes_is_left_out():
    assert "AutoGEMM" not in edges.shares(4000, 4200) and "pad" in edges.shares(4000, 4200)
    assert edges.shares(1, 2) == {}


def test_what_autogemm_published_at_sizes_that_do_not_suit_its_tiles():
    """At 8 beyond a multiple of 16 about 63 % of the rate at multiples of 96, its largest tile."""
    found = edges.shares(1440, 1632)["AutoGEMM"]
    ragged = [share for size, share in found.items() if size % 16 == 8]
    whole = [share for size, share in found.items() if size % 96 == 0]
    assert sum(ragged) / len(ragged) / (sum(whole) / len(whole)) == pytest.approx(0.63, abs=0.02)
