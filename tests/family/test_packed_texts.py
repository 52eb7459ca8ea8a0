"""The packed text for CPUs, on paper; on devices see tests/blas/test_packed.py."""

import re

import pytest

from gemmlab.catalog import Limits
from gemmlab.family.packed import Packed, write, write_packing

LIMITS = Limits("a CPU", 4096, (4096, 4096, 4096), 2**18, vector=16)
OLD = Limits("a CPU with an old PoCL", 4096, (4096, 4096, 4096), 2**18, vector=8)


@pytest.mark.parametrize("limits", [LIMITS, OLD])
@pytest.mark.parametrize("precision, size", [("s", 4), ("d", 8)])
@pytest.mark.parametrize("native_bytes", [4, 16, 32, 64])
def test_blocks_fit_the_registers_and_the_caches(precision, size, native_bytes, limits):
    c = Packed.for_device(precision, native_bytes, limits)
    assert c.width >= 2 and c.width * size <= max(native_bytes, 2 * size, 4 * limits.vector)
    assert c.vectors * c.columns + c.vectors + 1 <= 16, "one register per accumulator, vector of A, and number of B"
    assert c.columns * c.depth * size <= 16 * 1024, "half of an L1 cache"
    assert 128 * 1024 < c.block * c.depth * size <= 256 * 1024 and c.block % c.rows == 0


@pytest.mark.parametrize("precision", "sd")
def test_the_innermost_loop_calls_no_function(precision):
    """A call would spill all sums: fma and vload are calls on some runtimes."""
    c = Packed(precision)
    text = write(c)
    loop = text[text.index("// compute") : text.index("// store")]
    assert re.findall(r"(\w+)\(", loop.replace("for (", "")) == []
    assert loop.count("+=") == 2 + c.vectors * c.columns


def test_each_kernel_has_a_text_and_a_name():
    kernels = [Packed(), Packed(beta=True), Packed("d"), Packed(width=4), Packed(columns=4), Packed(depth=64)]
    assert len({write(c) for c in kernels}) == len({c.name for c in kernels}) == len(kernels)
    assert "double" in write_packing(Packed("d")) and "float" not in write_packing(Packed("d"))
