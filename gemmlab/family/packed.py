"""Kernels for processors: operands are packed into panels first, then multiplied by blocks that live in registers.

A processor is fast when its inner loop reads only what lies in a row, and little of it. So `write_packing` writes a
kernel that copies the operands into panels: MR rows of A, or NR columns of B, one step of k after the other, with
zeroes where the matrix has ended. `write` writes the kernel that multiplies panels. Its innermost loop adds an MR x NR
block of C up in vector registers. A panel of B stays in the first cache while those of A pass by, and a block of A of
KC steps stays in the second. This order of loops is that of K. Goto and R. van de Geijn, "Anatomy of high-performance
matrix multiplication" (TOMS 34(3), 2008), and of BLIS.

A small or thin product needs so few multiply-adds for each element that packing would cost more than they do: see
`gemmlab.family.in_place`.

There are no work-groups to speak of: one work-item does the work of a thread, without local memory or barriers.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..catalog import Limits
from .configuration import PRECISIONS
from .strided import arguments
from .text import Lines, Text, fill, writes

#: Bytes that a block of A may take: half of the second cache where it is as small as 512 kB. OpenCL reports only the
#: size of one cache, which is the second on some runtimes and the third on others.
_BLOCK_OF_A = 256 * 1024
#: Steps of k in a block (KC), unless a test wants fewer. More of them move C less often. But a panel of B, of at most
#: twelve columns, should take no more than a good part of the first cache, which has 32 kB or more: 12 kB in float32,
#: 24 in float64.
_DEPTH = 256
#: Steps of k that are copied at once where neighbours in memory belong to neighbouring steps: a line of the cache.
_LINE = 16


@dataclass(frozen=True)
class Packed:
    """One kernel for C = alpha A B (+ beta C0) on packed operands, column-major.

    Attributes:
        precision: "s" or "d": float32 or float64.
        width: elements of a vector: 1, 2, 4, 8 or 16.
        vectors: vectors of neighbouring rows in the register block.
        columns: columns of the register block (NR).
        depth: steps of k in a block (KC).
        beta: whether a matrix C0 is read, multiplied by beta and added.
    """

    precision: str = "s"
    width: int = 8
    vectors: int = 2
    columns: int = 6
    depth: int = _DEPTH
    beta: bool = False

    @property
    def rows(self) -> int:
        """Rows of the register block (MR)."""
        return self.width * self.vectors

    @property
    def block(self) -> int:
        """Rows of a block of A that stays in the second cache (MC), a multiple of MR."""
        size = PRECISIONS[self.precision].size
        return max(1, _BLOCK_OF_A // (self.depth * size * self.rows)) * self.rows

    @property
    def real(self) -> str:
        """OpenCL's type of an element."""
        return PRECISIONS[self.precision].real

    @property
    def vector(self) -> str:
        """OpenCL's type of a vector."""
        return PRECISIONS[self.precision].vector(self.width)

    @property
    def name(self) -> str:
        """All that it says, in one word."""
        shape = f"{self.width}x{self.vectors}x{self.columns}x{self.depth}"
        return f"{self.precision}gemm_packed_{shape}" + "_beta" * self.beta


