"""Build the notebooks from their texts: run every cell from top to bottom, and store outputs but no
widget state.

python notebooks/rebuild.py [CHAPTER ...]     such as 03 or 03_work_per_thread; all by default

The text of a chapter, `text/NN_name.md`, is what one edits and reviews; jupytext turns it into a
notebook. Facts such as {{rate 6}} come from results/, see `lessons/facts.py`.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient

from gemmlab.ladder import find, sources
from lessons import facts

HERE = Path(__file__).resolve().parent
TEXTS = HERE / "text"
#: What is stored in place of an output about the machine that ran the cell.
YOURS = "Run this cell to see your own figures here.\n"
VIEW = "application/vnd.jupyter.widget-view+json"
#: Words of OpenCL, and those of CUDA. They differ; a warp is a warp.
WORDS_OF_CUDA = {
    "work-item": "thread",
    "work-group": "thread block",
    "local memory": "shared memory",
    "multiprocessor": "SM",
}
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def from_text(path: Path) -> nbformat.NotebookNode:
    """Return the notebook of a text without outputs, with kernels and facts in their places."""
    book = jupytext.reads(path.read_text(encoding="utf-8"), fmt="md")
    book.metadata = nbformat.from_dict(METADATA)
    book.nbformat, book.nbformat_minor = 4, 5
    for number, cell in enumerate(book.cells):
        cell.source = facts.fill(cell.source)
        declared = cell.metadata.get("gemmlab", {})
        if declared.get("whole"):  # the text has the first line only
            text = kernel_text(declared["kernel"], declared.get("changes", ()))
            if "part" in declared:
                text = sources.part(text, declared["part"])
            cell.source = f"{cell.source}\n{text}"
        # the same at every build, so that differences are those of the chapter
        cell["id"] = f"cell-{number:02d}"
    if path.stem[0].isdigit():
        with_words_of_cuda(book)
    return book


def with_words_of_cuda(book: nbformat.NotebookNode) -> None:
    """Add the words of CUDA to a chapter, each where it mentions its OpenCL word first."""
    prose = [cell for cell in book.cells if cell.cell_type == "markdown"]
    for word, of_cuda in WORDS_OF_CUDA.items():
        if any(f"CUDA: {of_cuda}" in cell.source for cell in prose):
            continue
        for cell, match in _mentions(prose, word):
            many = "s" if re.search(rf"{word}s", match[0]) else ""
            words = f"{match[0]} (CUDA: {of_cuda}{many})"
            cell.source = cell.source[: match.start()] + words + cell.source[match.end() :]
            break


def _mentions(
    prose: list[nbformat.NotebookNode], word: str
) -> Iterator[tuple[nbformat.NotebookNode, re.Match[str]]]:
    """The places of a word, with the link around it, outside of titles, code and the question."""
    mention = re.compile(rf"\[\W*{word}s?\W*\]\([^)]*\)\**|\b{word}s?\b(?![\w-]|[^[]*?\]\()")
    for cell in prose:
        for match in mention.finditer(cell.source):
            before = cell.source[: match.start()]
            line = before.rpartition("\n")[2]
            if before.count("`") % 2 == 0 and not line.startswith(("#", "**The", "<", "|")):
                yield cell, match


def kernel_text(kernel: int, changes: Iterable[tuple[str, str]] = ()) -> str:
    """The text of a kernel in a `%%gemm` cell (see `sources.code`).

    Args:
        kernel: its number.
        changes: pairs of a string and what replaces it.
    """
    text = sources.code(sources.read(find(kernel).file))
    for old, new in changes:
        text = text.replace(old, new)
    return text


def of_this_machine(cell: nbformat.NotebookNode) -> bool:
    """Whether a cell's output is about the machine that runs it: then it is not stored.

    Exercises and widgets are: they store no rate of the machine.
    """
    tags = cell.metadata.get("tags", [])
    if cell.cell_type != "code" or "nbval-ignore-output" not in tags or len(tags) > 1:
        return False
    return not any(VIEW in output.get("data", {}) for output in cell.outputs)


def rebuild(text: Path) -> None:
    book, start = from_text(text), time.monotonic()
    client = NotebookClient(
        book, timeout=300, store_widget_state=False, resources={"metadata": {"path": HERE}}
    )
    with tempfile.TemporaryDirectory() as empty:  # what is stored shows nobody's own progress
        client.execute(env={**os.environ, "GEMMLAB_DATA": empty})
    for cell in book.cells:
        cell.metadata.pop("execution", None)
        if of_this_machine(cell):
            cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=YOURS)]
        if ".reveal(" in cell.source:  # it holds the answer of a prediction
            cell.metadata.setdefault("jupyter", {})["source_hidden"] = True
    book.metadata = nbformat.from_dict(METADATA)
    path = HERE / f"{text.stem}.ipynb"
    nbformat.write(book, path)
    print(
        f"{path.name}: {time.monotonic() - start:.1f} s, {path.stat().st_size // 1000} kB",
        flush=True,
    )


def texts(names: list[str]) -> list[Path]:
    """The texts of the chapters that begin with these names, or all."""
    found = [
        path
        for path in sorted(TEXTS.glob("*.md"))
        if not names or path.stem.startswith(tuple(names))
    ]
    if not found:
        raise SystemExit(f"no text in {TEXTS} begins with {' or '.join(names)}")
    return found


if __name__ == "__main__":
    for text in texts([Path(name).stem for name in sys.argv[1:]]):
        rebuild(text)
