"""The parts of a chapter: predictions and their answers, the ladder under the title."""

from types import SimpleNamespace

import pytest
from IPython.core.interactiveshell import InteractiveShell

from gemmlab import Difference, Prediction, Progress, goal, model, verdict
from gemmlab.measurement import rungs
from gemmlab.widgets.magic import GemmMagics

QUESTION, CHOICES = "What will happen?", ["more", "as much", "less"]
TEMPTING = {"more": "More is asked for, but caches answer it."}


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    """A folder of nobody for what is predicted."""
    monkeypatch.setenv("GEMMLAB_DATA", str(tmp_path))


def reveal(guess: Prediction) -> None:
    guess.reveal("less", "It is counted.", TEMPTING)


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("first", ["choice", "answer"])
def test_choosing_opens_the_answer(choice, first, capsys):
    """In whichever order: by hand from cell to cell, or after Run All."""
    guess = Prediction(QUESTION, CHOICES)
    for step in (guess.choose, reveal) if first == "choice" else (reveal, guess.choose):
        step(guess if step is reveal else choice)
    assert "It is counted." in guess.panel.answer
    assert ("caches answer it" in guess.panel.answer) == (choice == "more")
    assert ("That is right" in guess.panel.answer) == (choice == "less")
    assert Progress().entries[QUESTION] == {"right": choice == "less", "choice": choice}


def test_run_all_reveals_nothing(capsys):
    guess = Prediction(QUESTION, CHOICES)
    reveal(guess)
    said = guess.panel.answer + guess.still() + capsys.readouterr().out
    assert "It is counted" not in said and "answer is" not in said and Progress().entries == {}


def test_a_prediction_is_there_again_the_next_day(capsys):
    """And in the notebook, if that is saved."""
    guess = Prediction(QUESTION, CHOICES)
    stored = []
    guess.stored = SimpleNamespace(update=lambda bundle, raw: stored.append(bundle["text/html"]))
    guess.choose("more")
    assert "more ← your choice" in stored[-1]
    assert Progress().entries[QUESTION]["right"] is None, "nobody has seen the answer"
    again = Prediction(QUESTION, CHOICES)
    reveal(again)
    assert again.answer == "more" and "caches answer it" in again.panel.answer
    again.choose("less")
    assert again.answer == "more", "the first choice counts"


@pytest.mark.parametrize("choice", CHOICES)
def test_a_cell_that_runs_again_keeps_the_verdict(choice, capsys):
    """Before and after the answer comes again, and where a new measurement says otherwise."""
    Prediction(QUESTION, CHOICES).choose(choice)
    for _ in range(2):
        again = Prediction(QUESTION, CHOICES)
        earlier = Progress().entries[QUESTION]["right"]
        reveal(again)
        assert earlier in (None, choice == "less")
        assert Progress().entries[QUESTION] == {"right": choice == "less", "choice": choice}
    Prediction(QUESTION, CHOICES)
    assert Progress().entries[QUESTION]["right"] is (choice == "less")
    again.reveal("more")
    assert Progress().entries[QUESTION]["right"] is (choice == "more")


def test_a_prediction_may_know_its_answer():
    guess = Prediction(QUESTION, CHOICES, "less", "caches answer it")
    assert "caches answer it" not in guess.panel.answer, "nothing is said before the choice"
    guess.choose("more")
    assert "caches answer it" in guess.panel.answer and "less" in guess.panel.answer


def test_what_cannot_be_asked_or_compared_is_refused():
    with pytest.raises(ValueError, match="choices must be a list of answers"):
        Prediction("What will happen?", "more")
    with pytest.raises(ValueError, match="starts from no other"):
        Difference(1)


def test_a_reader_from_cuda_chooses_it_once(capsys):
    """The choice is kept; a kernel without a translation is compared as before."""
    magics = GemmMagics(InteractiveShell.instance())
    plain = [str(Difference(kernel)) for kernel in (2, 8)]
    magics.gemm("cuda")
    assert "CUDA" in capsys.readouterr().out
    translated, untranslated = (str(Difference(kernel)) for kernel in (2, 8))
    assert "__shared__" in translated and "__local" not in translated
    assert untranslated == plain[1]
    magics.gemm("opencl")
    assert [str(Difference(kernel)) for kernel in (2, 8)] == plain


@pytest.mark.parametrize("kernel", [None, 3])
def test_the_goal_shows_every_recorded_kernel_and_one_in_colour(kernel):
    """Those on tensor cores pass the peak of the others; none has a name in place of a number."""
    picture, rates = goal(kernel), rungs.rates()
    bars = picture.axes[0].patches
    ordinary = [100 * rate / model.H200.gflops for key, rate in rates.items() if key in range(18)]
    heights = [bar.get_height() for bar in bars]
    assert heights[: len(ordinary)] == ordinary
    assert len(heights) == len(ordinary) + 2 and heights[-1] > 100
    assert len({bar.get_facecolor() for bar in bars}) == (1 if kernel is None else 2)
    assert "cuBLAS" in picture.alt and ("this chapter" in picture.alt) == (kernel is not None)


@pytest.mark.parametrize("ok", [True, False])
def test_a_verdict_is_a_truth_and_a_sentence(ok):
    found = verdict(ok, "yes, 1 < 2", "no")
    assert bool(found) is ok
    assert str(found) == ("Solved: yes, 1 < 2" if ok else "Not yet: no")
    assert "1 < 2" not in found._repr_html_(), "a sentence is no HTML"
