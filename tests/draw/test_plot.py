"""Charts: what they say is what was measured; devices and strategies keep their colours."""

from xml.etree import ElementTree

import pytest
from record import CURVES

from gemmlab import model
from gemmlab.draw import ceilings, plot
from gemmlab.draw.picture import BLUE, GREEN, ORANGE, Picture
from gemmlab.measurement import sweeps
from pictures import assert_can_be_shown

BOTH = {"here": {1: 10.0, 2: 25.0, 3: 150.0}, "NVIDIA H200": {1: 6399.8, 2: 7102.8}}


def colours(picture: Picture) -> list:
    return [line.get_color() for line in picture.axes[0].lines]


def test_lines_say_their_values():
    series = {"here": {8: 1234.4, 4: 56.78}, "NVIDIA H200": {4: 1366.6, 16: 100.0}}
    said = "here: 8 1,234, 4 56.8; NVIDIA H200: 4 1,367, 16 100"
    assert plot.lines(series, "TS", title="a sweep").alt == f"GFLOPS by TS. {said}"


@pytest.mark.parametrize("title", CURVES)
def test_the_recorded_sweeps_are_drawn_as_they_are(title):
    picture = plot.lines(sweeps.curve(title), CURVES[title][1])
    (line,) = picture.axes[0].lines
    drawn = dict(zip(line.get_xdata(), line.get_ydata(), strict=True))
    assert drawn == {float(x): y for x, y in sweeps.recorded()["curves"][title].items()}


def test_devices_and_strategies_have_the_same_colours_in_every_chart():
    assert colours(plot.ladder(BOTH))[:2] == [GREEN, BLUE]
    assert colours(plot.lines({"NVIDIA H200": {1: 2.0}}, "x")) == [BLUE]
    few = {name: {1: 1.0} for name in ("pad", "guard", "shift")}
    assert colours(plot.lines(few, "size")) == [GREEN, BLUE, ORANGE]
    assert colours(plot.lines({"AutoGEMM": {1: 2.0}, **few}, "size"))[1:] == [GREEN, BLUE, ORANGE]


def explained():
    return model.explain(3, None, model.H200, 12_600)


def test_bars_say_every_ceiling():
    alt = ceilings.bars(explained().ceilings, "kernel 3 on an H200").alt
    for c in explained().ceilings:
        assert c.resource in alt and model.percent(c.share) in alt and model.percent(c.low) in alt


PICTURES = {
    "roofline": lambda: plot.roofline(
        model.Peaks(60000, 4000), {"kernel 1": (0.25, 900), "kernel 7": (32, 3e4)}, "a GPU"
    ),
    "ladder": lambda: plot.ladder(BOTH, {"a library": 50_000.0}, {2: (20.0, 26.0)}),
    "lines": lambda: plot.lines(BOTH, "WPT"),
    "bars": lambda: ceilings.bars(explained().ceilings, "a title"),
    "strip": lambda: ceilings.strip({1: 6_000.0, 2: 170_000.0}, 2, {"a library": 51_000}),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_can_be_shown(name):
    assert_can_be_shown(PICTURES[name]())


# Any picture


def test_a_description_may_hold_any_sign_and_is_what_a_notebook_shows_as_text():
    alt = 'a < b & "c" > d, 3 × 4'
    picture = Picture(2, 1, alt)
    assert ElementTree.fromstring(picture.svg()).get("aria-label") == alt
    data, metadata = picture._repr_mimebundle_()
    assert data["text/plain"] == f"[picture: {alt}]" and metadata["image/png"]["alt"] == alt
    assert data["image/png"].startswith(b"\x89PNG")
