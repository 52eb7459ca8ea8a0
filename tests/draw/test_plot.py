"""Charts: what they say is what was measured."""

from base64 import b64decode
from xml.etree import ElementTree

import pytest

from gemmlab.draw import plot
from gemmlab.draw.picture import Picture
from pictures import assert_can_be_shown

BOTH = {"here": {1: 10.0, 2: 25.0, 3: 150.0}, "NVIDIA H200": {1: 6399.8, 2: 7102.8}}


def test_lines_say_their_values():
    series = {"here": {8: 1234.4, 4: 56.78}, "NVIDIA H200": {4: 1366.6, 16: 100.0}}
    said = "here: 8 1,234, 4 56.8; NVIDIA H200: 4 1,367, 16 100"
    assert plot.lines(series, "TS", title="a sweep").alt == f"GFLOPS by TS. {said}"


PICTURES = {
    "lines": lambda: plot.lines(BOTH, "WPT"),
    "strip": lambda: plot.strip({1: 6_000.0, 2: 170_000.0}, 2, {"a library": 51_000}),
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
    # text, which every kernel stores alike, those in a browser too
    assert b64decode(data["image/png"], validate=True).startswith(b"\x89PNG")