def candidates(precision: str, vector: int, limits: Limits) -> list[Packed]:
    """Kernels to try on a device, the most promising first.

    Two multiply-adds per cycle, each of which takes four or five, need ten sums that do not wait for each other; and
    all sums have to fit the registers, 16 of them, or 32 where vectors have 64 bytes. Two vectors by six columns take
    12 registers for sums, two for A and one for B; three by four take all 16. Where there are 32 registers, twelve
    columns fit; but a compiler may cut vectors of 64 bytes in two, which takes twice as many registers as it has then,
    and half of the width is twice as fast. So that comes second, and first for a compiler that is known to take no such
    vectors.
    A vector of twice the device's width is two registers as well, of which some compilers make more.

    Args:
        precision: "s" or "d".
        vector: elements of this precision in the device's own vectors.
        limits: what the device's compiler takes.
    """
    width, size = max(2, vector), PRECISIONS[precision].size
    shapes = [(width, 2, 6)]
    if width * size == 64:
        half = (width // 2, 2, 6)
        shapes = [half, *shapes] if limits.vector < 16 else [*shapes, half, (width, 2, 12)]
    else:
        shapes += [(width, 3, 4), *([(2 * width, 1, 6)] if 2 * width <= limits.vector else [])]
    return [Packed(precision, *shape) for shape in shapes]


def write(c: Packed) -> Text:
    """The OpenCL C text of a kernel named ``gemm`` that multiplies packed operands.

    Its arguments are M, N, K; the rows and columns of C that a work-item computes, multiples of MR and NR; alpha; the
    panels of A and of B; with beta also beta and C0, with the place of its first element and the distances of its rows
    and its columns; whether this is the first part of the sum over k; and C, which has no gaps.
    """
    return Text.of(_multiplication(c))


@writes
def _multiplication(c: Packed) -> Lines:
    return fill(
        """
        // $name
        //
        // Computes: C = alpha A B$added if first is 1, and C = C + alpha A B if it is 0, of ${real}s, column-major.
        //           A and B lie in panels: blocks of KC steps of k, in them panels of MR rows or NR columns, in
        //           them one step of k after the other.
        // Costs:    MR*NR accumulators; 1/MR + 1/NR loads per multiply-add, nearly all from the first cache.
        // Requires: work-groups of one work-item; rows and columns multiples of MR and NR; any M, N and K.

        #define MR $rows // rows of the register block
        #define NR $columns // columns of the register block
        #define KC $depth // steps of k in a block
        #define PANELS(size, side) (((size) + (side) - 1)/(side)*(side)) // rows or columns of all panels together

        __kernel __attribute__((reqd_work_group_size(1, 1, 1)))
        void gemm(const int M, const int N, const int K, const int rows, const int columns, const $real alpha,
                  const __global $real* restrict A, const __global $real* restrict B,
                  $beta
                  const int first, __global $real* C)
        {
            // identifiers: this work-item's part of C
            const int m0 = get_group_id(0)*rows;
            const int n0 = get_group_id(1)*columns;
            const int m1 = min(m0 + rows, M);
            const int n1 = min(n0 + columns, N);

            for (int k0 = 0; k0 < K; k0 += KC) {
                const int depth = min(KC, K - k0);
                const int fresh = first && k0 == 0; // C holds nothing yet

                for (int n = n0; n < n1; n += NR) {
                    for (int m = m0; m < m1; m += MR) {
                        const __global $vector* a = (const __global $vector*)(A + k0*PANELS(M, MR) + m*depth);
                        const __global $real* b = B + k0*PANELS(N, NR) + n*depth;

                        $compute

                        $store
                    }
                }
            }
        }
        """,
        name=c.name,
        added=" + beta C0" if c.beta else "",
        real=c.real,
        vector=c.vector,
        rows=c.rows,
        columns=c.columns,
        depth=c.depth,
        beta=_beta(c),
        compute=compute(c),
        store=store(c),
    )


@writes
def _beta(c: Packed) -> Lines:
    if not c.beta:
        return []
    return [f"const {c.real} beta, const __global {c.real}* C0, const long offset_c, const int down, const int across,"]


@writes
def compute(c: Packed) -> Lines:
    """The register block. Every vector has a name, and nothing in the loop may be a function call, as `fma` and `vload`
    are on some runtimes: all sums would go to memory and back."""
    block = [[f"c{j}_{i}" for i in range(c.vectors)] for j in range(c.columns)]
    return fill(
        """
        // accumulators: cJ_I is vector I of column J
        $zeroes

        // compute
        for (int k = 0; k < depth; k++) {
            const $vector $loads;
            $products
            a += MR/$width;
            b += NR;
        }
        """,
        vector=c.vector,
        width=c.width,
        zeroes=[f"{c.vector} " + ", ".join(f"{name} = 0" for name in column) + ";" for column in block],
        loads=", ".join(f"a{i} = a[{i}]" for i in range(c.vectors)),
        products=[
            " ".join(f"{name} += a{i}*b[{j}];" for i, name in enumerate(column)) for j, column in enumerate(block)
        ],
    )


@writes
def store(c: Packed) -> Lines:
    """C from the register block, as far as it exists. Compilers make vectors of the loop over rows."""
    element = "C[(n + j)*M + m + i]"
    sums = [", ".join(f"c{j}_{i}" for i in range(c.vectors)) for j in range(c.columns)]
    before = "beta*C0[offset_c + (m + i)*down + (n + j)*across]" if c.beta else "0"
    return fill(
        """
        // store
        const $vector sums[NR][MR/$width] = {
            $sums
        };
        const int there = min(MR, M - m); // rows of this block that exist
        for (int j = 0; j < min(NR, N - n); j++) {
            const $real* sum = (const $real*)sums[j];
            for (int i = 0; i < there; i++) {
                const $real before = fresh ? $before : $element;
                $element = before + alpha*sum[i];
            }
        }
        """,
        vector=c.vector,
        real=c.real,
        width=c.width,
        sums=[f"{{{row}}}," for row in sums],
        before=before,
        element=element,
    )


def write_packing(c: Packed) -> Text:
    """The OpenCL C text of a kernel named ``pack`` that copies both operands into panels.

    Its arguments are M, N and K; each operand with the place of its first element, the distance of its rows (of A) or
    columns (of B), and the distance of its steps of k, one of which is 1; and the panels of both. A work-item copies a
    panel of one block of k: the first ones of A, the others of B.
    """
    return Text.of(_packing(c))


@writes
def _packing(c: Packed) -> Lines:
    return fill(
        """
        // pack: MR rows of A, or NR columns of B, side by side, for one step of k after the other
        //
        // Requires: work-groups of one work-item: one for each panel of A and of B, and in the second dimension one
        //           for each block of k.

        #define MR $rows // rows of a panel of A
        #define NR $columns // columns of a panel of B
        #define KC $depth // steps of k in a block
        #define PANELS(size, side) (((size) + (side) - 1)/(side)) // how many there are

        $panel_of_a

        $panel_of_b

        __kernel __attribute__((reqd_work_group_size(1, 1, 1)))
        void pack(const int M, const int N, const int K,
                  $operands
                  __global $real* restrict Apanels, __global $real* restrict Bpanels)
        {
            const int panel = get_group_id(0);
            const int k0 = get_group_id(1)*KC; // first step of k of the block
            const int depth = min(KC, K - k0);
            if (panel < PANELS(M, MR)) {
                const int m = panel*MR;
                __global $real* to = Apanels + k0*PANELS(M, MR)*MR + m*depth;
                panel_of_a(M, m, k0, depth, A + offset_a, apart_a, step_a, to);
            } else {
                const int n = (panel - PANELS(M, MR))*NR;
                __global $real* to = Bpanels + k0*PANELS(N, NR)*NR + n*depth;
                panel_of_b(N, n, k0, depth, B + offset_b, apart_b, step_b, to);
            }
        }
        """,
        rows=c.rows,
        columns=c.columns,
        depth=c.depth,
        panel_of_a=panel(c, "a", "MR"),
        panel_of_b=panel(c, "b", "NR"),
        operands=arguments(c.precision, "AB"),
        real=c.real,
    )


@writes
def panel(c: Packed, operand: str, side: str) -> Lines:
    """The function that copies one panel. A whole one asks nothing of its elements, so that it becomes vectors.

    Where neighbours in memory belong to neighbouring steps of k, these are read a line at a time: rows whose distance
    is a power of two take each other's places in the first cache, and would have to be fetched again for each step.

    Args:
        operand, side: "a" and "MR", or "b" and "NR".
    """
    return fill(
        """
        // $sides p, p + 1, ... of $name, whose distance is apart, from step k0 on; zeroes where it has ended
        void panel_of_$operand(const int size, const int p, const int k0, const int depth,
                        const __global $real* restrict X, const int apart, const int step, __global $real* restrict to)
        {
            const int there = min($side, size - p);
            X += (long)p*apart + (long)k0*step;
            if (there < $side) {
                for (int i = 0; i < $side*depth; i++) {
                    to[i] = 0;
                }
            }
            if (step == 1) {
                for (int first = 0; first < depth; first += $line) {
                    const int end = min(first + $line, depth);
                    for (int i = 0; i < there; i++) {
                        for (int k = first; k < end; k++) {
                            to[k*$side + i] = X[i*apart + k];
                        }
                    }
                }
            } else if (there == $side) {
                for (int k = 0; k < depth; k++) {
                    for (int i = 0; i < $side; i++) {
                        to[k*$side + i] = X[k*step + i];
                    }
                }
            } else {
                for (int k = 0; k < depth; k++) {
                    for (int i = 0; i < there; i++) {
                        to[k*$side + i] = X[k*step + i];
                    }
                }
            }
        }
        """,
        sides="rows" if operand == "a" else "columns",
        name=operand.upper(),
        operand=operand,
        real=c.real,
        side=side,
        line=_LINE,
    )
