"""What kernels for processors share whose operands are strided: their arguments, and types of vectors."""

from __future__ import annotations

from .configuration import PRECISIONS
from .text import Lines, fill, writes


@writes
def signature(precision: str, names: str, share: str) -> Lines:
    """The head of a kernel named ``gemm`` that one work-item of a work-group carries out.

    Args:
        precision: "s" or "d".
        names: of both operands and of their product, a letter each.
        share: the arguments that say how much of the product a work-item computes.
    """
    return fill(
        """
        __kernel __attribute__((reqd_work_group_size(1, 1, 1)))
        void gemm(const int M, const int N, const int K, $share, const $real alpha,
                  $operands
                  __global $real* restrict $product)
        """,
        share=share,
        real=PRECISIONS[precision].real,
        operands=arguments(precision, names[:2]),
        product=names[2],
    )


@writes
def arguments(precision: str, names: str) -> Lines:
    """Each operand with the place of its first element, and the distances of its rows or columns and of its steps of k.

    These are rows of the first operand, and columns of the second.
    """
    return [
        f"const __global {PRECISIONS[precision].real}* restrict {x}, "
        f"const long offset_{x.lower()}, const int apart_{x.lower()}, const int step_{x.lower()},"
        for x in names
    ]


@writes
def vectors(precision: str, width: int) -> Lines:
    """The types of vectors of neighbouring elements."""
    return fill(
        """
        typedef $vector vector;
        typedef $vector anywhere __attribute__((aligned($size))); // a vector that may begin at any element
        """,
        vector=PRECISIONS[precision].vector(width),
        size=PRECISIONS[precision].size,
    )
