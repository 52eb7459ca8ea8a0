"""What the translation makes of the ladder's kernels, jobs that are refused, and no NumPy."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from clscope import wgsl
from gemmlab import webgpu
from gemmlab.ladder import catalog
from gemmlab.webgpu import LEAST


def ladder(kernel: int, style: wgsl.Style = wgsl.TINT) -> wgsl.Shader:
    full = catalog[kernel].validate({})
    return wgsl.translate(catalog[kernel].text(full), "gemm", full, style)


def test_a_translation_reads_like_the_kernel_and_points_to_its_lines():
    text, shader = catalog[3].text({}).split("\n"), ladder(3)
    lines = [line.strip() for line in shader.code.split("\n")]
    assert len(lines) == len(shader.lines) + 1
    for line, word in (
        ("acc[j] += a * Btile[tn + j * 4][k];", "+="),
        ("C[(n0 + tn + j * 4) * args.M + m0 + tm] = acc[j];", "= acc[j]"),
        ("workgroupBarrier();", "barrier("),
    ):
        assert word in text[shader.lines[lines.index(line)] - 1]
    assert "var<workgroup> Atile: array<array<f32, 32>, 32>;" in lines
    assert shader.size == (32, 4, 1) and shader.local_bytes == 8192
    assert [b.written for b in shader.buffers] == [False, False, True]


@pytest.mark.parametrize("kernel", [15, 16, 18, 19])
def test_kernels_beyond_the_ladder_translate(kernel):
    assert ladder(kernel).entry == "gemm"


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


def test_the_traps_of_the_ladder():
    """No variable in a loop without a value, no array flat without need, loops unrolled."""
    assert not re.search(r"var \w+: (f32|i32|u32|bool|vec\d<\w+>);", ladder(13).code)
    assert "array<array<f32, 2048>, 2>" in ladder(9).code
    shader = ladder(6, wgsl.NAGA)
    assert "acc[7][7] += a[7] * b[7];" in shader.code
    assert "for (var k: i32 = 0; k < 16; k++)" in shader.code


def test_jobs_and_settings_that_are_refused():
    with pytest.raises(ValueError, match="M=100 .* multiple of 128"):
        webgpu.job(6, 100, 128, 128)
    with pytest.raises(ValueError, match="kernel must be one of"):
        webgpu.job(99, 128, 128, 128)
    with pytest.raises(ValueError, match="not a multiple"):
        webgpu.job(3, 64, 64, 64, {"WPT": 5})
    with pytest.raises(ValueError, match="vectors of 4 floats"):
        catalog[7].validate({"WIDTH": 8}, LEAST)
