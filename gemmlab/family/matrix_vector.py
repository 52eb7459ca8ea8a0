"""Kernels for a matrix times a vector on processors: each element of the matrix is read once, where it lies.

There is one multiply-add for each of them, so that memory decides, and a processor fetches ahead what is read in the
order of memory. Where the rows of A lie side by side, a few columns at once are added to y, which stays in a cache.
Where the steps of k do, a few rows at once are multiplied by x, and summed up in vectors.
"""

from __future__ import annotations

from dataclasses import dataclass

from .configuration import PRECISIONS
from .text import Lines, Text, fill, writes

#: Columns at once: so many multiply-adds for each time that y is read and written.
_COLUMNS = 8
#: Rows at once. Those whose distance is a power of two take each other's places in the first cache, if they are eight.
_ROWS = 4


@dataclass(frozen=True)
class MatrixVector:
    """One kernel for y = alpha A x.

    Attributes:
        precision: "s" or "d": float32 or float64.
        width: elements of a vector: 1, 2, 4, 8 or 16.
        rows_adjoin: whether rows of A lie side by side in memory; if not, steps of k do, in A and in x.
    """

    precision: str = "s"
    width: int = 8
    rows_adjoin: bool = True

    @property
    def streams(self) -> int:
        """Columns of A, or rows, at once."""
        return _COLUMNS if self.rows_adjoin else _ROWS

    @property
    def name(self) -> str:
        """All that it says, in one word."""
        return f"{self.precision}gemv_by_" + ("columns" if self.rows_adjoin else f"rows_{self.width}")


def write(c: MatrixVector) -> Text:
    """The OpenCL C text of a kernel named ``gemm`` that multiplies a matrix by a vector.

    Its arguments are M and K; the rows that a work-item computes, of which the last one also takes what is left over;
    alpha; A with the place of its first element, the distance of its rows and that of its steps of k; x with the place
    of its first element and the distance of its steps; and y, which has no gaps.
    """
    return Text.of(_product(c))


@writes
def _product(c: MatrixVector) -> Lines:
    real = PRECISIONS[c.precision].real
    return fill(
        """
        // $name
        //
        // Computes: y = alpha A x, of ${real}s.
        // Costs:    one load from memory per multiply-add.
        // Requires: work-groups of one work-item; $requires.

        $types

        __kernel __attribute__((reqd_work_group_size(1, 1, 1)))
        void gemm(const int M, const int K, const int rows, const $real alpha,
                  const __global $real* restrict A, const long offset_a, const int apart_a, const int step_a,
                  const __global $real* restrict X, const long offset_x, const int step_x, __global $real* restrict Y)
        {
            // identifiers: this work-item's part of y
            const int m0 = get_group_id(0)*rows;
            const int m1 = get_group_id(0) + 1 < get_num_groups(0) ? m0 + rows : M; // the last one takes the rest
            const __global $real* x = X + offset_x;

            $body
        }
        """,
        name=c.name,
        real=real,
        requires="rows of A side by side" if c.rows_adjoin else f"steps of k side by side; {c.streams} rows or more",
        types=[] if c.rows_adjoin else _types(c),
        body=_by_columns(c, real) if c.rows_adjoin else _by_rows(c, real),
    )


@writes
def _by_columns(c: MatrixVector, real: str) -> Lines:
    """Compilers make vectors of the loops over rows."""
    at_once = range(c.streams)
    return fill(
        """
        const int there = m1 - m0;
        __global $real* y = Y + m0;
        for (int i = 0; i < there; i++) {
            y[i] = 0;
        }
        int k = 0;
        for (; k + $streams <= K; k += $streams) {
            $columns
            $factors
            for (int i = 0; i < there; i++) {
                y[i] += $sum;
            }
        }
        for (; k < K; k++) { // columns left over
            const __global $real* a = A + offset_a + m0 + (long)k*step_a;
            const $real x0 = alpha*x[(long)k*step_x];
            for (int i = 0; i < there; i++) {
                y[i] += x0*a[i];
            }
        }
        """,
        real=real,
        streams=c.streams,
        columns=[f"const __global {real}* a{j} = A + offset_a + m0 + (long)(k + {j})*step_a;" for j in at_once],
        factors=[f"const {real} x{j} = alpha*x[(long)(k + {j})*step_x];" for j in at_once],
        sum=" + ".join(f"x{j}*a{j}[i]" for j in at_once),
    )


@writes
def _types(c: MatrixVector) -> Lines:
    precision = PRECISIONS[c.precision]
    return fill(
        """
        typedef $vector vector;
        typedef $vector anywhere __attribute__((aligned($size))); // a vector that may begin at any element

        """,
        vector=precision.vector(c.width),
        size=precision.size,
    )


@writes
def _by_rows(c: MatrixVector, real: str) -> Lines:
    at_once = range(c.streams)
    return fill(
        """
        const int whole = K/$width*$width; // steps of k in whole vectors
        for (int row = m0; row < m1; row += $streams) {
            const int m = min(row, m1 - $streams); // the last rows at once are moved back
            $rows

            $zeroes
            for (int k = 0; k < whole; k += $width) {
                const vector there = *(const __global anywhere*)(x + k);
                $products
            }

            $real sums[$streams] = {0};
            for (int k = whole; k < K; k++) { // steps left over
                $rest
            }
            for (int i = 0; i < $width; i++) {
                $totals
            }
            for (int i = 0; i < $streams; i++) {
                Y[m + i] = alpha*sums[i];
            }
        }
        """,
        real=real,
        width=c.width,
        streams=c.streams,
        rows=[f"const __global {real}* a{i} = A + offset_a + (long)(m + {i})*apart_a;" for i in at_once],
        zeroes=[f"vector c{i} = 0;" for i in at_once],
        products=[f"c{i} += *(const __global anywhere*)(a{i} + k)*there;" for i in at_once],
        rest=[f"sums[{i}] += a{i}[k]*x[k];" for i in at_once],
        totals=[f"sums[{i}] += ((const {real}*)&c{i})[i];" for i in at_once],
    )
