"""Kernels for a matrix times a vector, or a few, on processors: each element of the matrix is read once, where it lies.

There are so few multiply-adds for each of them that memory decides, and a processor fetches ahead what is read in the
order of memory. Where the rows of A lie side by side, a few columns at once are added to Y, which stays in a cache.
Where the steps of k do, a few rows at once are multiplied by X, and summed up in vectors. Rows of two, three or a few
more steps would waste most of a vector. So there a text is for one number of steps, and compilers make vectors of many
rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from .configuration import PRECISIONS
from .strided import signature, vectors
from .text import Lines, Text, fill, writes

#: Columns at once: so many multiply-adds for each time that an element of Y is read and written. Those that are left
#: over are taken by fewer at once.
_COLUMNS = 16, 4, 1
#: Bytes of a piece of a column: those of all columns at once hardly leave the first cache, for the next column of Y.
_PIECE = 2048
#: Rows at once. Those whose distance is a power of two take each other's places in the first cache, if they are eight.
_ROWS = 4


@dataclass(frozen=True)
class MatrixVector:
    """One kernel for Y = alpha A X, column-major, where X has one column or a few.

    Attributes:
        precision: "s" or "d": float32 or float64.
        width: elements of a vector: 1, 2, 4, 8 or 16.
        rows_adjoin: whether rows of A lie side by side in memory; if not, steps of k do, in A and in X.
        steps: K, if the text is for this number alone: for rows of A that follow each other, and one column X; or 0.
    """

    precision: str = "s"
    width: int = 8
    rows_adjoin: bool = True
    steps: int = 0

    @property
    def streams(self) -> int:
        """Columns of A, or rows, at once."""
        return _COLUMNS[0] if self.rows_adjoin else 1 if self.steps else _ROWS

    @property
    def name(self) -> str:
        """All that it says, in one word."""
        rows = f"rows_of_{self.steps}" if self.steps else f"rows_{self.width}"
        return f"{self.precision}gemv_by_" + ("columns" if self.rows_adjoin else rows)


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

        $vectors

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
        requires=_requires(c),
        vectors=[] if c.rows_adjoin or c.steps else vectors(c.precision, c.width),
        signature=signature(c.precision, "AXY", "const int rows"),
        body=_by_columns(c, real) if c.rows_adjoin else _by_short_rows(c, real) if c.steps else _by_rows(c, real),
    )


def _requires(c: MatrixVector) -> str:
    if c.rows_adjoin:
        return "rows of A side by side"
    if c.steps:
        return f"K = {c.steps}, one column, and A and X without gaps"
    return f"steps of k side by side; {c.streams} rows or more"


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
def _by_rows(c: MatrixVector, real: str) -> Lines:
    at_once = range(c.streams)
    return fill(
        """
        const int whole = K/$width*$width; // steps of k in whole vectors
        for (int row = m0; row < m1; row += $streams) {
            const int m = min(row, m1 - $streams); // the last rows at once are moved back
            $rows
            for (int n = 0; n < N; n++) {
                const __global $real* x = X + offset_x + (long)n*apart_x;

                $zeroes
                for (int k = 0; k < whole; k += $width) {
                    const vector there = *(const __global anywhere*)(x + k);
                    $products
                }

                $real sums[$streams] = {0};
                for (int k = whole; k < K; k++) { // steps left over
                    $rest
                }
                $totals
                for (int i = 0; i < $streams; i++) {
                    Y[(long)n*M + m + i] = alpha*sums[i];
                }
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
        totals=[line for i in at_once for line in _total(c, i)],
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


@writes
def _total(c: MatrixVector, row: int) -> Lines:
    """The elements of a row's vector, added up: one half to the other until a single one is left."""
    lines, name, width = [], f"c{row}", c.width
    while width > 1:
        width //= 2
        kind = PRECISIONS[c.precision].vector(width)
        lines.append(f"const {kind} of_{width}_{row} = {name}.lo + {name}.hi;")
        name = f"of_{width}_{row}"
    return [*lines, f"sums[{row}] += {name};"]
