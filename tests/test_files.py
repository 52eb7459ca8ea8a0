"""Files survive a full disk, two processes at once, and damage."""

import contextlib
import io
import json
import multiprocessing
import os
import stat

import pytest

import gemmlab
from gemmlab import caches, files
from lessons.board import Board, Try

SPAWN = multiprocessing.get_context("spawn")
BAD = {
    "empty": b"",
    "cut": b'{"a": {"b"',
    "bytes": bytes(range(256)),
    "null": b"null",
    "deep": b"[" * 200_000,
}


def _write_on_a_full_disk(folder):
    """In a process whose every write to a file fails, as on a full disk."""
    import resource

    progress, board = gemmlab.Progress(folder / "progress.json"), Board(folder / "tries.json")
    table, notes = folder / "table.json", caches.Notes(str(folder / "notes.json"))
    progress.note("01.1", True)
    board.add(Try("c", 0.5, 10, "d"))
    files.replace(table, "old")
    notes.write("a", 1)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        progress.note("01.2", True)
    assert "cannot be kept" in printed.getvalue()
    notes.write("b", 2)
    with pytest.raises(OSError):
        board.add(Try("c", 0.7, 10, "d"))
    with pytest.raises(OSError):
        files.replace(table, "new")
    assert progress.entries == {"01.1": {"right": True}} and len(board.tries) == 1
    assert table.read_text() == "old" and notes.read() == {"a": 1}
    assert not [*folder.glob(".*.part")]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no limit of file sizes")
def test_a_full_disk_leaves_the_old_file(tmp_path):
    process = SPAWN.Process(target=_write_on_a_full_disk, args=(tmp_path,))
    process.start()
    process.join()
    assert process.exitcode == 0


def _note(path, number):
    for i in range(40):
        gemmlab.Progress(path).note(f"{number}.{i}", True)


def test_two_processes_lose_no_entry(tmp_path):
    path = tmp_path / "progress.json"
    both = [SPAWN.Process(target=_note, args=(path, number)) for number in (1, 2)]
    for process in both:
        process.start()
    for process in both:
        process.join()
    assert len(gemmlab.Progress(path).entries) == 80


@pytest.mark.parametrize("content", BAD.values(), ids=BAD)
def test_a_damaged_file_is_renamed_with_a_warning(tmp_path, content):
    path = tmp_path / "progress.json"
    path.write_bytes(content)
    progress, notes = gemmlab.Progress(path, tmp_path), caches.Notes(str(path))
    assert progress.entries == {} and notes.read() == {} and "no chapters" in str(progress)
    with pytest.raises(ValueError, match="progress.json"):
        _ = Board(path).tries
    with pytest.warns(UserWarning, match=r"progress\.json\.damaged"):
        progress.note("01.1", True)
    assert progress.entries == {"01.1": {"right": True}}
    assert (tmp_path / "progress.json.damaged").read_bytes() == content


def test_odd_notebooks_are_no_chapters(tmp_path):
    odd = [b"", b"{", b"{}", b'{"cells": [{}]}', b'{"cells": []}', b"\xff", b"[]"]
    odd.append(json.dumps({"cells": [{"source": "# ", "metadata": {}}]}).encode())
    for number, content in enumerate(odd):
        (tmp_path / f"{number:02}_mine.ipynb").write_bytes(content)
    good = {"cells": [{"source": ["# 99 Mine\n"], "metadata": {"tags": ["exercise-99-1"]}}]}
    good["cells"][0]["metadata"]["tags"] += ["exercise-<script>"]
    (tmp_path / "99_mine.ipynb").write_text(json.dumps(good))
    assert "0 of 1 exercises" in str(gemmlab.Progress(tmp_path / "p.json", tmp_path))


def test_a_file_keeps_its_mode_a_link_stays_one_and_a_device_is_not_replaced(tmp_path):
    link, file = tmp_path / "link", tmp_path / "file"
    link.symlink_to(file)
    files.replace(link, "1")
    file.chmod(0o640)
    files.replace(link, "2")
    assert link.is_symlink() and file.read_text() == "2"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    with pytest.raises(OSError, match="not a regular file"):
        files.replace(os.devnull, "1")


def test_that_a_file_cannot_be_written_is_known_before(tmp_path):
    files.check_writable(tmp_path / "new.json")
    assert not [*tmp_path.iterdir()]
    for path in (tmp_path / "nowhere" / "new.json", tmp_path):
        with pytest.raises(OSError, match="cannot be written"):
            files.check_writable(path)
