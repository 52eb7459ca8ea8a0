"""Kernels for small and thin products on processors: operands are read where they lie, in a single launch.

Packing both operands, as `gemmlab.family.packed` does, pays when each element of a panel is used often. Otherwise it
takes longer than the product. Here the columns of C are computed from vectors of A and single elements of B, both
straight from memory. Only a panel of A, which several columns use, may be copied first: where its columns lie far
apart, or where it has to be transposed.

No block is partial: the last ones are moved back until they end with the matrix. So they compute some elements twice,
and store the same numbers twice, which is quicker than asking for each element whether it exists. They stay within the
part of their work-item: the last one takes what is left over, if that is less than a block.

If C has fewer rows than a vector has elements, nothing can be moved back, and the vectors are longer than the columns
of A and C instead. A vector that is stored runs over into the next column, which is stored after it. A vector that is
loaded runs over, too, and what it finds there is not used. Only the last step of A is loaded element by element, since
the memory after it may not belong to A.

A long sum over k may be cut into parts, which are added up in C. Then the panel of A for a part stays in the second
cache, however large K is. Of a block that was moved back, only the elements that no other block computes are added.

Where K is small, writing C decides. Then the blocks follow each other down the columns, in the order of C's memory, and
all of A that a work-item needs stays in the second cache.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..catalog.spec import tiles_over
from .configuration import PRECISIONS
from .strided import signature, vectors
from .text import Lines, Text, fill, writes

#: Bytes that a copied panel of A takes at most: it stays in the first cache, or hardly leaves it.
_PANEL = 32 * 1024
#: Bytes that a block of B may take: half of the second cache where it is as small as 512 kB.
_BLOCK_OF_B = 256 * 1024
#: Steps of k in each part of a sum that is cut. A panel of A with so many steps stays in the second cache, and lies on
#: few pages of memory.
DEPTH = 512
#: Bytes of the part of A that a work-item reads for each block of columns where K is small.
_PART_OF_A = 128 * 1024
#: Bytes of a line of the caches.
_LINE = 64
#: Sums of the register block, where a single vector of rows is all there is: as many as a processor needs that starts
#: two multiply-adds per cycle, each of which takes four cycles.
_SUMS = 8
#: Register blocks beside those of `_SUMS` or fewer, as vectors and columns: with their operands they fill 16 registers,
#: or the 32 that a processor has whose vectors are of 64 bytes.
_SIXTEEN, _THIRTY_TWO = (2, 6), (4, 4)
#: Columns of a result that is so narrow that the register block may have as many, where there are 32 registers.
_NARROW = 12
#: What loading a vector of A and an element of B takes, as a multiple of a multiply-add. Fitted to some 60 products on
#: each of two runtimes: the block that it names was 2 % slower than the fastest, in the geometric mean.
_LOAD_A, _LOAD_B = 1.5, 0.75


@dataclass(frozen=True)
class InPlace:
    """One kernel for C = alpha A B, column-major, with operands where they lie.

    Attributes:
        precision: "s" or "d": float32 or float64.
        width: elements of a vector: 1, 2, 4, 8 or 16.
        vectors: vectors of neighbouring rows in the register block.
        columns: columns of the register block (NR).
        copies: whether panels of A are copied first. Then A may lie in any way, but K is limited to `most_steps`.
        pads: whether C has fewer rows than a vector has elements, but more than half as many. Then `vectors` is 1.
        adds: whether the sum over k is cut into parts of `DEPTH` steps. It excludes `copies` and `pads`.
        down: whether blocks follow each other down the columns of C instead of along its rows. It excludes the others.
    """

    precision: str = "s"
    width: int = 8
    vectors: int = 2
    columns: int = 6
    copies: bool = False
    pads: bool = False
    adds: bool = False
    down: bool = False

    @property
    def rows(self) -> int:
        """Rows of the register block (MR)."""
        return self.width * self.vectors

    @property
    def many_registers(self) -> bool:
        """Whether the processor has 32 registers for vectors, as those have whose vectors are of 64 bytes."""
        return self.width * PRECISIONS[self.precision].size == 64

    @property
    def most_steps(self) -> int:
        """Steps of k for which a copied panel has room."""
        return _PANEL // (self.rows * PRECISIONS[self.precision].size)

    def block(self, k: int) -> int:
        """Columns of B, of K elements, that stay in the second cache: a multiple of NR."""
        return max(1, _BLOCK_OF_B // (k * PRECISIONS[self.precision].size * self.columns)) * self.columns

    def most_rows(self, k: int) -> int:
        """Rows of A, of K elements, that stay in the second cache: a multiple of MR."""
        return max(1, _PART_OF_A // (k * PRECISIONS[self.precision].size * self.rows)) * self.rows

    def groups(self, m: int, n: int, rows: int, columns: int) -> tuple[int, int]:
        """Work-items for an M x N result if each computes so many rows and columns, and none less than a block."""
        return 1 if self.pads else (m - self.rows) // rows + 1, (n - self.columns) // columns + 1

    @property
    def name(self) -> str:
        """All that it says, in one word."""
        kind = "_pads" * self.pads + "_copies" * self.copies + "_adds" * self.adds + "_down" * self.down
        return f"{self.precision}gemm_in_place_{self.width}x{self.vectors}x{self.columns}{kind}"


def shaped(precision: str, vector: int, m: int, n: int) -> InPlace:
    """The kernel whose register block suits an M x N result: none of its sides is longer than the result's,
    except where it `pads`.

    Args:
        precision: "s" or "d".
        vector: elements of this precision in the device's own vectors.
        m, n: rows and columns of C.
    """
    width = min(vector, _power_of_two(m))
    if width < m < vector:
        return InPlace(precision, 2 * width, 1, min(_SUMS, _power_of_two(n)), pads=True)
    blocks = [(v, c) for v in (1, 2, 4, 8) for c in (1, 2, 4, 6, 8) if v * c <= _SUMS] + [_SIXTEEN]
    if InPlace(precision, width).many_registers:
        blocks += [_THIRTY_TWO, *((v, n) for v in (1, 2, 4) if n <= _NARROW and v * n + v + 1 <= 32)]
    vectors, columns = min(
        ((v, c) for v, c in blocks if v * width <= m and c <= n),
        key=lambda block: tiles_over(m, width * block[0]) * tiles_over(n, block[1]) * _step(*block),
    )
    return InPlace(precision, width, vectors, columns)


def lower(c: InPlace, n: int) -> InPlace:
    """The same with rows of a single line of the cache, so that a panel of A takes less room, and more of the N columns
    of C."""
    vectors = min(c.vectors, max(1, _LINE // (c.width * PRECISIONS[c.precision].size)))
    return replace(c, vectors=vectors, columns=min(_SUMS // vectors, _power_of_two(n)))


def _step(vectors: int, columns: int) -> float:
    """What a register block of so many vectors and columns takes for a step of k, in multiply-adds of vectors."""
    return max(vectors * columns, _SUMS) + _LOAD_A * vectors + _LOAD_B * columns


def _power_of_two(most: int) -> int:
    return 1 << (most.bit_length() - 1)


def write(c: InPlace) -> Text:
    """The OpenCL C text of a kernel named ``gemm`` that multiplies operands where they lie.

    Its arguments are M, N, K; the rows and columns of C that a work-item computes, multiples of MR and NR; alpha; each
    operand with the place of its first element, the distance of its rows (of A) or columns (of B), and the distance of
    its steps of k; and C, which has no gaps.
    """
    return Text.of(_multiplication(c))


@writes
def _multiplication(c: InPlace) -> Lines:
    real = PRECISIONS[c.precision].real
    return fill(
        """
        // $name
        //
        // Computes: C = alpha A B, of ${real}s, column-major.
        // Costs:    MR*NR accumulators; 1/MR + 1/NR loads per multiply-add.
        // Requires: work-groups of one work-item; rows and columns multiples of MR and NR; $sizes and N >= NR;
        //           $requires.

        #define MR $rows // rows of the register block
        #define NR $columns // columns of the register block

        $vectors

        $signature
        {
            $panel

            // identifiers: this work-item's part of C
            const int m0 = get_group_id(0)*rows;
            const int n0 = get_group_id(1)*columns;
            const int m1 = get_group_id(0) + 1 < get_num_groups(0) ? m0 + rows : M; // the last one takes the rest
            const int n1 = get_group_id(1) + 1 < get_num_groups(1) ? n0 + columns : N;

            $loops
        }
        """,
        name=c.name,
        real=real,
        rows=c.rows,
        columns=c.columns,
        vectors=vectors(c.precision, c.width),
        signature=signature(c.precision, "ABC", "const int rows, const int columns"),
        sizes="M < MR < 2*M" if c.pads else "M >= MR",
        requires=f"K <= {c.most_steps}" if c.copies else "rows of A side by side",
        panel=[f"vector panel[{c.most_steps * c.vectors}]; // MR rows of A, one step of k after the other"]
        if c.copies
        else [],
        loops=_parts(_blocks(c, real)) if c.adds else _blocks(c, real),
    )


@writes
def _parts(blocks: Lines) -> Lines:
    return fill(
        """
        for (int k0 = 0; k0 < K; k0 += $depth) { // the parts of the sum
            const int steps = min($depth, K - k0);

            $blocks
        }
        """,
        depth=DEPTH,
        blocks=blocks,
    )


@writes
def _blocks(c: InPlace, real: str) -> Lines:
    rows = "for (int row = m0; row < m1; row += MR) {"
    columns = "for (int column = n0; column < n1; column += NR) {"
    m = "const int m = row;" if c.pads else "const int m = min(row, M - MR); // the last block is moved back"
    n = "const int n = min(column, N - NR);"
    return fill(
        """
        $outer
            $first

            $load

            $inner
                $second
                $operands

                $compute

                $store
            }
        }
        """,
        outer=columns if c.down else rows,
        first=n if c.down else m,
        load=(_load_few(real) if c.copies else _load_last(real)) if c.pads else _load(c, real) if c.copies else [],
        inner=rows if c.down else columns,
        second=m if c.down else n,
        operands=_operands(c, real),
        compute=_compute(c),
        store=_add(c, real) if c.adds else _store_few(c, real) if c.pads else _store(c),
    )


@writes
def _load(c: InPlace, real: str) -> Lines:
    return fill(
        """
        // load: copy a panel of A
        const __global $real* from = A + offset_a + (long)m*apart_a;
        if (apart_a == 1) {
            for (int k = 0; k < K; k++) {
                const __global anywhere* a = (const __global anywhere*)(from + (long)k*step_a);
                $copies
            }
        } else {
            $real* to = ($real*)panel;
            for (int i = 0; i < MR; i++) {
                for (int k = 0; k < K; k++) {
                    to[k*MR + i] = from[(long)i*apart_a + (long)k*step_a];
                }
            }
        }
        """,
        real=real,
        copies=[f"panel[k*{c.vectors} + {i}] = a[{i}];" for i in range(c.vectors)],
    )


@writes
def _load_few(real: str) -> Lines:
    return fill(
        """
        // load: copy all rows of A, and zeroes up to a whole vector
        $real* to = ($real*)panel;
        for (int k = 0; k < K; k++) {
            for (int i = 0; i < MR; i++) {
                to[k*MR + i] = i < M ? A[offset_a + (long)i*apart_a + (long)k*step_a] : 0;
            }
        }
        """,
        real=real,
    )


@writes
def _load_last(real: str) -> Lines:
    return fill(
        """
        // load: the last step of A, after which there may be nothing to read, with zeroes up to a whole vector
        vector last_a = 0;
        for (int i = 0; i < M; i++) {
            (($real*)&last_a)[i] = A[offset_a + i + (long)(K - 1)*step_a];
        }
        """,
        real=real,
    )


@writes
def _operands(c: InPlace, real: str) -> Lines:
    """Where the block of A and each column of B begin: compilers keep so many pointers in registers."""
    of_a, of_b = (" + (long)k0*step_a", " + (long)k0*step_b") if c.adds else ("", "")
    first = "const vector* a = panel;" if c.copies else f"const __global {real}* a = A + offset_a + m{of_a};"
    return [first] + [
        f"const __global {real}* b{j} = B + offset_b + (long)(n + {j})*apart_b{of_b};" for j in range(c.columns)
    ]


def _sums(c: InPlace) -> list[list[str]]:
    return [[f"c{j}_{i}" for i in range(c.vectors)] for j in range(c.columns)]


@writes
def _compute(c: InPlace) -> Lines:
    """The register block. Every vector has a name, and nothing in the loop may be a function call: see
    `gemmlab.family.packed.compute`."""
    vectors = "a" if c.copies else "((const __global anywhere*)a)"
    last = c.pads and not c.copies
    products = [
        " ".join(f"{name} += a{i}*b{j}[at];" for i, name in enumerate(column)) for j, column in enumerate(_sums(c))
    ]
    return fill(
        """
        // accumulators: cJ_I is vector I of column J
        $zeroes

        // compute
        for (int k = 0; k < $steps; k++) {
            const vector $loads;
            const long at = (long)k*step_b;
            $products
            a += $next;
        }
        $end
        """,
        zeroes=["vector " + ", ".join(f"{name} = 0" for name in column) + ";" for column in _sums(c)],
        steps="K - 1" if last else "steps" if c.adds else "K",
        loads=", ".join(f"a{i} = {vectors}[{i}]" for i in range(c.vectors)),
        products=products,
        next=c.vectors if c.copies else "step_a",
        end=["const vector a0 = last_a;", "const long at = (long)(K - 1)*step_b;", *products] if last else [],
    )


@writes
def _store(c: InPlace) -> Lines:
    lines = ["// store", "__global anywhere* to;"]
    for j, column in enumerate(_sums(c)):
        lines.append(f"to = (__global anywhere*)(C + (long)(n + {j})*M + m);")
        lines.append(" ".join(f"to[{i}] = alpha*{name};" for i, name in enumerate(column)))
    return lines


@writes
def _store_few(c: InPlace, real: str) -> Lines:
    return fill(
        """
        // store: a vector runs over into the next column, which is stored after it; the last column goes by elements
        $columns
        const vector last = alpha*c${last}_0;
        for (int i = 0; i < M; i++) {
            C[(long)(n + $last)*M + i] = ((const $real*)&last)[i];
        }
        """,
        real=real,
        last=c.columns - 1,
        columns=[f"*(__global anywhere*)(C + (long)(n + {j})*M) = alpha*c{j}_0;" for j in range(c.columns - 1)],
    )


@writes
def _add(c: InPlace, real: str) -> Lines:
    return fill(
        """
        // store: add what the blocks before have not added
        const vector sums[NR][MR/$width] = {
            $sums
        };
        for (int j = column - n; j < NR; j++) {
            const $real* sum = (const $real*)sums[j];
            __global $real* to = C + (long)(n + j)*M + m;
            for (int i = row - m; i < MR; i++) {
                to[i] = (k0 > 0 ? to[i] : 0) + alpha*sum[i];
            }
        }
        """,
        real=real,
        width=c.width,
        sums=[f"{{{', '.join(column)}}}," for column in _sums(c)],
    )
