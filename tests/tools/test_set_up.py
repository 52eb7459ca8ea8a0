"""`tools/set_up.sh` names what is missing, and the command that helps."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "set_up.sh"

pytestmark = pytest.mark.skipif(os.name == "nt", reason="make and sh are those of Unix")

#: A Python that is as old, makes environments, installs and finds devices as variables say. What
#: it is called with is appended to a log.
PYTHON = """#!/bin/sh
echo "$*" >> "$LOG"
case "$*" in
  *version_info*) exit ${OLD:-0} ;;
  "-m venv"*)
    for folder; do :; done
    case "$*" in *--clear*) rm -r "$folder" ;; esac
    mkdir -p "$folder/bin" && touch "$folder/pyvenv.cfg"
    test -L "$folder/bin/python" || cp "$0" "$folder/bin/python"
    [ -z "$NO_VENV" ] || { echo "$NO_VENV"; exit 1; }
    touch "$folder/pip" ;;
  "-m pip --version") test -e "$(dirname "$0")/../pip" ;;
  "-m pip install"*) [ -z "$NO_PIP" ] || { echo "$NO_PIP"; exit 1; } ;;
  *intel*) ;;
  "-m gemmlab doctor") exit ${DOCTOR:-0} ;;
  *"import gemmlab"*) test -n "$INSTALLED" ;;
esac
"""


@pytest.fixture
def set_up(tmp_path):
    """Run the script with a Python like that; return its status, its output, and Python's calls."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "mkdir", "touch", "cp", "rm", "dirname", "grep", "tail", "ls"):
        (tools / name).symlink_to(shutil.which(name))
    python = tools / "python3"
    python.write_text(PYTHON)
    python.chmod(0o755)
    log = tmp_path / "log"

    def run(venv: str = ".venv", what: str = "lab", **variables: str) -> tuple[int, str, str]:
        log.write_text("")
        paths = {"PATH": str(tools), "LOG": str(log), "PYTHON": "python3", "VENV": venv}
        done = subprocess.run(
            ["sh", SCRIPT, what],
            cwd=tmp_path,
            env=paths | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return done.returncode, done.stdout, log.read_text()

    return run


def test_a_set_up_is_short_and_marked_as_done(set_up, tmp_path):
    for what, extra in (("lab", "[lab,"), ("test", "--group dev")):
        status, text, calls = set_up(what=what)
        assert status == 0 and (tmp_path / ".venv" / f"{what}.done").exists()
        assert " MB " in text and len(text.splitlines()) <= 5
        assert extra in calls and "intel" not in calls


def test_the_site_needs_neither_a_device_nor_jupyter(set_up, tmp_path):
    status, text, calls = set_up(what="site", DOCTOR="3")
    assert status == 0 and (tmp_path / ".venv" / "site.done").exists() and " MB " in text
    assert "--group site" in calls and "doctor" not in calls and "[lab" not in calls


@pytest.mark.parametrize(
    ("variables", "help_"),
    [
        ({"OLD": "1"}, "PYTHON="),
        ({"NO_VENV": "ensurepip is not available"}, "apt install python3-venv"),
        ({"NO_VENV": "No module named venv"}, "apt install python3-venv"),
        ({"NO_PIP": "WARNING: Retrying\nERROR: No matching distribution"}, "HTTPS_PROXY="),
        ({"NO_PIP": "OSError: [Errno 28] No space left on device"}, "make lab VENV="),
        ({"NO_PIP": "OSError: [Errno 30] Read-only file system"}, "make lab VENV="),
        ({"NO_PIP": "something new"}, "something new"),
    ],
)
def test_what_is_missing_is_named_and_the_next_call_succeeds(set_up, variables, help_):
    status, text, _ = set_up(**variables)
    assert status == 1 and help_ in text
    assert set_up()[0] == 0


def test_packages_that_are_installed_are_enough_to_start(set_up):
    assert set_up()[0] == 0
    offline = {"NO_PIP": "Retrying", "INSTALLED": "1"}
    assert set_up(**offline)[0] == 0
    assert set_up(what="test", **offline)[0] == 1


@pytest.mark.parametrize(
    ("venv", "variables", "added"),
    [
        (".venv", {"DOCTOR": "1"}, False),
        (".venv", {"DOCTOR": "3"}, True),
        (".venv", {"DOCTOR": "3", "INTEL": "no"}, False),
        ("two words/.venv", {"DOCTOR": "3"}, False),
    ],
)
def test_intels_runtime_is_added_for_one_status_only(set_up, tmp_path, venv, variables, added):
    """And announced. Without a device the lab opens, and the next call looks again."""
    status, text, calls = set_up(venv, **variables)
    assert status == 0 and "apt install pocl-opencl-icd" in text
    assert ("[intel]" in calls) is added
    assert not added or ("0.8 GB" in text and "License" in text)
    assert not (tmp_path / venv / "lab.done").exists()


def test_a_folder_that_is_no_environment_is_never_emptied(set_up, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter").touch()
    for _ in range(2):
        status, text, calls = set_up("home", NO_VENV="ensurepip is not available")
        assert status == 1 and "make lab VENV=" in text and "-m venv" not in calls


def test_an_environment_that_cannot_be_completed_is_made_anew(set_up, tmp_path):
    """As one whose Python was removed."""
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "pyvenv.cfg").touch()
    (tmp_path / ".venv" / "bin" / "python").symlink_to("nowhere")
    assert set_up()[0] == 0
