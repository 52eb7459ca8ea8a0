"""The puzzles: as given they are unsolved, and say why; their solutions pass; so on a GPU."""

from __future__ import annotations

import re

import numpy as np
import pytest

import checks
from clscope import wgsl
from lessons.puzzle_cells import puzzle
from lessons.puzzles import PUZZLES, check, written


@pytest.mark.parametrize("number", range(1, len(PUZZLES) + 1))
def test_a_puzzle_is_unsolved_until_it_is_solved(number):
    puzzle, words = PUZZLES[number - 1], written()[number - 1]
    assert words["text"].count(puzzle.gap) == 1
    assert 1 <= puzzle.fill.count("\n") <= 5
    verdict = check(number, words["text"])
    assert verdict != "solved" and len(verdict) > 15
    assert check(number, words["solution"]) == "solved"


@pytest.mark.parametrize(("number", "puzzle"), [("1", 1), ("2", 3), ("3", 4)])
def test_an_exercise_accepts_a_line_below_the_comment_that_asks_for_it(
    number, puzzle, tmp_path, monkeypatch
):
    monkeypatch.setenv("GEMMLAB_DATA", str(tmp_path))
    ask = getattr(checks, f"check_00_{number}")
    gap, fill, words = PUZZLES[puzzle - 1].gap, PUZZLES[puzzle - 1].fill, written()[puzzle - 1]
    comment = gap[gap.index("//") :]
    for text in (words["text"].replace(gap, comment + fill), words["solution"]):
        assert ask(text)
    assert not ask(words["text"]) and not ask(words["text"].replace(gap, gap + "// my line"))


def test_a_check_says_what_is_wrong():
    def wrong(number, line):
        return check(number, written()[number - 1]["text"].replace(PUZZLES[number - 1].gap, line))

    assert re.fullmatch(
        r"y\[0\] is -?\d+; it should be -?\d+", wrong(1, "    y[i] = 3.0f + x[i];\n")
    )
    assert "Y" in wrong(1, "    Y[i] = x[i];\n") and "line 5:" in wrong(1, "    Y[i] = x[i];\n")
    assert "50" in wrong(2, "    y[i] = x[i] + 1.0f;\n")
    assert "barrier" in wrong(6, "") or "tile" in wrong(6, "")
    assert "line" in wrong(1, "    while (1) {}\n") or "loop" in wrong(1, "    while (1) {}\n")


@pytest.mark.parametrize("number", range(1, len(PUZZLES) + 1))
def test_what_the_site_checks_is_in_the_translation(number):
    """The site has no simulator: it compares arrays, and looks for what `needs` says."""
    puzzle, words = PUZZLES[number - 1], written()[number - 1]
    solved, given = (wgsl.translate(words[name]).code for name in ("solution", "text"))
    if puzzle.needs:
        assert re.search(puzzle.needs[0], solved) and not re.search(puzzle.needs[0], given)
    assert all(np.isfinite(values).all() for values in puzzle.expected.values())


def test_a_cell_says_what_is_wrong_with_its_own_lines_and_steps_through_it():
    """A mistake is a link to the line of the cell, whose first line is the magic's."""
    words = written()[5]["text"]
    cell = puzzle("6", words)
    line = 2 + next(n for n, row in enumerate(words.splitlines()) if "tile[31 - l]" in row)
    assert 'data-state="wrong"' in cell.panel.answer and f'data-line="{line}"' in cell.panel.answer
    cell.panel.hear({"press": "step"})
    (stepper,) = cell.children[1:]
    assert f"<i>{line}</i>" in stepper.panel.answer and "race" in stepper.panel.answer
    cell.panel.hear({"press": "step"})
    assert len(cell.children) == 1
    solved = puzzle("6", written()[5]["solution"])
    assert 'data-state="ok"' in solved.panel.answer and "Solved" in solved.still()
    broken = puzzle("1", "__kernel void twice(\n")
    assert 'data-state="wrong"' in broken.panel.answer and not broken.panel.buttons["head"]


@pytest.mark.parametrize("line", ["", "0", "11", "one"])
def test_a_wrong_number_gets_a_sentence(line, capsys):
    assert puzzle(line, "") is None and "from 1 to 10" in capsys.readouterr().out
