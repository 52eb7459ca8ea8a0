"""What the tools and `bench` share."""

import argparse
import json

import pytest

from gemmlab import cli


def test_only_a_record_is_overwritten(tmp_path):
    path = tmp_path / "x.json"
    assert cli.record_file(str(path)) == path
    path.write_text(json.dumps({"command": "python tools/compare.py", "date": "2026-11-22"}))
    assert cli.record_file(str(path)) == path
    for text in ("", "my notes", "[]", '{"precious": 1}'):
        path.write_text(text)
        with pytest.raises(argparse.ArgumentTypeError, match="x.json exists and is no record"):
            cli.record_file(str(path))
        assert path.read_text() == text
    with pytest.raises(argparse.ArgumentTypeError, match="there is no folder"):
        cli.record_file(str(tmp_path / "nowhere" / "x.json"))
