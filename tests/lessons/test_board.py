"""The open challenge and the board: what counts, what is refused, what is kept."""

import pytest

from gemmlab import catalog
from gemmlab.ladder import sources
from lessons import board
from lessons.board import Board, Try


def test_a_board_keeps_tries_and_shows_the_best_first(tmp_path):
    mine = Board(tmp_path / "own" / "tries.json")
    assert mine.tries == [] and "No tries" in str(mine)
    for share in (0.2, 1.3, 0.6):
        mine.add(Try("pass NumPy", share, 40, "a processor"))
    again = Board(mine.path)
    assert [one.share for one in again.tries] == [1.3, 0.6, 0.2]
    assert str(again).index("1.30") < str(again).index("0.60")
    again.clear()
    assert mine.tries == [] and not mine.path.exists()


def test_an_attempt_is_checked_timed_and_counted(any_device, monkeypatch):
    text = sources.read(catalog[2].file)
    monkeypatch.setattr(board, "NUMPY_SIZE", 64)
    one = board.attempt(2, {"TS": 16}, text)
    assert one.share > 0 and one.lines == sources.code_lines(text)
    with pytest.raises(ValueError, match="wrong"):
        board.attempt(2, {"TS": 16}, text.replace("acc +=", "acc -="))


@pytest.mark.parametrize("enough, most", [(1e-9, 1), (60.0, 1 + board.ROUNDS)])
def test_a_slow_product_is_timed_in_fewer_calls(monkeypatch, enough, most):
    calls = []
    monkeypatch.setattr(board, "ENOUGH", enough)
    assert board.rate_of(lambda a, b: calls.append(a), 8) > 0
    assert len(calls) == most
