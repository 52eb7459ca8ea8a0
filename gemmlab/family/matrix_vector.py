"""Kernels for a matrix times a vector, or a few, on processors: each element of the matrix is read once, where it lies.

There are so few multiply-adds for each of them that memory decides, and a processor fetches ahead what is read in the
order of memory. Where the rows of A lie side by side, a few columns at once are added to Y, which stays in a cache.
Where the steps of k do, `gemmlab.family.dots` adds up vectors of them. But rows of two, three or a few more steps would
waste most of a vector. So there a text is for one number of steps, and compilers make vectors of many rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from .configuration import PRECISIONS
from .strided import signature
from .text import Lines, Text, fill, writes

#: Columns at once: so many multiply-adds for each time that an element of Y is read and written. Those that are left
#: over are taken by fewer at once.
_COLUMNS = 16, 4, 1
#: Bytes of a piece of a column: those of all columns at once hardly leave the first cache, for the next column of Y.
_PIECE = 2048


@dataclass(frozen=True)
class MatrixVector:
    """One kernel for Y = alpha A X, column-major, where X has one column or a few.

    Attributes:
        precision: "s" or "d": float32 or float64.
        steps: K, if the text is for this number alone, for rows of A that follow each other in memory, and for a single
            column X. Or 0 for rows of A that lie side by side.
    """

    precision: str = "s"
    steps: int = 0

    @property
    def name(self) -> str:
        """All that it says, in one word."""
        return f"{self.precision}gemv_by_" + (f"rows_of_{self.steps}" if self.steps else "columns")


def write(c: MatrixVector) -> Text:
    """The OpenCL C text of a kernel named ``gemm`` that multiplies a matrix by a vector, or by a few.

    Its arguments are M, N, K; the rows that a work-item computes, of which the last one also takes what is left over;
    alpha; A and X, each with the place of its first element, the distance of rows of A (columns of X), and the distance
    of its steps of k; and Y, M x N, which has no gaps.
    """
    return Text.of(_product(c))


@writes
def _product(c: MatrixVector) -> Lines:
    real = PRECISIONS[c.precision].real
    return fill(
        """
        // $name
        //
        // Computes: Y = alpha A X, of ${real}s, column-major.
        // Costs:    A is read from memory once, in its order.
        // Requires: work-groups of one work-item; $requires.

        $signature
        {
            // identifiers: this work-item's rows of Y
            const int m0 = get_group_id(0)*rows;
            const int m1 = get_group_id(0) + 1 < get_num_groups(0) ? m0 + rows : M; // the last one takes the rest

            $body
        }
        """,
        name=c.name,
        real=real,
        requires=f"K = {c.steps}, N = 1, and A and X without gaps" if c.steps else "rows of A side by side",
        signature=signature(c.precision, "AXY", "const int rows"),
        body=_by_short_rows(c, real) if c.steps else _by_columns(c, real),
    )


@writes
def _by_columns(c: MatrixVector, real: str) -> Lines:
    return fill(
        """
        const int there = m1 - m0;
        for (int n = 0; n < N; n++) {
            for (int i = 0; i < there; i++) {
                Y[(long)n*M + m0 + i] = 0;
            }
        }
        int k = 0;
        $columns
        """,
        columns=[line for count in _COLUMNS for line in _columns(c, real, count)],
    )


@writes
def _columns(c: MatrixVector, real: str, count: int) -> Lines:
    """So many columns at once, as long as there are that many. Compilers make vectors of the loop over rows."""
    at_once = range(count)
    return fill(
        """
        for (; k + $count <= K; k += $count) {
            $columns
            for (int first = 0; first < there; first += $piece) { // rows that stay in the first cache
                const int end = min(first + $piece, there);
                for (int n = 0; n < N; n++) {
                    const __global $real* x = X + offset_x + (long)n*apart_x + (long)k*step_x;
                    __global $real* y = Y + (long)n*M + m0;
                    $factors
                    for (int i = first; i < end; i++) {
                        y[i] += $sum;
                    }
                }
            }
        }
        """,
        real=real,
        count=count,
        piece=_PIECE // PRECISIONS[c.precision].size,
        columns=[f"const __global {real}* a{j} = A + offset_a + m0 + (long)(k + {j})*step_a;" for j in at_once],
        factors=[f"const {real} x{j} = alpha*x[(long){j}*step_x];" for j in at_once],
        sum=" + ".join(f"x{j}*a{j}[i]" for j in at_once),
    )


@writes
def _by_short_rows(c: MatrixVector, real: str) -> Lines:
    """All steps of a row at once. Compilers make vectors of the loop over rows, whose distance they know."""
    steps = range(c.steps)
    return fill(
        """
        const __global $real* a = A + offset_a;
        const __global $real* x = X + offset_x;
        $factors
        for (int m = m0; m < m1; m++) {
            Y[m] = $sum;
        }
        """,
        real=real,
        factors=[f"const {real} x{j} = alpha*x[{j}];" for j in steps],
        sum=" + ".join(f"x{j}*a[(long)m*{c.steps} + {j}]" for j in steps),
    )
