"""Run every notebook (or those named) from top to bottom and store the outputs, but no widget state.

python notebooks/rebuild.py [NOTEBOOK ...]
"""

import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent


def rebuild(path: Path) -> None:
    book = nbformat.read(path, 4)
    start = time.monotonic()
    NotebookClient(book, timeout=300, store_widget_state=False, resources={"metadata": {"path": HERE}}).execute()
    for cell in book.cells:
        cell.metadata.pop("execution", None)
    book.metadata = {
        "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    nbformat.write(book, path)
    print(f"{path.name}: {time.monotonic() - start:.1f} s, {path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(HERE.glob("*.ipynb")):
        rebuild(Path(name))
