"""Charts: what they say is what was measured."""

from xml.etree import ElementTree

import pytest

from gemmlab import model
from gemmlab.draw import ceilings, plot
from gemmlab.draw.picture import Picture
from pictures import assert_can_be_shown

BOTH = {"here": {1: 10.0, 2: 25.0, 3: 150.0}, "NVIDIA H200": {1: 6399.8, 2: 7102.8}}


def test_lines_say_their_values():
    series = {"here": {8: 1234.4, 4: 56.78}, "NVIDIA H200": {4: 1366.6, 16: 100.0}}
    said = "here: 8 1,234, 4 56.8; NVIDIA H200: 4 1,367, 16 100"
    assert plot.lines(series, "TS", title="a sweep").alt == f"GFLOPS by TS. {said}"


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
