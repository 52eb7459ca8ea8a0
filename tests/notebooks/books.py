"""Notebooks and their parts: what several tests share."""

from pathlib import Path

import nbformat

from gemmlab import catalog
from gemmlab.ladder import sources

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"


def read(name: str):
    return nbformat.read(FOLDER / name, 4)


def code(book):
    return [cell for cell in book.cells if cell.cell_type == "code"]


def tagged(book, prefix: str) -> dict[str, nbformat.NotebookNode]:
    """The cells tagged PREFIX-CC-N, as "CC_N"."""
    return {
        tag.removeprefix(f"{prefix}-").replace("-", "_"): cell
        for cell in code(book)
        for tag in cell.metadata.get("tags", [])
        if tag.startswith(f"{prefix}-")
    }


def body(number: int | str, *changes: tuple[str, str]) -> str:
    """A kernel's text with some changes; " ... " in one stands for all between."""
    text = sources.body(sources.read(catalog[number].file))
    for old, new in changes:
        start, cut, end = old.partition(" ... ")
        if cut:
            assert text.count(start) == 1, start
            first = text.index(start)
            old = text[first : text.index(end, first) + len(end)]
        assert old in text, old
        text = text.replace(old, new)
    return text
