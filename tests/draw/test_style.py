"""Every colour can be read, on white and on black pages, and a picture's on both."""

import pytest
from matplotlib.colors import to_rgb

from gemmlab.draw import style


def contrast(one: str, other: str) -> float:
    """As WCAG 2 defines it."""

    def light(colour: str) -> float:
        linear = [
            v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in to_rgb(colour)
        ]
        return sum(share * v for share, v in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colour", style.EVERY, ids=lambda colour: colour.name)
def test_a_colour_stands_out(colour):
    assert contrast(colour.light, "#ffffff") >= 4.5 and contrast(colour.dark, "#111111") >= 4.5
    # one colour for both grounds: what graphics need
    assert min(contrast(colour.any, ground) for ground in ("#ffffff", "#111111")) >= 3
