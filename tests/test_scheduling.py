"""A process that dies fails one test, and the run goes on to its end."""

import os
import subprocess
import sys
from pathlib import Path

#: In each of the two files, some tests end their process as a compiler's crash would.
DEADLY, COUNT = (0, 20), 40
TESTS = f"""
import os, signal, pytest

@pytest.mark.parametrize("n", range({COUNT}))
def test_one(n):
    if n in {DEADLY}:
        os.kill(os.getpid(), signal.SIGSEGV)
"""
CONFTEST = """
def pytest_xdist_make_scheduler(config, log):
    from scheduling import ByNotebook
    return ByNotebook(config, log)
"""


def test_a_process_that_dies_fails_one_test(tmp_path):
    """Two die at once, at their first tests; their successors die when they have finished some."""
    (tmp_path / "browser").mkdir()
    (tmp_path / "browser" / "test_group.py").write_text(TESTS)
    (tmp_path / "test_single.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    options = ["-p", "xdist", "-n", "2", "-p", "no:faulthandler", str(tmp_path)]
    own = {"PYTHONPATH": str(Path(__file__).parent), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        env=os.environ | own,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
    )
    failed, passed = 2 * len(DEADLY), 2 * (COUNT - len(DEADLY))
    assert f"{failed} failed, {passed} passed" in run.stdout, run.stdout + run.stderr
