"""The generator: a switch lights what it has changed, or says why there is no such text."""

import re

import pytest

from gemmlab import Generator
from gemmlab.generate import Schedule, write
from gemmlab.widgets.generator import SWITCHES, schedule


def show(generator, **values) -> None:
    """Put the panel where moved switches would put it, at once."""
    generator.show({**generator.start, **values})


def lit(generator) -> list[str]:
    """The lines that are lit, without spaces around them."""
    rows = re.findall(
        r'gemmlab-now"><i>\d+</i><b[^>]*>[^<]*</b><span>([^<]*)</span>', generator.panel.answer
    )
    return [row.strip() for row in rows]


def test_the_text_is_the_generators_with_the_author_of_each_line():
    generator = Generator()
    c = Schedule()
    assert generator.text == write(c) and lit(generator) == []
    assert re.findall(r"<b[^>]*>([^<]*)</b>", generator.panel.answer) == list(write(c).writers)


def test_a_switch_lights_what_it_has_changed():
    generator = Generator()
    show(generator, beta=True)
    assert any("beta*C0" in line for line in lit(generator))
    assert not any("acc[j][i] +=" in line for line in lit(generator))
    show(generator, beta=True, tail=True)
    assert any("k0 + j &lt; K" in line for line in lit(generator))
    assert not any("beta*C0" in line for line in lit(generator))


def test_what_contradicts_itself_is_said_and_the_last_text_stays():
    generator = Generator()
    before = generator.text
    show(generator, a="C")
    assert "conjugates" in generator.panel.answer and generator.text == before
    assert "gemmlab-code" in generator.panel.answer


def test_every_switch_has_a_text_at_each_of_its_values():
    start = {name: values[0] for name, (values, _) in SWITCHES.items()}
    for name, (values, _) in SWITCHES.items():
        for value in values:
            others = {"precision": "c"} if value == "C" else {}
            others |= {"width": 4} if (name, value) == ("stages", 0) else {}
            assert write(schedule(start | others | {name: value}))


def test_bad_starts_are_refused_in_words():
    with pytest.raises(ValueError, match="no slider speed"):
        Generator(speed=1)
    with pytest.raises(ValueError, match="beta starts at 2; it has the positions False, True"):
        Generator(beta=2)
