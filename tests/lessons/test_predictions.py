"""The predictions of the main line."""

import pytest

import rebuild
from lessons import predictions


@pytest.fixture(autouse=True)
def an_empty_folder(tmp_path, monkeypatch):
    """Choices are kept in no file of the reader's."""
    monkeypatch.setenv("GEMMLAB_DATA", str(tmp_path))


@pytest.mark.parametrize("kernel", predictions.QUESTIONS)
def test_each_choice_has_its_reason(kernel):
    asked = predictions.QUESTIONS[kernel]
    for choice in asked.choices:
        guess = predictions.predict(kernel)
        guess.answer = None
        guess.choose(choice)
        page = guess.still()
        assert "{{" not in page and asked.right in guess.panel.answer
        assert ("That is right" in guess.panel.answer) == (choice == asked.right)


def test_no_cell_of_the_main_line_shows_an_answer_above_its_question():
    book = rebuild.from_text(rebuild.TEXTS / "the_ladder.md")
    code = "\n".join(cell.source for cell in book.cells if cell.cell_type == "code")
    for kernel, asked in predictions.QUESTIONS.items():
        assert f"predictions.predict({kernel})" in code and asked.right not in code
