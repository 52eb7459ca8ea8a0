"""How far the reader has come: a map of the series, kept in a file of the reader's own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from .. import files
from ..ladder import sources

FILE = "progress.json"
LEGEND = "● predicted right, ◐ predicted wrong, ○ not predicted; ■ solved, □ not solved."


@dataclass(frozen=True)
class Chapter:
    """A chapter of the map: its predictions by their questions, its exercises as "03.1"."""

    file: str
    title: str
    questions: tuple[str, ...]
    exercises: tuple[str, ...]


def chapters(folder: str | Path = ".") -> list[Chapter]:
    """The chapters in a folder, in their order."""
    found = []
    for path in sorted(Path(folder).glob("[0-9][0-9]_*.ipynb")):
        # readers' own notebooks in the same folder may be no chapters, or damaged
        try:
            cells = files.load_json(path, dict)["cells"]
            texts = ["".join(cell["source"]) for cell in cells]
            tags = [tag for cell in cells for tag in cell["metadata"].get("tags", [])]
            title = next(
                re.findall(r"^# ([^:\n]+)", text)[0] for text in texts if text.startswith("# ")
            )
        except (OSError, ValueError, LookupError, TypeError, AttributeError, StopIteration):
            continue
        questions = re.findall(r'gemmlab\.Prediction\(\s*"([^"]+)"', "\n".join(texts))
        exercises = (
            tag.removeprefix("exercise-").replace("-", ".")
            for tag in tags
            if re.fullmatch(r"exercise-\d\d-\d+", tag)
        )
        found.append(Chapter(path.name, title, tuple(questions), tuple(exercises)))
    return found


def grades(paths: Iterable[str | Path], folder: str | Path) -> Iterator[tuple[str, str, int, int]]:
    """Yield how many exercises each student has solved of each chapter, as (chapter, student,
    solved, all).

    Args:
        paths: progress files; a student is named by the file, or by its folder if the file is
            called progress.json.
        folder: of the chapters.

    Raises:
        FileNotFoundError: if a file does not exist.
    """
    for path in map(Path, paths):
        if not path.is_file():
            raise FileNotFoundError(f"FILE={path} does not exist")
        student = path.resolve().parent.name if path.name == FILE else path.stem
        entries = files.load_json(path, dict)
        for chapter in chapters(folder):
            solved = sum(bool(entries.get(n, {}).get("right")) for n in chapter.exercises)
            yield chapter.file.removesuffix(".ipynb"), student, solved, len(chapter.exercises)


class Progress:
    """What the reader has predicted and solved; a notebook shows it as a map of the series.

    Args:
        path: the file; by default ``progress.json`` in the user's own folder (see
            `sources.own_folder`).
        folder: of the chapters; by default the current one, which is the notebook's.
    """

    def __init__(self, path: str | Path | None = None, folder: str | Path = "."):
        self.path: Path = Path(path or sources.own_folder() / FILE)
        self.folder: Path = Path(folder)

    @property
    def entries(self) -> dict[str, dict[str, Any]]:
        """What is stored, by the number of an exercise ("03.1") or the question of a prediction:
        whether it was "right" (None before the answer was seen), and the "choice" of a prediction.

        Empty if there is no file, or one that cannot be read.
        """
        with suppress(OSError, ValueError):
            return files.load_json(self.path, dict)
        return {}

    def note(self, name: str, right: bool | None, choice: str | None = None) -> None:
        """Keep an entry: the latest answer counts. If the file cannot be written, print a message.

        Args:
            name: the number of an exercise, or a question.
            right: None as long as a prediction has no answer; an earlier answer then stays.
            choice: what was predicted.
        """

        def with_entry(known: dict[str, Any]) -> dict[str, Any]:
            entry = known.get(name, {"right": None})
            entry["right"] = entry["right"] if right is None else right
            if choice is not None:
                entry["choice"] = choice
            return {**known, name: entry}

        try:
            files.change_json(self.path, dict, with_entry)
        except OSError as error:
            print(
                f"Your progress cannot be kept: {error}. The environment variable GEMMLAB_DATA "
                "names another folder."
            )

    def reset(self) -> None:
        self.path.unlink(missing_ok=True)

    def __str__(self) -> str:
        return self._map(lambda chapter: chapter.title)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        def link(chapter: Chapter) -> str:
            return f'<a href="{escape(chapter.file)}">{escape(chapter.title)}</a>'

        style = "font-family:monospace;line-height:1.5;max-width:860px;white-space:pre-wrap"
        html = f'<pre style="{style};word-break:normal">{self._map(link)}</pre>'
        return {"text/plain": str(self), "text/html": html}

    def _map(self, name: Callable[[Chapter], str]) -> str:
        """A line for each chapter, with its marks and the next exercise, and a summary."""
        there = chapters(self.folder)
        right = {name: entry["right"] for name, entry in self.entries.items()}
        numbers = [number for chapter in there for number in chapter.exercises]
        if not there:
            return f"There are no chapters in {self.folder.resolve()}."
        following = next((number for number in numbers if not right.get(number)), None)
        lines = []
        for chapter in there:
            signs = {None: "○", False: "◐", True: "●"}
            guesses = (signs[right.get(question)] for question in chapter.questions)
            boxes = ("■" if right.get(number) else "□" for number in chapter.exercises)
            here = f"  ← {following} is next" if following in chapter.exercises else ""
            lines.append(f"{''.join(guesses)} {' '.join(boxes)}  {name(chapter)}{here}")
        solved = sum(right.get(number) or False for number in numbers)
        return "\n".join([*lines, "", f"{solved} of {len(numbers)} exercises are solved.", LEGEND])
