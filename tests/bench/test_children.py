"""Child processes that share work: they need no line of the user's program."""

import math
import subprocess
import sys

import pytest

from gemmlab.bench.children import Children

SCRIPT = """
import math, sys
from gemmlab.bench.children import Children

print("begun")
with Children(2) as children:
    print(list(children.map(math.factorial, range(6))))
print(__file__ == sys.argv[0], __spec__)
"""


def test_a_script_without_a_guard_starts_children(tmp_path):
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["begun", "[1, 1, 2, 6, 24, 120]", "True None"]


def test_a_child_s_error_comes_back():
    with Children(1) as children, pytest.raises(ValueError):
        children.submit(math.factorial, -1).result()


def test_what_belongs_to_the_program_is_no_work_for_children():
    with Children(1) as children, pytest.raises(Exception, match="unknown|pickle|attribute"):
        children.submit(eval("lambda: 1")).result()
