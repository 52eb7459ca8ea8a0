"""Kernels for products on processors whose steps of k lie side by side in both operands, as in NumPy's ``x @ w.T``.

Each element of C is a dot product of neighbours in memory, which need not be copied: a few rows of A and a few columns
of B are multiplied vector by vector, and each sum is a vector, too, until K ends. A vector times a matrix whose rows
lie like the vector is the case of a single column.

No block is partial: the last ones are moved back until they end with the part of their work-item. Nor is a vector: if
its width does not divide K, the last one begins earlier, and what has been multiplied already is blanked out.
"""

from __future__ import annotations

from dataclasses import dataclass

from .configuration import PRECISIONS
from .strided import signature, vectors
from .text import Lines, Text, fill, writes

#: Sides of a block, in elements of C, and registers that it may fill, of the 16 or 32 that a processor has.
_SIDES = 4, 2, 1
_REGISTERS = {True: 32, False: 16}


@dataclass(frozen=True)
class Dots:
    """One kernel for C = alpha A B, column-major, with operands where they lie.

    Attributes:
        precision: "s" or "d": float32 or float64.
        width: elements of a vector: 1, 2, 4, 8 or 16, and no more than K.
        rows: rows of A at once.
        columns: columns of B at once.
        down: whether blocks follow each other down the columns of C, as A is the smaller operand, or along its rows.
    """

    precision: str = "s"
    width: int = 8
    rows: int = 4
    columns: int = 2
    down: bool = False

    @property
    def name(self) -> str:
        """All that it says, in one word."""
        return f"{self.precision}gemm_dots_{self.width}x{self.rows}x{self.columns}" + "_down" * self.down

    def groups(self, m: int, n: int, rows: int, columns: int) -> tuple[int, int]:
        """Work-items for an M x N result if each computes so many rows and columns, and none less than a block."""
        return max(1, (m - self.rows) // rows + 1), max(1, (n - self.columns) // columns + 1)


def shaped(precision: str, vector: int, m: int, n: int, k: int) -> Dots:
    """The kernel for an M x N result: the largest block that is no larger than that and fits the registers.

    Args:
        precision: "s" or "d".
        vector: elements of this precision in the device's own vectors.
        m, n: rows and columns of C.
        k: steps of k.
    """
    width = min(vector, 1 << (k.bit_length() - 1))
    registers = _REGISTERS[vector * PRECISIONS[precision].size == 64]
    blocks = [(r, c) for r in _SIDES for c in _SIDES if r <= m and c <= n and r * c + r + c <= registers]
    rows, columns = max(blocks, key=lambda block: (block[0] * block[1], block[0]))
    return Dots(precision, width, rows, columns, m < n)


def write(c: Dots) -> Text:
    """The OpenCL C text of a kernel named ``gemm`` that adds up dot products.

    Its arguments are M, N, K; the rows and columns of C that a work-item computes, multiples of the block's; alpha;
    each operand with the place of its first element, the distance of its rows (of A) or columns (of B), and the
    distance of its steps of k, which is 1; and C, which has no gaps.
    """
    return Text.of(_multiplication(c))


@writes
def _multiplication(c: Dots) -> Lines:
    real = PRECISIONS[c.precision].real
    rows = f"for (int row = m0; row < m1; row += {c.rows}) {{"
    columns = f"for (int column = n0; column < n1; column += {c.columns}) {{"
    m = f"const int m = min(row, M - {c.rows}); // the last block is moved back"
    n = f"const int n = min(column, N - {c.columns});"
    return fill(
        """
        // $name
        //
        // Computes: C = alpha A B, of ${real}s, column-major.
        // Costs:    $sums vectors of sums; $loads loads of vectors for $sums multiply-adds.
        // Requires: work-groups of one work-item; steps of k side by side in A and in B; M >= $rows, N >= $columns,
        //           K >= $width; rows and columns multiples of $rows and $columns.

        $vectors
        $blank

        $signature
        {
            // identifiers: this work-item's part of C
            const int m0 = get_group_id(0)*rows;
            const int n0 = get_group_id(1)*columns;
            const int m1 = get_group_id(0) + 1 < get_num_groups(0) ? m0 + rows : M; // the last one takes the rest
            const int n1 = get_group_id(1) + 1 < get_num_groups(1) ? n0 + columns : N;

            $mask

            $outer
                $first
                $inner
                    $second
                    $operands

                    $compute

                    $store
                }
            }
        }
        """,
        name=c.name,
        real=real,
        sums=c.rows * c.columns,
        loads=c.rows + c.columns,
        rows=c.rows,
        columns=c.columns,
        width=c.width,
        vectors=vectors(c.precision, c.width),
        blank=_blank(c),
        signature=signature(c.precision, "ABC", "const int rows, const int columns"),
        mask=_mask(c),
        outer=columns if c.down else rows,
        first=n if c.down else m,
        inner=rows if c.down else columns,
        second=m if c.down else n,
        operands=_operands(c, real),
        compute=_compute(c),
        store=_store(c),
    )


@writes
def _blank(c: Dots) -> Lines:
    """What leaves those elements of a vector as they are that are new, and makes zeroes of the others, even of NaN."""
    if c.width == 1:
        return []
    bits = "int" if c.precision == "s" else "long"
    return [f"#define NEW(x) as_{PRECISIONS[c.precision].vector(c.width)}(as_{bits}{c.width}(x) & is_new)"]


@writes
def _mask(c: Dots) -> Lines:
    if c.width == 1:
        return []
    return fill(
        """
        // the last vector begins at K - $width, and only so many of its elements are new
        const int whole = K/$width*$width;
        $integer$width is_new = 0;
        for (int i = $width - (K - whole); i < $width; i++) {
            (($integer*)&is_new)[i] = -1;
        }
        """,
        width=c.width,
        integer="int" if c.precision == "s" else "long",
    )


@writes
def _operands(c: Dots, real: str) -> Lines:
    """Where each row of A and column of B begins: compilers keep so many pointers in registers."""
    of_a = [f"const __global {real}* a{i} = A + offset_a + (long)(m + {i})*apart_a;" for i in range(c.rows)]
    of_b = [f"const __global {real}* b{j} = B + offset_b + (long)(n + {j})*apart_b;" for j in range(c.columns)]
    return of_a + of_b


@writes
def _compute(c: Dots) -> Lines:
    """The block. Every vector has a name, and nothing in the loop may be a function call: see
    `gemmlab.family.packed.compute`."""
    vectors = [f"a{i}" for i in range(c.rows)] + [f"b{j}" for j in range(c.columns)]
    products = [" ".join(f"c{i}_{j} += of_a{i}*of_b{j};" for i in range(c.rows)) for j in range(c.columns)]
    lines = fill(
        """
        // accumulators: cI_J is the sum of row I and column J, in as many parts as a vector has elements
        vector $zeroes;

        // compute
        for (int k = 0; k < $whole; k += $width) {
            const vector $loads;
            $products
        }
        """,
        zeroes=", ".join(f"c{i}_{j} = 0" for j in range(c.columns) for i in range(c.rows)),
        whole="whole" if c.width > 1 else "K",
        width=c.width,
        loads=", ".join(f"of_{x} = *(const __global anywhere*)({x} + k)" for x in vectors),
        products=products,
    )
    if c.width == 1:
        return lines
    return lines + fill(
        """
        if (whole < K) {
            $last
            $products
        }
        """,
        last=[f"const vector of_{x} = NEW(*(const __global anywhere*)({x} + K - {c.width}));" for x in vectors],
        products=products,
    )


@writes
def _store(c: Dots) -> Lines:
    lines = ["// store"]
    for j in range(c.columns):
        for i in range(c.rows):
            total, name = _total(c, f"c{i}_{j}")
            lines += [*total, f"C[(long)(n + {j})*M + m + {i}] = alpha*{name};"]
    return lines


def _total(c: Dots, name: str) -> tuple[Lines, str]:
    """Lines that add the elements of a vector up, one half to the other until a single one is left, and its name."""
    lines, whole, width = [], name, c.width
    while width > 1:
        width //= 2
        part = f"{whole}_of_{width}"
        lines.append(f"const {PRECISIONS[c.precision].vector(width)} {part} = {name}.lo + {name}.hi;")
        name = part
    return lines, name
