"""The map of the series: what is kept of the reader's answers, and what cannot be kept."""

import importlib.util
from pathlib import Path

import nbformat
import pytest

from gemmlab import Progress
from gemmlab.widgets import progress

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A progress of nobody, which checks and predictions keep, over the chapters of the series."""
    monkeypatch.setenv("GEMMLAB_DATA", str(tmp_path / "own"))
    return Progress(folder=NOTEBOOKS)


def marks(map_: Progress, title: str) -> str:
    return next(line for line in str(map_).splitlines() if f"  {title}" in line)


def test_the_map_shows_every_chapter_its_prediction_and_its_exercises(mine):
    for chapter in progress.chapters(NOTEBOOKS):
        assert chapter.title.startswith(chapter.file[:2])
        assert chapter.questions or chapter.file[:2] == "00"
        assert [number[:2] for number in chapter.exercises] == [chapter.file[:2]] * len(
            chapter.exercises
        )
        line = marks(mine, chapter.title)
        assert line.count("□") == len(chapter.exercises) >= 3 and line.count("○") == len(
            chapter.questions
        )
    assert marks(mine, "00").endswith("← 00.1 is next")
    assert f'href="{chapter.file}"' in mine._repr_mimebundle_()["text/html"]


@pytest.mark.parametrize("answer", [True, False, None])
def test_the_latest_answer_counts_and_none_changes_nothing(mine, answer):
    for earlier in (True, False, None):
        mine.note("00.1", earlier)
        mine.note("00.1", answer)
        expected = earlier if answer is None else answer
        assert mine.entries["00.1"]["right"] is expected
        mine.reset()


def test_what_is_solved_stays_so_until_a_reset(mine):
    mine.note("00.1", True)
    again = Progress(folder=NOTEBOOKS)
    assert (
        again.entries == {"00.1": {"right": True}}
        and "■ □ □" in marks(again, "00")
        and "00.2 is next" in marks(again, "00")
    )
    again.reset()
    again.reset()
    assert mine.entries == {} and "■" not in marks(mine, "00")


def test_a_check_notes_what_is_solved_under_the_exercise_s_number(mine):
    spec = importlib.util.spec_from_file_location("checks", NOTEBOOKS / "checks.py")
    checks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(checks)
    assert not checks.check_01_1(7) and mine.entries == {}
    assert checks.check_01_1(131_072) and checks.check_02_1(32768)
    assert mine.entries == {"01.1": {"right": True}, "02.1": {"right": True}}


def test_a_folder_without_chapters_says_so_and_titles_are_no_html(tmp_path):
    assert "no chapters" in str(Progress(tmp_path / "progress.json", tmp_path))
    cell = nbformat.v4.new_markdown_cell("# 00 A < B: why?")
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "00_a.ipynb")
    assert (
        "A &lt; B"
        in Progress(tmp_path / "progress.json", tmp_path)._repr_mimebundle_()["text/html"]
    )
