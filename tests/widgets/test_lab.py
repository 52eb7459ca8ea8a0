"""`make lab` passes on what Jupyter needs, and announces it."""

import os
import sys

import pytest

from gemmlab.widgets import lab


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="there are no users of that kind here")
@pytest.mark.parametrize("unusual", [True, False])
def test_what_the_machine_needs_is_passed_on_and_announced(unusual, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["lab", "--ServerApp.ip=0.0.0.0"])
    monkeypatch.setattr(os, "geteuid", lambda: 0 if unusual else 1000)
    monkeypatch.setattr(lab, "_has_browser", lambda: not unusual)
    words, said = lab.command(), capsys.readouterr().out
    assert "--ServerApp.ip=0.0.0.0" in words
    for option, word in (("--allow-root", "root"), ("--no-browser", "-p 127.0.0.1:8888:8888")):
        assert (option in words) == (word in said) == unusual
    root, start = (
        next(word.partition(option)[2] for word in words if word.startswith(option))
        for option in ("--ServerApp.root_dir=", "--LabApp.default_url=/lab/tree/")
    )
    assert os.path.isfile(os.path.join(root, start))
