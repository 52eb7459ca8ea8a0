"""Kernels with operands where they lie, on paper: shapes and loops; on devices see tests/blas/test_packed.py."""

import itertools
import re

import pytest

from gemmlab.family.in_place import InPlace, shaped, write


@pytest.mark.parametrize("vector", (1, 2, 4, 8, 16))
def test_a_block_is_never_larger_than_the_result_and_fits_the_registers(vector):
    for m, n in itertools.product((1, 2, 3, 5, 7, 8, 15, 16, 31, 100, 5000), repeat=2):
        c = shaped("s", vector, m, n)
        assert c.rows < 2 * m if c.pads else c.rows <= m
        assert c.columns <= n and c.width <= vector and (c.vectors == 1 or not c.pads)
        registers = 32 if 4 * c.width == 64 else 16
        assert c.vectors * c.columns + min(c.vectors, c.columns) + 1 <= registers


@pytest.mark.parametrize(
    "size, block",
    [
        ((16, 6), (1, 6)),
        ((46, 400), (1, 8)),
        ((5000, 5000), (4, 4)),
        ((5000, 1), (8, 1)),
        ((5000, 9), (2, 9)),
        ((9, 5000), (1, 8)),
    ],
)
def test_a_block_that_covers_the_result_with_little_waste_and_few_loads(size, block):
    c = shaped("s", 16, *size)
    assert (c.vectors, c.columns) == block


@pytest.mark.parametrize("rows", (16, 32, 160))
def test_no_two_work_items_share_an_element_of_c(rows):
    c = InPlace()
    assert c.rows == 16 and c.columns == 6
    for m in range(16, 200):
        items, across = c.groups(m, 6, rows, 6)
        last = m - (items - 1) * rows  # what the last one has to do: it can move a block back without leaving it
        assert 16 <= last < rows + 16 and across == 1


def test_a_copied_panel_has_room_for_its_steps():
    for precision, size in (("s", 4), ("d", 8)):
        c = shaped(precision, 8, 100, 100)
        assert c.most_steps * c.rows * size <= 32 * 1024
        assert c.block(10**9) == c.columns and c.block(100) % c.columns == 0
        assert c.most_rows(10**9) == c.rows and c.most_rows(64) % c.rows == 0


@pytest.mark.parametrize("copies", (False, True))
def test_the_loop_calls_no_function(copies):
    """A call would spill all sums: fma and vload are calls on some runtimes."""
    usual = InPlace(copies=copies), InPlace("d", 4, 1, 8, copies), InPlace("s", 1, 8, 1, copies)
    for c in (
        *usual,
        InPlace("s", 16, 2, 9, copies),
        InPlace("s", 16, 1, 8, copies, pads=True),
        InPlace(adds=True),
        InPlace(down=True),
    ):
        text = write(c)
        loop = text[text.index("// compute") :].partition("}")[0]
        calls = re.findall(r"(\w+)\(", loop.replace("for (", "").replace("aligned(", ""))
        assert calls == [] and loop.count("+=") == 1 + c.vectors * c.columns
