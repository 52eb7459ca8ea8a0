"""The open challenges and the board: what counts, what is refused, what is kept."""

import dataclasses

import pytest

from gemmlab import catalog
from gemmlab.catalog import sources
from gemmlab.opencl.devices import devices
from gemmlab.widgets import board
from gemmlab.widgets.board import Board, Challenge, Try

SMALL = Challenge("pass kernel 1", 1, 60, 64)


def test_a_board_keeps_tries_and_shows_the_best_first(tmp_path):
    mine = Board(tmp_path / "own" / "tries.json")
    assert mine.tries == [] and "No tries" in str(mine)
    for share in (0.2, 1.3, 0.6):
        mine.add(Try("pass NumPy", share, 40, "a processor"))
    again = Board(mine.path)
    assert [one.share for one in again.tries] == [1.3, 0.6, 0.2]
    assert [word in str(again) for word in ("passed", "half way", "a start")] == [True] * 3
    again.clear()
    assert mine.tries == [] and not mine.path.exists()


def test_a_file_that_is_no_board_is_left_alone_and_named(tmp_path):
    path = tmp_path / "tries.json"
    path.write_text("[1, 2")
    with pytest.raises(ValueError, match=r"tries\.json is no board"):
        Board(path).add(Try("pass NumPy", 1.0, 1, "a processor"))
    assert path.read_text() == "[1, 2"


@pytest.mark.skipif(not devices(), reason="no OpenCL device")
def test_an_attempt_is_checked_timed_and_counted():
    text = sources.read(catalog[2].file)
    one = board.attempt(SMALL, 2, {"TS": 16}, text)
    assert one.share > 0 and one.lines == sources.code_lines(text) and one.challenge == SMALL.name
    with pytest.raises(ValueError, match="wrong"):
        board.attempt(SMALL, 2, {"TS": 16}, text.replace("acc +=", "acc -="))
    with pytest.raises(ValueError, match="lines of code; 10 are allowed"):
        board.attempt(dataclasses.replace(SMALL, lines=10), 2, {"TS": 16}, text)


@pytest.mark.skipif(not devices(), reason="no OpenCL device")
def test_the_challenge_suits_the_device():
    for device in devices():
        assert (board.fitting(device) is board.NUMPY) == (device.kind == "CPU")


def test_lines_of_code_leave_out_comments_rules_and_empty_lines():
    text = """// a header
#ifndef TS
#define TS 16 // tile
#endif
#if !(TS > 0)
#error TS must be positive
#endif

/* two
   lines */
__kernel void gemm()
{
    // nothing
}
"""
    assert sources.code_lines(text) == 4
