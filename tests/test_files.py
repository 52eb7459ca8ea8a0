"""Files survive a full disk, two processes at once, and damage."""

import json
import multiprocessing
import os
import resource
import stat

import pytest

import gemmlab
from gemmlab import caches, files
from gemmlab.widgets.board import Board, Try

BAD = {
    "empty": b"",
    "cut": b'{"a": {"b"',
    "bytes": bytes(range(256)),
    "null": b"null",
    "number": b"1e999",
    "deep": b"[" * 200_000,
    "utf-16": "{}".encode("utf-16"),
}


@pytest.fixture
def full_disk():
    """Every write fails, as on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_full_disk_leaves_the_old_file(tmp_path, request, capsys):
    progress, board = gemmlab.Progress(tmp_path / "progress.json"), Board(tmp_path / "tries.json")
    table, notes = tmp_path / "table.json", caches.Notes(str(tmp_path / "notes.json"))
    progress.note("01.1", True)
    board.add(Try("c", 0.5, 10, "d"))
    files.replace(table, "old")
    notes.write("a", 1)
    request.getfixturevalue("full_disk")
    progress.note("01.2", True)
    notes.write("b", 2)
    with pytest.raises(OSError):
        board.add(Try("c", 0.7, 10, "d"))
    with pytest.raises(OSError):
        files.replace(table, "new")
    assert progress.entries == {"01.1": True} and len(board.tries) == 1
    assert table.read_text() == "old" and notes.read() == {"a": 1}
    assert "cannot be kept" in capsys.readouterr().out
    assert not [*tmp_path.glob("*.part"), *tmp_path.glob(".*.part")]


def _note(path, number):
    for i in range(40):
        gemmlab.Progress(path).note(f"{number}.{i}", True)


def test_two_processes_lose_no_entry(tmp_path):
    path = tmp_path / "progress.json"
    spawn = multiprocessing.get_context("spawn")
    both = [spawn.Process(target=_note, args=(path, number)) for number in (1, 2)]
    for process in both:
        process.start()
    for process in both:
        process.join()
    assert len(gemmlab.Progress(path).entries) == 80


def test_a_lock_that_is_never_released_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "PATIENCE", 0.05)
    path = tmp_path / "x.json"
    with files.locked(path), pytest.raises(TimeoutError, match="x.json"), files.locked(path):
        pass


@pytest.mark.parametrize("content", BAD.values(), ids=BAD)
def test_a_damaged_file_is_put_aside_and_that_is_said(tmp_path, content):
    path = tmp_path / "progress.json"
    path.write_bytes(content)
    progress, notes = gemmlab.Progress(path, tmp_path), caches.Notes(str(path))
    assert progress.entries == {} and notes.read() == {} and "no chapters" in str(progress)
    with pytest.raises(ValueError, match="progress.json"):
        _ = Board(path).tries
    with pytest.warns(UserWarning, match=r"progress\.json\.damaged"):
        progress.note("01.1", True)
    assert progress.entries == {"01.1": True}
    assert (tmp_path / "progress.json.damaged").read_bytes() == content


def test_odd_notebooks_are_no_chapters(tmp_path):
    odd = [b"", b"{", b"{}", b'{"cells": [{}]}', b'{"cells": []}', b"\xff", b"[]"]
    odd.append(json.dumps({"cells": [{"source": "# ", "metadata": {}}]}).encode())
    for number, content in enumerate(odd):
        (tmp_path / f"{number:02}_mine.ipynb").write_bytes(content)
    good = {"cells": [{"source": ["# 99 Mine\n"], "metadata": {"tags": ["exercise-99-1"]}}]}
    (tmp_path / "99_mine.ipynb").write_text(json.dumps(good))
    assert "0 of 1 exercises" in str(gemmlab.Progress(tmp_path / "p.json", tmp_path))


def test_a_new_file_has_the_usual_mode_and_an_old_one_keeps_its_own(tmp_path):
    path, usual = tmp_path / "a", tmp_path / "b"
    usual.write_text("")
    files.replace(path, "1")
    assert stat.S_IMODE(os.stat(path).st_mode) == stat.S_IMODE(os.stat(usual).st_mode)
    path.chmod(0o640)
    files.replace(path, "2")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o640


def test_whether_a_file_can_be_written_is_known_before(tmp_path):
    files.writable(tmp_path / "new.json")
    assert not [*tmp_path.iterdir()]
    with pytest.raises(OSError, match="no folder"):
        files.writable(tmp_path / "nowhere" / "new.json")
    with pytest.raises(OSError, match="is a folder"):
        files.writable(tmp_path)
