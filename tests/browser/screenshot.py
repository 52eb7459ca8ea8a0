"""The README's picture of an explorer: python tests/browser/screenshot.py --readme FILE"""

import argparse
from io import BytesIO
from pathlib import Path

from lab import notebook, running
from PIL import Image

#: What a hand does in the picture: a slider, and the key that moves it.
MOVES = [("WPT", "ArrowLeft")] * 3 + [("WPT", "ArrowRight")] * 4 + [("TS", "ArrowRight")]
SECONDS = 1.4  # each of its frames is shown for so long


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--readme", type=Path, metavar="FILE", required=True)
    file = parser.parse_args().readme
    frames = []
    with running() as lab:
        text = "import gemmlab\ngemmlab.Explorer(kernel=3)"
        book = lab.open(notebook(lab.notebooks / "readme.ipynb", text))
        book.resize(1280, 1000)
        book.run_all()
        for name, key in [(None, None), *MOVES]:
            if name:
                book.press(0, name, key)
                book.wait_until(lambda: book.follows(0) and not book.busy(0))
            book.settle()
            frames.append(Image.open(BytesIO(book.box(0).screenshot())).convert("RGB"))
    first, *rest = (frame.crop((0, 0, *frames[0].size)) for frame in frames)
    durations = [int(1000 * s) for s in [SECONDS] * len(rest) + [2 * SECONDS]]
    first.save(file, save_all=True, append_images=rest, duration=durations, loop=0, quality=85)
    print(file, f"{file.stat().st_size // 1000} kB")
