"""Pictures in SVG that shrink with the page, for the pictures of a chip and of the flow.

All text is white on dark shapes, or in a grey for light and dark pages.
"""

from __future__ import annotations

from base64 import b64encode
from html import escape

WIDTH = 880
SLATE, BLUE, TIGHT, GREY, WHITE = "#3d4a5c", "#2566a8", "#c2410c", "#808080", "#ffffff"


class Drawing:
    """Something that a notebook shows as SVG, described by its `alt`.

    It is the source of an image: in a notebook that is not trusted yet, JupyterLab shows images,
    but no <svg> elements.
    """

    alt: str

    def svg(self) -> str:
        """An <svg> element."""
        raise NotImplementedError

    def _repr_mimebundle_(self, include=None, exclude=None):
        source = b64encode(self.svg().encode()).decode()
        html = (
            f'<img alt="{escape(self.alt)}" style="width:100%;max-width:{WIDTH}px" '
            f'src="data:image/svg+xml;base64,{source}">'
        )
        return {"text/html": html, "text/plain": f"[picture: {self.alt}]"}


def page(height: float, alt: str, *parts: str) -> str:
    """An <svg> element that shrinks with the page."""
    words = escape(alt)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="100%" style="max-width:{WIDTH}px;height:auto" role="img" '
        f'font-family="system-ui, sans-serif"><title>{words}</title>'
        f"{''.join(parts)}</svg>"
    )


def box(x: float, y: float, width: float, height: float, colour: str = SLATE) -> str:
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="5" fill="{colour}"/>'


def text(
    x: float, y: float, words: str, size: float, colour: str = WHITE, *, bold: bool = False,
    anchor: str = "middle",
) -> str:  # fmt: skip
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{x:.0f}" y="{y}" text-anchor="{anchor}" font-size="{size}" '
        f'fill="{colour}"{weight}>{words}</text>'
    )
