"""The visual language of all pictures and widgets: colours by meaning, and four sizes of type.

A PNG stands on white and on black pages, so its colours have to be legible on both. In an SVG or
HTML the page chooses between two colours by its theme.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Colour:
    """One meaning: its colour on any ground (PNG), on white, and on black."""

    name: str
    any: str
    light: str
    dark: str

    @property
    def var(self) -> str:
        """As CSS and SVG write it."""
        return f"var(--gemmlab-{self.name}, {self.any})"


A = Colour("a", "#2878c4", "#1f6fc4", "#6aaef2")
B = Colour("b", "#b0620f", "#a85a00", "#e59a4c")
C = Colour("c", "#288049", "#1c7a45", "#58c48a")
RIGHT = Colour("right", C.any, C.light, C.dark)
WRONG = Colour("wrong", "#d6403a", "#c0392b", "#ff7b70")
RECORDED = Colour("recorded", "#767676", "#333333", "#dddddd")  # the recorded GPU
HERE = Colour("here", "#b83fa8", "#a8289a", "#e582d8")  # this machine
MODEL = Colour("model", "#767676", "#6b6b6b", "#a0a0a0")
EVERY = (A, B, C, RIGHT, WRONG, RECORDED, HERE, MODEL)

#: Type: the figure, text, controls and labels, notes and ticks; in CSS pixels.
FIGURE, TEXT, LABEL, NOTE = 28, 14, 13, 12


def css() -> str:
    """The colours and sizes as variables, for both themes."""
    light = "".join(f"--gemmlab-{colour.name}:{colour.light};" for colour in EVERY)
    dark = "".join(f"--gemmlab-{colour.name}:{colour.dark};" for colour in EVERY)
    sizes = zip(("figure", "text", "label", "note"), (FIGURE, TEXT, LABEL, NOTE), strict=True)
    types = "".join(f"--gemmlab-{name}:{size}px;" for name, size in sizes)
    return f":root{{{light}{types}}}\n[data-jp-theme-light=false]{{{dark}}}\n"
