"""What every picture must be: shown in both themes, described in words, legible."""

import io
from xml.etree import ElementTree

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from PIL import Image

from gemmlab.draw.picture import INK, Picture

#: Bytes of a stored picture, and the least size of its text in points.
MOST_BYTES, SMALLEST_TEXT = 150_000, 7.5


def assert_can_be_shown(picture: Picture) -> None:
    """As an SVG for widgets, and as a PNG for notebooks; its words are inside it and legible."""
    assert isinstance(picture, Picture) and len(picture.alt) > 20
    svg = picture.svg()
    root = ElementTree.fromstring(svg)
    assert root.get("role") == "img" and root.get("aria-label") == picture.alt
    assert INK not in svg and "var(--jp-content-font-color1" in svg, "text in the page's colour"
    assert "<style" not in svg and "\ufffd" not in svg and len(svg) < MOST_BYTES
    _, metadata = picture._repr_mimebundle_()
    assert f"width:{metadata['image/png']['width']}px" in svg, "of the same size in both forms"
    png = picture.png()
    low, high = Image.open(io.BytesIO(png)).convert("RGBA").getchannel("A").getextrema()
    assert low == 0 and high > 200, "transparent, and something is on it"
    assert len(png) < MOST_BYTES
    assert_words_are_legible(picture)


def assert_words_are_legible(picture: Picture) -> None:
    canvas = FigureCanvasAgg(picture)
    canvas.draw()
    width, inside = picture.bbox.width, 0
    for text in picture.findobj(Text):
        if text.get_text().strip() and text.get_visible():
            left, right = text.get_window_extent(canvas.get_renderer()).intervalx
            if left < width and right > 0:  # ticks beyond the ends of an axis are not drawn
                assert left >= -1 and right <= width + 1, text
                assert text.get_fontsize() >= SMALLEST_TEXT or text.get_text().isdigit(), text
                inside += 1
    assert inside


def words(picture: Picture) -> list[str]:
    """Every text of a picture, by axes."""
    return [text.get_text() for ax in picture.axes for text in ax.texts]
