"""The picture of one multiprocessor, and the flow of floats: what they say of an H200."""

from xml.etree import ElementTree

import pytest

from gemmlab import model
from gemmlab.measurement import rungs
from lessons import chip, flow


@pytest.mark.parametrize("picture", [chip.multiprocessor(model.H200), flow.counted(1, 2)])
def test_a_picture_is_svg_that_describes_itself(picture):
    root = ElementTree.fromstring(picture.svg)
    title = root.find("{http://www.w3.org/2000/svg}title")
    assert root.get("role") == "img" and title is not None and title.text == picture.alt


def test_a_multiprocessor_delivers_what_the_pipes_of_a_flow_have_room_for():
    pipes = flow.of(rungs.rung(1)).pipes
    room = [pipe.width * model.H200.lanes for pipe in pipes[:3]]
    assert chip.delivered(model.H200) == pytest.approx(room)
