"""`tools/record.py`: sweeps, and what it refuses before it measures."""

import json

import pytest
import record


@pytest.mark.system
def test_chapters_of_some_kernels(tmp_path, any_device, monkeypatch):
    """Only their sweeps, and of these what the chapters show."""
    some = {"01 TS": (1, "TS", (4, 8), {}), "03 WPT": (3, "WPT", (2, 4), {"TS": 32})}
    monkeypatch.setattr(record, "CURVES", some)
    file = tmp_path / "chapters.json"
    record.main(["chapters", str(file), "--kernels", "3", "--size", "64"])
    found = json.loads(file.read_text())
    assert list(found["curves"]) == ["03 WPT"] and list(found["curves"]["03 WPT"]) == ["2", "4"]
    assert found["size"] == 64 and {"device", "date", "command"} <= set(found)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "required"),
        (["chapters", "x.json", "--sizes", "64"], "--sizes"),
        (["landscape", "--kernels", "99"], "kernel 99"),
        (["landscape", "--seconds", "soon"], "--seconds"),
        (["landscape", "--size", "0"], "--size"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((SystemExit, ValueError)) as refused:
        record.main(arguments)
    assert words in capsys.readouterr().err + str(refused.value)
    assert not list(tmp_path.iterdir())
