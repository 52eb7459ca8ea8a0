"""Random kernels beside a real OpenCL runtime, and random edits of the ladder's texts."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import DEVICES, FULL, in_part
from microscope.cases import SMALL, text
from microscope.fuzz import BLOCKS, edit, misread, stored, unlike, widest
from microscope.generator import kernel

import clscope


@pytest.fixture
def device(any_device):
    """PoCL's if it is there: it takes programs whose statements are compiled as they are
    written.
    """
    return next((d for d in DEVICES.values() if "Portable" in d.platform), any_device)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(400) if FULL else in_part(range(25), 3))
def test_random_kernels_do_what_a_real_runtime_does(device, seed):
    """Numbers and vectors of all types, macros, structures, loops, jumps, functions, arrays."""
    source = kernel(seed, BLOCKS, widest(device))
    assert unlike(source, stored(device, source)) == ""


@pytest.mark.parametrize("number", SMALL)
def test_an_edited_token_is_never_an_internal_error(number):
    rng = random.Random(number)
    source = text(number)
    for _ in range(400 if FULL else 40):
        assert misread(number, edit(source, rng)) == ""


ALONE = """
import sys

class Only:
    def find_spec(self, name, path=None, target=None):
        root = name.split(".")[0]
        if root not in sys.stdlib_module_names and root not in ("numpy", "clscope", "gemmlab"):
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Only())
import gemmlab
run = gemmlab.simulate(kernel=6)
print(run.verdict, run.counts.multiply_adds)
"""


def test_numpy_is_enough():
    """As in a browser: every import but NumPy and the standard library is blocked."""
    here = Path(clscope.__file__).resolve().parents[1]
    done = subprocess.run(
        [sys.executable, "-c", ALONE], cwd=here, capture_output=True, text=True, check=False
    )
    assert (
        done.stdout.startswith("right: every element exact") and done.stdout.split()[-1] == "4096"
    ), done.stderr
