"""Run notebooks in a real JupyterLab and take pictures of them, to be looked at.

python tests/screenshot.py [--out FOLDER] [--theme light|dark|both] [--width 1280,800] [--readme
FILE] NOTEBOOK...
"""

import argparse
from io import BytesIO
from pathlib import Path

from lab import Book, Lab, notebook
from PIL import Image


def pictures(book: Book, folder: Path, themes: list[str], widths: list[int]) -> None:
    """The whole notebook in each theme at each width."""
    for theme in themes:
        book.theme(theme)
        for width in widths:
            file = folder / f"{book.path.stem}_{theme}_{width}.png"
            book.whole(file, width)
            print(file)


#: What a hand does in the README's picture: a slider, and the key that moves it.
MOVES = [("WPT", "ArrowLeft")] * 3 + [("WPT", "ArrowRight")] * 4 + [("TS", "ArrowRight")]
SECONDS = 1.4  # each of its frames is shown for so long


def readme(lab: Lab, file: Path) -> None:
    """An explorer that somebody moves, as an animated picture."""
    text = "import gemmlab\ngemmlab.Explorer(kernel=3)"
    book = lab.open(notebook(lab.notebooks / "readme.ipynb", text))
    book.resize(1280, 1000)
    book.run_all()
    frames = []
    for name, key in [(None, None), *MOVES]:
        if name:
            book.time(0, name, key)
        book.settle()
        frames.append(Image.open(BytesIO(book.box(0).screenshot())).convert("RGB"))
    book.close()
    first, *rest = (frame.crop((0, 0, *frames[0].size)) for frame in frames)
    seconds = [SECONDS] * len(rest) + [2 * SECONDS]
    durations = [int(1000 * s) for s in seconds]
    first.save(file, save_all=True, append_images=rest, duration=durations, loop=0, quality=85)
    print(file, f"{file.stat().st_size // 1000} kB")


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
