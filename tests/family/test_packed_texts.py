"""Kernels with packed operands, on paper: depths, candidates, names; on devices see tests/blas/test_packed.py."""

import re

import pytest

from gemmlab.catalog import Limits
from gemmlab.family.packed import Packed, candidates, depth, write, write_packing

LIMITS = Limits("a processor", 4096, (4096, 4096, 4096), 2**18, vector=16)
OLD = Limits("a processor of an old PoCL", 4096, (4096, 4096, 4096), 2**18, vector=8)


@pytest.mark.parametrize(("precision", "size"), [("s", 4), ("d", 8)])
def test_a_panel_of_each_operand_fits_the_first_cache(precision, size):
    for rows, columns in ((16, 6), (32, 12), (8, 6), (4, 4)):
        steps = depth(precision, rows, columns)
        assert steps % 16 == 0 and 32 * 1024 * 3 // 4 < (rows + columns) * steps * size <= 32 * 1024 * 7 // 8


@pytest.mark.parametrize("limits", [LIMITS, OLD])
@pytest.mark.parametrize(
    ("precision", "vector"), [("s", 1), ("s", 4), ("s", 8), ("s", 16), ("d", 2), ("d", 4), ("d", 8)]
)
def test_candidates_suit_the_vectors_and_the_registers(precision, vector, limits):
    found = candidates(precision, vector, limits)
    assert len({c.name for c in found}) == len(found) >= 2
    size = {"s": 4, "d": 8}[precision]
    for c in found:
        assert c.width <= max(2, vector, limits.vector) and c.rows % c.width == 0 and c.block % c.columns == 0
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
