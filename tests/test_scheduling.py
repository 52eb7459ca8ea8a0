"""A process that dies fails one test, and the run goes on to its end."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

#: Some of these tests die as a compiler's error would have it.
DEADLY = """
import os, signal, pytest

@pytest.mark.parametrize("n", range(60))
def test_one(n):
    if n in {deadly}:
        os.kill(os.getpid(), signal.SIGSEGV)
"""


@pytest.mark.parametrize("deadly", [(30,), (0, 1, 59)], ids=str)
def test_a_process_that_dies_fails_one_test(deadly, tmp_path):
    tests = Path(__file__).parent
    (tmp_path / "browser").mkdir()
    (tmp_path / "browser" / "test_group.py").write_text(DEADLY.format(deadly=deadly))
    (tmp_path / "test_single.py").write_text(DEADLY.format(deadly=deadly))
    (tmp_path / "conftest.py").write_text(
        "def pytest_xdist_make_scheduler(config, log):\n"
        "    from scheduling import ByNotebook\n"
        "    return ByNotebook(config, log)\n"
    )
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "xdist", "-n", "2", "-p", "no:faulthandler", str(tmp_path)],
        env=os.environ | {"PYTHONPATH": str(tests), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    counted = {word: int(number) for number, word in re.findall(r"(\d+) (failed|passed)", run.stdout.splitlines()[-1])}
    assert counted == {"failed": 2 * len(deadly), "passed": 120 - 2 * len(deadly)}, run.stdout + run.stderr
