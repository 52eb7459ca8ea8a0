"""Steppers: sliders in order, a text with its line lit beside the picture, and what is wrong."""

from __future__ import annotations

import re
import threading
import time
from dataclasses import replace
from html import escape
from xml.etree import ElementTree

import pytest
from simulation.cases import SMALL, edited, line_of, text

from gemmlab import Stepper, catalog, simulate
from gemmlab.draw import diagram
from gemmlab.draw.picture import Picture
from gemmlab.sandbox.client import Outcome
from gemmlab.sandbox.look import Seen, simulate_small
from gemmlab.widgets import stepping
from gemmlab.widgets.state import State, Topic
from gemmlab.widgets.stepping import PartStepper


def lit(stepper) -> list[int]:
    """The numbers of the lines that are lit."""
    return [
        int(n)
        for n in re.findall(r'<div class="gemmlab-now[^"]*"><i>(\d+)</i>', stepper.panel.answer)
    ]


def wrong(stepper) -> dict[int, str]:
    """What is marked as wrong, by line."""
    found = re.findall(r'gemmlab-wrong"><i>(\d+)</i>.*?<em>(.*?)</em>', stepper.panel.answer)
    return {int(line): kind for line, kind in found}


def show(stepper, **values) -> None:
    """Put the panel where moved sliders would put it, at once."""
    stepper.show({**stepper.values, **values})


def options(stepper, name) -> list:
    return [*stepper.controls[name].options]


def test_numbers_are_in_order_and_the_first_one_given_is_the_start():
    stepper = Stepper(diagram.layout, rows=(3, 2, 5, 4), cols=(4, 2))
    assert options(stepper, "rows") == [2, 3, 4, 5] and stepper.values == {"rows": 3, "cols": 4}
    drawn = []

    def draw(word):
        drawn.append(word)
        return Picture(2, 1, word)

    assert (
        options(Stepper(draw, word=("zero", "a")), "word") == ["zero", "a"] and drawn[0] == "zero"
    )


def test_the_last_move_is_shown_and_no_thread_stays():
    before = threading.active_count()
    steppers = [Stepper(lambda x: str(x), x=range(50)) for _ in range(3)]
    for stepper in steppers:
        for x in range(1, 50):
            stepper.panel.hear({"move": "x", "to": str(x), "held": False, "at": 1})
    end = time.monotonic() + 20
    while threading.active_count() > before and time.monotonic() < end:
        time.sleep(0.01)
    assert threading.active_count() <= before
    assert ['data-key="x=49"' in stepper.panel.answer for stepper in steppers] == [True] * 3


def test_a_film_that_cannot_be_shown_leaves_the_sliders_alive():
    run = simulate(2, 16, 16, 16, SMALL[2])
    stepper = Stepper(run)
    stepper.show({**stepper.values, "step": "no step"})
    assert "Error" in stepper.panel.answer
    stepper.panel.hear({"move": "step", "to": "3", "held": False, "at": 1})
    end = time.monotonic() + 20
    while 'data-key="step=3' not in stepper.panel.answer and time.monotonic() < end:
        time.sleep(0.01)
    assert 'data-key="step=3' in stepper.panel.answer


