"""Kernels that add up dot products, on paper: shapes and loops; on devices see tests/blas/test_packed.py."""

import itertools
import re

import pytest

from gemmlab.family.dots import Dots, shaped, write


@pytest.mark.parametrize("vector", (1, 2, 4, 8, 16))
def test_a_block_is_never_larger_than_the_result_and_fits_the_registers(vector):
    for m, n, k in itertools.product((1, 2, 3, 5, 100), (1, 2, 3, 7, 100), (1, 2, 15, 16, 100)):
        c = shaped("s", vector, m, n, k)
        assert c.rows <= m and c.columns <= n and c.width <= min(vector, k) and c.down == (m < n)
        assert c.rows * c.columns + c.rows + c.columns <= (32 if 4 * vector == 64 else 16)


def test_no_two_work_items_share_an_element_of_c():
    c = Dots(rows=4, columns=2)
    for m in range(4, 60):
        items, across = c.groups(m, 2, 12, 2)
        assert across == 1 and 4 <= m - 12 * (items - 1) < 12 + 4  # the last one can move a block back


@pytest.mark.parametrize(("precision", "width"), [("s", 16), ("s", 8), ("d", 4), ("s", 1)])
def test_the_loop_calls_no_function(precision, width):
    """A call would spill all sums: fma and vload are calls on some runtimes."""
    for down in (False, True):
        c = Dots(precision, width, 4, 2, down)
        text = write(c)
        loop = text[text.index("// compute") :].partition("}")[0]
        assert re.findall(r"(\w+)\(", loop.replace("for (", "").replace("aligned(", "")) == []
        assert loop.count("+=") == 1 + c.rows * c.columns
        assert text.index("row < m1") > text.index("column < n1") if down else True
