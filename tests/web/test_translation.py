"""Kernels beyond the ladder, jobs that are refused, and no NumPy."""

from __future__ import annotations

import subprocess
import sys

import pytest

from clscope import wgsl
from gemmlab import webgpu
from gemmlab.ladder import catalog
from gemmlab.webgpu import LEAST


@pytest.mark.parametrize("kernel", [15, 16, 18, 19])
def test_kernels_beyond_the_ladder_translate(kernel):
    full = catalog[kernel].defaults
    assert wgsl.translate(catalog[kernel].text(full), "gemm", full).entry == "gemm"


def test_nothing_needs_numpy():
    """As in a page, where Python has only its standard library."""
    source = (
        "import sys; sys.modules['numpy'] = None\n"
        "from gemmlab import webgpu; from gemmlab.ladder import catalog\n"
        "print(len(webgpu.job(6, 128, 128, 16).shaders)); print('pyopencl' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=False
    )
    assert done.stdout.split()[1:] == ["False"], done.stderr


def test_jobs_and_settings_that_are_refused():
    with pytest.raises(ValueError, match="M=100 .* multiple of 128"):
        webgpu.job(6, 100, 128, 128)
    with pytest.raises(ValueError, match="kernel must be one of"):
        webgpu.job(99, 128, 128, 128)
    with pytest.raises(ValueError, match="not a multiple"):
        webgpu.job(3, 64, 64, 64, {"WPT": 5})
    with pytest.raises(ValueError, match="vectors of 4 floats"):
        catalog[7].validate({"WIDTH": 8}, LEAST)
