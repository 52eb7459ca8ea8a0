"""The reader's copy of the notebooks, which an update never overwrites: `gemmlab notebooks DIR`."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

from . import files
from .ladder import sources

#: Folders that are next to each other in a copy, because chapters link to the other two.
FOLDERS = ("notebooks", "docs", "kernels")
#: What readers do not need, by the first folder below those or by its name.
UNNEEDED = ("__pycache__", ".ipynb_checkpoints", "text", "rebuild.py")
SOLUTIONS = "solutions"
#: The file of a copy that has the versions of all its files.
RECORD = ".gemmlab.json"


def update(target: Path, *, student: bool = False) -> list[Path]:
    """Write the notebooks, and the pages and kernels that they link to, into a folder.

    A file that is there is replaced if the reader has neither edited nor run it. Otherwise it
    stays, and a newer version is written next to it, as ``new_NAME``, once.

    Args:
        target: the folder.
        student: leave the solutions out.

    Returns:
        These newer versions.

    Raises:
        FileExistsError: if the folder is neither empty nor such a copy.
        OSError: if it cannot be written.
    """
    record = target / RECORD
    if not record.exists():
        if target.exists() and not (target.is_dir() and not any(target.iterdir())):
            message = f"DIR={target} exists and is not an empty folder; name a new one"
            raise FileExistsError(message)
        target.mkdir(parents=True, exist_ok=True)
        files.replace(record, "{}\n")
    known = files.load_json(record, dict)
    newer = []
    for source, name in _shipped((*UNNEEDED, *([SOLUTIONS] if student else ()))):
        path = target / name
        before, version = known.get(name), _version(source)
        there = _version(path) if path.exists() else None
        if there is None or (there == before and there != version):
            _copy(source, path)
        elif there != version and before != version and not _same_text(before, version):
            path = _name_beside(path, before)
            _copy(source, path)
            newer.append(path)
        known[name] = version
    files.replace(record, json.dumps(known, indent=1) + "\n")
    return newer


def _shipped(unneeded: Iterable[str]) -> Iterator[tuple[Path, str]]:
    """The files of the package or of the clone, with their names in a copy."""
    for folder in FOLDERS:
        root = sources.folder(folder)
        for path in sorted(root.rglob("*")):
            name = path.relative_to(root)
            if path.is_file() and not set(name.parts) & set(unneeded) and name.name[0] != ".":
                yield path, f"{folder}/{name.as_posix()}"


def _version(path: Path) -> list[str]:
    """Digests of what a file says, and of that with the outputs of a notebook. How a notebook is
    laid out, and its metadata, are no difference: JupyterLab changes them when it opens one.
    """
    data = path.read_bytes()
    texts = [data, data]
    if path.suffix == ".ipynb":
        with suppress(ValueError, LookupError, TypeError, AttributeError):  # no notebook any more
            cells = json.loads(data)["cells"]
            said = [[cell["cell_type"], "".join(cell["source"])] for cell in cells]
            outputs = [cell.get("outputs") for cell in cells]
            texts = [json.dumps(value).encode() for value in (said, [said, outputs])]
    return [hashlib.sha256(text).hexdigest() for text in texts]


def _same_text(before: list[str] | None, version: list[str]) -> bool:
    return before is not None and before[0] == version[0]


def _name_beside(path: Path, before: list[str] | None) -> Path:
    """new_NAME, or new2_NAME if the reader has changed that, too. JupyterLab's list of files cuts
    the ends of long names.
    """
    for number in count(1):
        beside = path.with_name(f"new{number if number > 1 else ''}_{path.name}")
        if not beside.exists() or _version(beside) == before:
            return beside
    raise AssertionError("there is always one")


def _copy(source: Path, path: Path) -> None:
    """Copy a file in one step; a notebook's buttons work, because it is trusted."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    try:
        shutil.copyfile(source, part)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    if path.suffix == ".ipynb":
        with suppress(ImportError, OSError):  # without Jupyter, or without a home
            import nbformat
            from nbformat.sign import NotebookNotary

            NotebookNotary().sign(nbformat.read(path, 4))
