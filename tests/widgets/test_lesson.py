"""The parts of a chapter: predictions and their answers, the ladder under the title. No device
needed.
"""

import pytest

from gemmlab import Difference, Prediction, catalog, goal, model, verdict
from gemmlab.measurement import explained


def answered(choice: str | None, capsys) -> str:
    guess = Prediction("What will happen?", ["more", "as much", "less"])
    guess._buttons.value = choice
    guess.reveal("less", "It is counted.", {"more": "More is asked for, but caches answer it."})
    return capsys.readouterr().out


@pytest.mark.parametrize("choice", [None, "more", "as much", "less"])
def test_every_answer_is_told_the_right_one(choice, capsys):
    said = answered(choice, capsys)
    assert "The answer is: less. It is counted." in said
    assert ("caches answer it" in said) == (choice == "more")
    assert ("That is right" in said, "That is wrong" in said) == (
        choice == "less",
        choice in ("more", "as much"),
    )


@pytest.mark.parametrize("choices", [[], "more"])
def test_a_question_without_answers_is_refused(choices):
    with pytest.raises(ValueError, match="choices must be a list of answers"):
        Prediction("What will happen?", choices)


def test_the_first_kernel_differs_from_one_that_is_named():
    assert Difference(1, 2).text
    for nothing in ((1,), (1, 0)):
        with pytest.raises(ValueError, match="starts from no other|not 0"):
            Difference(*nothing)


@pytest.mark.parametrize("kernel", [None, 3])
def test_the_goal_shows_every_recorded_kernel_and_one_in_colour(kernel):
    picture, rates = goal(kernel), explained.rates()
    bars = picture.axes[0].patches
    assert [bar.get_height() for bar in bars] == [
        100 * rate / model.H200.gflops for rate in rates.values()
    ]
    assert len({bar.get_facecolor() for bar in bars}) == (1 if kernel is None else 2)
    assert "cuBLAS" in picture.alt and ("this chapter" in picture.alt) == (kernel is not None)


def test_tensor_cores_are_shown_for_one_of_them_only():
    kernels = len(explained.rates())
    assert len(goal(3).axes[0].patches) == kernels < len(goal(19).axes[0].patches)
    assert goal(3).axes[0].get_ylim()[1] == 100 < goal(19).axes[0].get_ylim()[1]


@pytest.mark.parametrize("kernel", [number for number in catalog if catalog[number].before])
def test_a_difference_shows_code_and_no_rules(kernel):
    said = str(Difference(kernel))
    assert "#error" not in said and "#ifndef" not in said
    assert any(line.startswith("+") for line in said.splitlines())


@pytest.mark.parametrize("ok", [True, False])
def test_a_verdict_is_a_truth_and_a_sentence(ok):
    found = verdict(ok, "yes, 1 < 2", "no")
    assert bool(found) is ok
    assert str(found) == ("Solved: yes, 1 < 2" if ok else "Not yet: no")
    assert "1 < 2" not in found._repr_html_(), "a sentence is no HTML"
