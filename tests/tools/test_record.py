"""`tools/record.py`: what it refuses before it measures."""

import pytest
import record


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "required"),
        (["candidates"], "file"),
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


def test_candidates_are_for_gpus(tmp_path, any_device):
    if any_device.kind == "CPU":
        with pytest.raises(ValueError, match="has no candidates"):
            record.main(["candidates", str(tmp_path / "x.json"), "--device", str(any_device.index)])