@pytest.mark.parametrize("number", [2, 9])
def test_the_line_of_each_step_is_lit(number):
    run = simulate(number, 16, 16, 16, SMALL[number])
    stepper = Stepper(run)
    film = next(iter(stepper._replays.values()))
    for step in (1, len(film.steps) // 2, len(film.steps)):
        show(stepper, step=step)
        assert lit(stepper) == [film.steps[step - 1].line]
        assert film.words(step).split(".")[0] in stepper.panel.answer
        assert f'data-key="step={step} item=0"' in stepper.panel.answer
    ElementTree.fromstring(stepper.still().svg())


def test_the_bars_count_what_a_line_costs():
    run = simulate(2, 16, 16, 16, SMALL[2])
    stepper = Stepper(run)
    for words, what, count in (
        ("acc += ", "turns of local memory", lambda counts: counts.turns),
        ("= acc;", "sectors of global memory", lambda counts: counts.transactions),
    ):
        line = line_of(text(2), words)
        found = re.search(rf"<i>{line}</i><b[^>]*>(.*?)</b>", stepper.panel.answer)
        assert found[1] == f"{count(run.lines[line]):,}" and f'title="{what}"' in found[0]


def test_a_slider_of_the_chapter_may_change_the_length_of_the_film():
    stepper = Stepper(
        lambda WPT: simulate(3, 16, 16, 16, {"TS": 8, "WPT": WPT}),
        {"step": 31, "item": 9},
        WPT=(4, 2),
    )
    longest = len(options(stepper, "step"))
    show(stepper, WPT=2, step=longest, item=15)
    film = stepper._replay({"WPT": 2})
    assert (
        len(options(stepper, "step")) == len(film.steps) < longest
        and len(options(stepper, "item")) == film.items
    )
    assert lit(stepper) == [film.steps[-1].line] and stepper.values["step"] == len(film.steps)


@pytest.mark.parametrize(("show", "start", "choices", "words"), [
    (None, {}, {}, "not NoneType"),
    ("run", {}, {"x": (1, 2)}, "x"),
    (lambda x: None, {}, {"x": ()}, "x must be some values"),
    (lambda x: None, {}, {"x": 3}, "x must be some values"),
    (lambda x: None, {}, {"x": "abc"}, "x must be some values"),
    ("run", {"step": 0}, {}, "step starts at 0"),
    ("run", {"group": 9}, {}, "group"),
    ("run", {"stop": 1}, {}, "no slider stop"),
])  # fmt: skip
def test_what_cannot_be_stepped_through(show, start, choices, words):
    show = simulate(2, 16, 16, 16, SMALL[2]) if show == "run" else show
    with pytest.raises((TypeError, ValueError), match=words):
        Stepper(show, start, **choices)


def test_an_error_while_drawing_is_said_in_the_panel():
    stepper = Stepper(lambda n: Picture(2, 1, "x") if n else 1 / 0, n=(1, 0))
    show(stepper, n=0)
    assert "ZeroDivisionError" in stepper.panel.answer


BROKEN = {
    "race": edited(text(2), "barrier(CLK_LOCAL_MEM_FENCE);", ""),
    "out of bounds": edited(text(2), "Atile[k][tm]", "Atile[k + 1][tm]"),
    "uninitialised": edited(text(2), "float acc = 0.0f;", "float acc;"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_what_is_wrong_is_marked_on_its_line(kind):
    run = simulate_small(2, {"TS": 32}, BROKEN[kind])
    stepper = Stepper(run, {"group": 0})
    assert wrong(stepper)[line_of(BROKEN[kind], "acc += ")] == kind
    assert wrong(Stepper(simulate(2, 16, 16, 16, SMALL[2]))) == {}


def test_the_stepper_of_a_cell_names_its_product_and_repeats_no_finding(monkeypatch, any_device):
    """The verdict above it is about another product, and has the first finding."""
    monkeypatch.setattr(stepping, "simulate_small", simulate_small)
    values = {"TS": 16, "M": 64, "N": 64, "K": 64}
    topic = Topic(catalog[2], BROKEN["race"], text(2), True)
    state = State.begin(topic, any_device, values, values)
    first, second = simulate_small(2, {"TS": 16}, BROKEN["race"]).findings
    judged = replace(
        state, outcome=Outcome({}, seen=Seen(f"line {first.line}: {first.message}", 2))
    )
    for seen, repeated in ((state, True), (judged, False)):
        made = stepping.CellStepper(seen)
        for _ in range(1000):
            if len(made.children) > 1:
                break
            time.sleep(0.01)
        head, stepper = made.children
        assert (
            "TS = 8" in head.value and "M\u00a0=\u00a0N\u00a0=\u00a0K\u00a0=\u00a016" in head.value
        )
        assert (escape(first.message) in stepper.panel.answer) == repeated
        assert ("luck" in head.value) == repeated
        assert escape(second.message) in stepper.panel.answer and "race" in [
            *wrong(stepper).values()
        ]


def test_what_is_typed_is_taken_or_refused_in_words(monkeypatch):
    stepper, sent = Stepper(lambda x: str(x), x=range(9)), []
    monkeypatch.setattr(stepper.panel, "send", sent.append)
    stepper.panel.hear({"type": "x", "text": "12"})
    assert sent[0]["refused"] == "x" and "'12'" in sent[0]["words"] and stepper.values == {"x": 0}
    stepper.panel.hear({"type": "x", "text": "8"})
    assert stepper.values == {"x": 8}


def test_lines_of_a_part_have_the_numbers_of_its_cell():
    """In the listing and in the words; lines outside have none."""
    source = text(2).replace("acc += ", "acc -= ")
    heart = line_of(source, "acc -= ")
    run = simulate(2, 16, 16, 16, SMALL[2], source=source)
    stepper = PartStepper(run, {}, range(heart - 2, heart + 2))
    films = next(iter(stepper._replays.values()))
    show(stepper, step=1 + [step.line for step in films.steps].index(heart))
    assert lit(stepper) == [4] and ", line 4." in stepper.panel.answer
    assert re.findall(r"<i>(\d+)</i>", stepper.panel.answer) == ["2", "3", "4", "5"]
    assert "of the whole kernel: " in stepper.panel.answer, "the finding is outside"


def test_what_a_kernel_prints_is_below_its_text():
    source = text(2).replace(
        "    // store", '    if (m0 + n0 + tm + tn == 0) printf("M is %d", M);\n    // store'
    )
    stepper = Stepper(simulate(2, 16, 16, 16, SMALL[2], source=source))
    assert "Printed: M is 16" in stepper.panel.answer


def test_a_caption_that_the_title_repeats_is_only_spoken():
    def draw(title):
        picture = Picture(2, 1, "one buffer")
        picture.subplots().set(title=title)
        return picture

    stepper = Stepper(draw, title=("two buffers", "one buffer"))
    assert "gemmlab-spoken" not in stepper.panel.answer and "one buffer</p>" in stepper.panel.answer
    show(stepper, title="one buffer")
    assert "gemmlab-spoken" in stepper.panel.answer and "one buffer</p>" in stepper.panel.answer
