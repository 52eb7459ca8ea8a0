"""`make lab` passes on what Jupyter needs, and says so."""

import os
import sys

import pytest

from gemmlab.widgets import lab


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="there are no users of that kind here")
@pytest.mark.parametrize(("user", "told"), [(0, True), (1000, False)])
def test_root_is_told_to_jupyter(user, told, monkeypatch, capsys):
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert ("--allow-root" in lab.command()) == told == ("root" in capsys.readouterr().out)


@pytest.fixture(autouse=True)
def no_options(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["lab"])


def test_options_of_jupyter_are_passed_on(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["lab", "--ServerApp.ip=0.0.0.0"])
    assert "--ServerApp.ip=0.0.0.0" in lab.command()


@pytest.mark.parametrize("there", (True, False))
def test_without_a_browser_the_address_is_announced(there, monkeypatch, capsys):
    monkeypatch.setattr(lab, "_has_browser", lambda: there)
    assert ("--no-browser" in lab.command()) != there
    assert ("open the address" in capsys.readouterr().out) != there


def test_the_first_chapter_is_opened_and_the_glossary_is_within_reach():
    words = lab.command()
    root = next(w.partition("=")[2] for w in words if w.startswith("--ServerApp.root_dir="))
    start = next(
        w.partition("=/lab/tree/")[2] for w in words if w.startswith("--LabApp.default_url=")
    )
    assert os.path.isfile(os.path.join(root, start)) and os.path.isfile(
        os.path.join(root, "docs", "glossary.md")
    )
