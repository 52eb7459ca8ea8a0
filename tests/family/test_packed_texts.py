"""Kernels with packed operands, on paper: caches, candidates, names; on devices see tests/blas/test_packed.py."""

import re

import pytest

from gemmlab.catalog import Limits
from gemmlab.family.packed import Packed, candidates, write, write_packing

LIMITS = Limits("a processor", 4096, (4096, 4096, 4096), 2**18, vector=16)
OLD = Limits("a processor of an old PoCL", 4096, (4096, 4096, 4096), 2**18, vector=8)


@pytest.mark.parametrize(("precision", "size"), [("s", 4), ("d", 8)])
def test_a_panel_of_b_fits_the_first_cache_and_a_block_of_a_the_second(precision, size):
    for vector in (1, 2, 4, 8, 16):
        for c in candidates(precision, vector, LIMITS):
            assert c.columns * c.depth * size <= 32 * 1024 * 3 // 4
            assert 128 * 1024 <= c.block * c.depth * size <= 256 * 1024


@pytest.mark.parametrize("limits", [LIMITS, OLD])
@pytest.mark.parametrize(
    ("precision", "vector"), [("s", 1), ("s", 4), ("s", 8), ("s", 16), ("d", 2), ("d", 4), ("d", 8)]
)
def test_candidates_suit_the_vectors_and_the_registers(precision, vector, limits):
    found = candidates(precision, vector, limits)
    assert len({c.name for c in found}) == len(found) >= 2
    size = {"s": 4, "d": 8}[precision]
    for c in found:
        assert c.width <= max(2, vector, limits.vector) and c.rows % c.width == 0 and c.block % c.rows == 0
        own = max(2, vector) * size  # bytes of a register
        taken = (c.vectors * c.columns + c.vectors + 1) * max(1, c.width * size // own)
        assert taken <= (32 if own == 64 else 16)


def test_the_loop_calls_no_function():
    """A call would spill all sums: fma and vload are calls on some runtimes."""
    for c in candidates("s", 8, LIMITS) + candidates("d", 4, LIMITS):
        text = write(c)
        loop = text[text.index("// compute") : text.index("// store")]
        calls = re.findall(r"(\w+)\(", loop.replace("for (", ""))
        assert calls == [] and loop.count("+=") == 2 + c.vectors * c.columns


def test_texts_say_what_was_asked_for():
    c = Packed()
    assert "beta" not in write(c) and "beta*C0" in write(Packed(beta=True))
    assert "double" in write_packing(Packed("d")) and len({write(Packed(depth=d)) for d in (64, 128)}) == 2
