"""Time lines: what their descriptions say is what the model computes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemmlab import model
from lessons import schedules
from pictures import words


@pytest.mark.parametrize(
    ("schedule", "end", "busy"),
    [((4, 3, 2), 20, 40), ((4, 3, 2, 2), 14, 57), ((4, 3, 2, 1, 3), 27, 89), ((1, 1, 3), 4, 75)],
)
def test_a_time_line_says_when_it_is_done(schedule, end, busy):
    picture = schedules.timeline(*schedule)
    assert picture.alt.endswith(f"done after {end}, computing {busy}% of the time")
    spans = model.timeline(*schedule)
    assert sorted(map(int, words(picture))) == sorted(span.tile for span in spans)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 12), st.integers(1, 9), st.integers(1, 9))
def test_two_stages_are_two_buffers(tiles, copy, multiply):
    """With two stages it is chapter 09's time line; more stages never take longer."""
    alts = [schedules.stages(tiles, copy, multiply, stages).alt for stages in (2, 3, 4)]
    ends = [float(alt.split("after ")[1].split(",")[0]) for alt in alts]
    assert ends[0] == max(s.end for s in model.timeline(tiles, copy, multiply, buffers=2))
    assert ends == sorted(ends, reverse=True) and ends[-1] >= copy + tiles * multiply


def test_stages_hide_a_long_copy():
    """With four, three copies are under way from the start."""
    two, four = (schedules.stages(3, 8, 2, stages).alt for stages in (2, 4))
    assert two == "2 stages: done after 26, multiplying 23% of the time"
    assert four == "4 stages: done after 14, multiplying 43% of the time"


@pytest.mark.parametrize(
    ("warps", "waits", "busy"), [(1, True, "50%"), (1, False, "86%"), (2, True, "92%")]
)
def test_warps_that_wait_leave_gaps(warps, waits, busy):
    assert f"busy {busy}" in schedules.waiting(2, 2, warps, waits).alt


def test_shares_say_what_is_idle_and_what_is_cut():
    said = "one work-group per tile leaves 38% idle, equal shares 0%; tiles cut: 1, 2, 3"
    picture = schedules.shares(5, 8, 4)
    assert picture.alt.endswith(said)
    assert words(picture) == list("04123") + list("01122334")
    assert schedules.shares(4, 8, 4).alt.endswith("0% idle, equal shares 0%; tiles cut: none")
