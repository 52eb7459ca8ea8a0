"""Kernels for CPUs: A is packed into panels, then multiplied by blocks of C that live in registers.

A CPU is fast when its innermost loop reads memory in sequence and keeps its sums in vector registers. So
`write_packing` writes a kernel that copies A into panels: MR rows, one step of k after the other, with zeros where the
matrix has ended. `write` writes the kernel that multiplies. Its innermost loop accumulates an MR x NR block of C; the
NR columns of B stay in the L1 cache while panels of A pass by, and a block of A of KC steps stays in the L2 cache. B is
read where it is: NR streams that the L1 cache holds need no copy.

The order of loops is that of K. Goto and R. van de Geijn, "Anatomy of high-performance matrix multiplication" (TOMS
34(3), 2008); the sizes of the blocks follow from the registers and the caches, as in T. M. Low et al., "Analytical
modeling is enough for high-performance BLIS" (TOMS 43(2), 2016).

One work-item does the work of a thread, without local memory or barriers.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..catalog import Limits
from .configuration import PRECISIONS
from .text import Lines, Text, fill, writes

#: Bytes of a block of A: half of an L2 cache of 512 kB. (OpenCL reports the size of one cache, without saying which.)
BLOCK_BYTES = 256 * 1024
#: Steps of k that are copied together where neighbours in memory are neighbouring steps: a cache line of floats.
LINE = 16


@dataclass(frozen=True)
class Packed:
    """A kernel for C = alpha A B (+ beta C0), column-major.

    Two multiply-adds per cycle with a latency of four to five cycles need ten independent accumulators. Two vectors of
    rows by six columns are twelve, which leaves four of 16 vector registers for A and B. (On CPUs with 32 registers
    larger blocks gained less than 5 %.)

    Attributes:
        precision: "s" or "d": float32 or float64.
        width: elements per vector: 2, 4, 8 or 16.
        vectors: vectors per column of the register block.
        columns: columns of the register block (NR).
        depth: steps of k in a block (KC). NR columns of B then take 6 kB (12 kB in float64) of the L1 cache.
        beta: whether a matrix C0 is read, multiplied by beta and added.
    """

    precision: str = "s"
    width: int = 8
    vectors: int = 2
    columns: int = 6
    depth: int = 256
    beta: bool = False

    @classmethod
    def for_device(cls, precision: str, native_bytes: int, limits: Limits, beta: bool = False) -> Packed:
        """The kernel for a device with vector registers of `native_bytes`, as far as its compiler takes them."""
        size = PRECISIONS[precision].size
        return cls(precision, max(2, min(native_bytes, 4 * limits.vector) // size), beta=beta)

    @property
    def rows(self) -> int:
        """Rows of the register block (MR)."""
        return self.width * self.vectors

    @property
    def block(self) -> int:
        """Rows of a block of A that stays in the L2 cache (MC), a multiple of MR."""
        size = PRECISIONS[self.precision].size
        return max(1, BLOCK_BYTES // (self.depth * size * self.rows)) * self.rows

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
        shape = f"{self.width}x{self.vectors}x{self.columns}x{self.depth}"
        return f"{self.precision}gemm_packed_{shape}" + ("_beta" if self.beta else "")


def write(c: Packed) -> Text:
    """The OpenCL C text of a kernel named ``gemm``.

    Its arguments are M, N, K; the rows and columns of C per work-item, multiples of MR and NR; alpha; the panels of A;
    B, the offset of its first element, and the distances of its columns and of its steps of k; with beta also beta and
    C0, with its offset and the distances of its rows and columns; whether this is the first part of the sum over k;
    and C, likewise. Offsets and distances count elements.
    """
    return Text.of(_multiplication(c))


@writes
def _multiplication(c: Packed) -> Lines:
    return fill(
        """
        // $name
        //
        // Computes: C = alpha A B$added if first is 1, and C = C + alpha A B if it is 0, of ${real}s, column-major.
        //           A lies in panels: blocks of KC steps of k, in them panels of MR rows, in them one step of k
        //           after the other.
        // Costs:    MR*NR accumulators; 1/MR + 1/NR loads per multiply-add, nearly all from the L1 cache.
        // Requires: work-groups of one work-item; rows and columns multiples of MR and NR; any M, N and K.

        #define MR $rows // rows of the register block
        #define NR $columns // columns of the register block
        #define KC $depth // steps of k in a block
        #define PANELS(size, side) (((size) + (side) - 1)/(side)*(side)) // rows of all panels together

        __kernel __attribute__((reqd_work_group_size(1, 1, 1)))
        void gemm(const int M, const int N, const int K, const int rows, const int columns, const $real alpha,
                  const __global $real* restrict A,
                  const __global $real* restrict B, const long offset_b, const long apart_b, const long step_b,
                  $beta
                  const int first, __global $real* C, const long offset_c, const long down_c, const long across_c)
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
                        $columns_of_b

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
        columns_of_b=_columns_of_b(c),
        compute=_compute(c),
        store=_store(c),
    )


@writes
def _beta(c: Packed) -> Lines:
    if not c.beta:
        return []
    return [f"const {c.real} beta, const __global {c.real}* C0,",
            "const long offset_c0, const long down_c0, const long across_c0,"]  # fmt: skip


