"""The reader's copy of the notebooks: an update loses nothing that the reader has changed."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from gemmlab import cli, working_copy
from gemmlab.ladder import sources
from gemmlab.widgets.progress import chapters


def write_book(path, text: str, output: str = "1") -> None:
    code = {"cell_type": "code", "source": [text], "metadata": {"tags": []}, "execution_count": 1}
    code["outputs"] = [{"output_type": "stream", "name": "stdout", "text": [output]}]
    title = {"cell_type": "markdown", "source": ["# ", "A chapter"], "metadata": {}}
    book = {"cells": [title, code], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    path.write_text(json.dumps(book, indent=1))


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """What a release contains: two chapters, a module next to them, and a page."""
    root = tmp_path / "release"
    for folder in working_copy.FOLDERS:
        (root / folder).mkdir(parents=True)
    monkeypatch.setattr(sources, "folder", lambda name: root / name)
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    write_book(root / "notebooks" / "00_a.ipynb", "a = 1")
    write_book(root / "notebooks" / "01_b.ipynb", "b = 1")
    (root / "notebooks" / "checks.py").write_text("old")
    (root / "docs" / "page.md").write_text("old")
    return root / "notebooks"


@pytest.fixture
def mine(shipped, tmp_path):
    target = tmp_path / "mine"
    assert working_copy.update(target) == []
    return target / "notebooks"


def release(shipped) -> None:
    """A new version of everything."""
    write_book(shipped / "00_a.ipynb", "a = 2", "2")
    write_book(shipped / "01_b.ipynb", "b = 2", "2")
    (shipped / "checks.py").write_text("new")


def test_what_nobody_has_changed_is_replaced(shipped, mine):
    release(shipped)
    book = json.loads((mine / "00_a.ipynb").read_text())
    book["metadata"] = {"opened": True}  # as JupyterLab does
    (mine / "00_a.ipynb").write_text(json.dumps(book))
    assert working_copy.update(mine.parent) == []
    for name in ("00_a.ipynb", "01_b.ipynb", "checks.py"):
        assert (mine / name).read_bytes() == (shipped / name).read_bytes()


@pytest.mark.parametrize("change", [("a = 3", "1"), ("a = 1", "run here")])
def test_a_newer_chapter_is_offered_once_next_to_a_changed_one(shipped, mine, change):
    """One that was only run is changed, too: its outputs are of this machine."""
    write_book(mine / "00_a.ipynb", *change)
    before = (mine / "00_a.ipynb").read_bytes()
    release(shipped)
    offered = mine / "new_00_a.ipynb"
    assert working_copy.update(mine.parent) == [offered]
    assert (mine / "00_a.ipynb").read_bytes() == before
    assert offered.read_bytes() == (shipped / "00_a.ipynb").read_bytes()
    assert [chapter.file for chapter in chapters(mine)] == ["00_a.ipynb", "01_b.ipynb"]
    offered.unlink()
    assert working_copy.update(mine.parent) == [] and not offered.exists()


def test_an_offer_is_changed_replaced_or_taken(shipped, mine):
    write_book(mine / "00_a.ipynb", "mine")
    release(shipped)
    (offered,) = working_copy.update(mine.parent)
    write_book(shipped / "00_a.ipynb", "a = 3")
    assert working_copy.update(mine.parent) == [offered]
    assert offered.read_bytes() == (shipped / "00_a.ipynb").read_bytes()
    write_book(offered, "mine, too")
    write_book(shipped / "00_a.ipynb", "a = 4")
    assert [path.name for path in working_copy.update(mine.parent)] == ["new2_00_a.ipynb"]
    (mine / "new2_00_a.ipynb").rename(mine / "00_a.ipynb")
    write_book(shipped / "00_a.ipynb", "a = 5")
    assert working_copy.update(mine.parent) == []
    assert (mine / "00_a.ipynb").read_bytes() == (shipped / "00_a.ipynb").read_bytes()


def test_other_outputs_are_no_newer_chapter(shipped, mine):
    write_book(mine / "00_a.ipynb", "a = 1", "run here")
    write_book(shipped / "00_a.ipynb", "a = 1", "run elsewhere")
    assert working_copy.update(mine.parent) == []


def test_a_removed_or_damaged_chapter_can_be_had_again(shipped, mine):
    (mine / "00_a.ipynb").unlink()
    (mine / "01_b.ipynb").write_text("{")
    release(shipped)
    assert [path.name for path in working_copy.update(mine.parent)] == ["new_01_b.ipynb"]
    assert (mine / "00_a.ipynb").exists() and (mine / "01_b.ipynb").read_text() == "{"


def test_a_student_gets_no_solutions(shipped, tmp_path):
    (shipped / "solutions").mkdir()
    (shipped / "solutions" / "00_1.py").touch()
    working_copy.update(tmp_path / "theirs", student=True)
    working_copy.update(tmp_path / "ours")
    found = [path.parents[2].name for path in tmp_path.rglob("notebooks/solutions/*")]
    assert sorted(found) == ["ours", "release"]


def test_a_folder_with_anything_else_is_refused(shipped, tmp_path, capsys):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter").touch()
    assert cli.main(["notebooks", str(tmp_path / "full")]) == 2
    assert "DIR=" in capsys.readouterr().err


def test_git_pull_meets_no_conflict(shipped, tmp_path, monkeypatch):
    """A reader has run and edited everything, and then a commit changes every chapter."""
    if not shutil.which("git"):
        pytest.skip("no git")
    identity = ["-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false"]

    def git(*words: str, folder=shipped.parent) -> None:
        subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)

    (shipped.parent / "kernels" / "one.cl").touch()
    ignored = (Path(__file__).parents[2] / ".gitignore").read_text()
    (shipped.parent / ".gitignore").write_text(ignored)
    git("init", "-b", "main")
    git("add", ".")
    git("commit", "-m", "one")
    clone = tmp_path / "clone"
    git("clone", ".", str(clone))
    monkeypatch.setattr(sources, "folder", lambda name: clone / name)
    working_copy.update(clone / "work")
    for path in (clone / "work" / "notebooks").glob("*.ipynb"):
        write_book(path, "mine", "run here")
    release(shipped)
    git("commit", "-am", "two")
    git("pull", "--ff-only", folder=clone)
    assert len(working_copy.update(clone / "work")) == 2
    for path in (clone / "work" / "notebooks").glob("0?_?.ipynb"):
        assert "mine" in path.read_text() and "run here" in path.read_text()
