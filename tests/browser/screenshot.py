"""Run notebooks in a real JupyterLab and take pictures of them, to be looked at.

python tests/screenshot.py [--out FOLDER] [--theme light|dark|both] [--width 1280,800] [--readme
FILE] NOTEBOOK...
"""

import argparse
from pathlib import Path

from lab import Book, Lab, notebook


def pictures(book: Book, folder: Path, themes: list[str], widths: list[int]) -> None:
    """The whole notebook in each theme at each width."""
    for theme in themes:
        book.theme(theme)
        for width in widths:
            file = folder / f"{book.path.stem}_{theme}_{width}.png"
            book.whole(file, width)
            print(file)


def readme(lab: Lab, file: Path) -> None:
    """An explorer after a few moves, as the README shows it."""
    book = lab.open(
        notebook(lab.notebooks / "readme.ipynb", "import gemmlab\ngemmlab.Explorer(kernel=3)"),
        scale=2,
    )
    book.resize(1280, 1600)  # all of it is in the window
    book.run_all()
    for name, keys in (("WPT", "LLR"), ("TS", "LLLLRRRR"), ("WPT", "RR"), ("TS", "LR")):
        for key in keys:
            book.time(0, name, {"L": "ArrowLeft", "R": "ArrowRight"}[key])
    book.wait_until(lambda: "tries" in book.moments() and " of " in book.shown(0)["text"])
    book.select(0)
    book.page.evaluate("document.activeElement.blur()")
    book.settle()
    book.box(0).screenshot(path=file)
    print(file)
    book.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Run notebooks in JupyterLab and take pictures of them."
    )
    parser.add_argument("notebooks", nargs="*", type=Path, metavar="NOTEBOOK")
    parser.add_argument(
        "--out", type=Path, default=Path(".shots"), help="folder for the pictures (.shots)"
    )
    parser.add_argument("--theme", choices=("light", "dark", "both"), default="both")
    parser.add_argument(
        "--width", default="1280,800", help="widths of the window in pixels (1280,800)"
    )
    parser.add_argument(
        "--readme", type=Path, metavar="FILE", help="write the README's picture of an explorer here"
    )
    options = parser.parse_args()
    themes = ["light", "dark"] if options.theme == "both" else [options.theme]
    widths = [int(width) for width in options.width.split(",")]
    options.out.mkdir(parents=True, exist_ok=True)
    with Lab() as lab:
        for path in options.notebooks:
            book = lab.open(path)
            book.run_all()
            pictures(book, options.out, themes, widths)
            book.close()
        if options.readme:
            readme(lab, options.readme)


if __name__ == "__main__":
    main()