@writes
def _columns_of_b(c: Packed) -> Lines:
    """A pointer per column. Behind the last column of B the last one is read again, for sums that nobody stores."""
    return [
        f"const __global {c.real}* b{j} = B + offset_b + min(n + {j}, N - 1)*apart_b + k0*step_b;"
        for j in range(c.columns)
    ]


@writes
def _compute(c: Packed) -> Lines:
    """The register block. Every vector has a name, and the loop calls no function, as `fma` and `vload` are on some
    runtimes: all accumulators would go through memory."""
    block = [[f"c{j}_{i}" for i in range(c.vectors)] for j in range(c.columns)]
    return fill(
        """
        // accumulators: cJ_I is vector I of column J
        $zeros

        // compute
        long at = 0;
        for (int k = 0; k < depth; k++) {
            const $vector $loads;
            $products
            a += MR/$width;
            at += step_b;
        }
        """,
        vector=c.vector,
        width=c.width,
        zeros=[f"{c.vector} " + ", ".join(f"{name} = 0" for name in column) + ";" for column in block],
        loads=", ".join(f"a{i} = a[{i}]" for i in range(c.vectors)),
        products=[" ".join(f"{name} += a{i}*b{j}[at];" for i, name in enumerate(column))
                  for j, column in enumerate(block)],
    )  # fmt: skip


@writes
def _store(c: Packed) -> Lines:
    """C from the register block, as far as it exists. Compilers vectorise the loop over adjacent rows."""
    sums = [", ".join(f"c{j}_{i}" for i in range(c.vectors)) for j in range(c.columns)]
    before = "beta*C0[offset_c0 + (m + i)*down_c0 + (n + j)*across_c0]" if c.beta else "0"
    loop = """
            for (int i = 0; i < height; i++) {
                const $real before = fresh ? $before : to[$at];
                to[$at] = before + alpha*sum[i];
            }
    """
    return fill(
        """
        // store
        const $vector sums[NR][MR/$width] = {
            $sums
        };
        const int height = min(MR, M - m); // rows of this block that exist
        for (int j = 0; j < min(NR, N - n); j++) {
            const $real* sum = (const $real*)sums[j];
            __global $real* to = C + offset_c + m*down_c + (n + j)*across_c;
            if (down_c == 1) {
                $adjacent
            } else {
                $apart
            }
        }
        """,
        vector=c.vector,
        real=c.real,
        width=c.width,
        sums=[f"{{{row}}}," for row in sums],
        adjacent=fill(loop, real=c.real, before=before, at="i"),
        apart=fill(loop, real=c.real, before=before, at="i*down_c"),
    )


def write_packing(c: Packed) -> Text:
    """The OpenCL C text of a kernel named ``pack`` that copies A into panels.

    Its arguments are M and K; A with the offset of its first element and the distances of its rows and of its steps of
    k, one of which is 1; and the panels. A work-item copies the panel of one block of k.
    """
    return Text.of(_packing(c))


@writes
def _packing(c: Packed) -> Lines:
    """Where neighbours in memory are neighbouring steps of k, a cache line of them is read at a time: rows whose
    distance is a power of two evict each other from the L1 cache, and would have to be fetched again for each step."""
    return fill(
        """
        // pack: MR rows of A side by side, for one step of k after the other
        //
        // Requires: work-groups of one work-item: one per panel, and in the second dimension one per block of k.

        #define MR $rows // rows of a panel
        #define KC $depth // steps of k in a block
        #define PANELS(size, side) (((size) + (side) - 1)/(side)*(side)) // rows of all panels together

        __kernel __attribute__((reqd_work_group_size(1, 1, 1)))
        void pack(const int M, const int K,
                  const __global $real* restrict A, const long offset_a, const long apart_a, const long step_a,
                  __global $real* restrict panels)
        {
            const int m = get_group_id(0)*MR; // first row of the panel
            const int k0 = get_group_id(1)*KC; // first step of k of the block
            const int depth = min(KC, K - k0);
            const int height = min(MR, M - m); // rows that exist
            A += offset_a + m*apart_a + k0*step_a;
            panels += k0*PANELS(M, MR) + m*depth;
            if (height < MR) {
                for (int i = 0; i < MR*depth; i++) {
                    panels[i] = 0;
                }
            }
            if (step_a == 1) {
                for (int first = 0; first < depth; first += $line) {
                    const int end = min(first + $line, depth);
                    for (int i = 0; i < height; i++) {
                        for (int k = first; k < end; k++) {
                            panels[k*MR + i] = A[i*apart_a + k];
                        }
                    }
                }
            } else if (height == MR) {
                for (int k = 0; k < depth; k++) {
                    for (int i = 0; i < MR; i++) {
                        panels[k*MR + i] = A[k*step_a + i];
                    }
                }
            } else {
                for (int k = 0; k < depth; k++) {
                    for (int i = 0; i < height; i++) {
                        panels[k*MR + i] = A[k*step_a + i];
                    }
                }
            }
        }
        """,
        rows=c.rows,
        depth=c.depth,
        real=c.real,
        line=LINE,
    )
