"""A product on paper: its matrices in memory, and the passes that multiply them.

Nothing here needs a device. `passes` lists what `Plan.multiply` launches.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..generate.tiles import OperandLayout
from ..ladder import KernelSpec
from ..ladder.spec import Params, round_up

#: Products in one launch at most: NVIDIA's devices count no further in the third dimension.
MAX_BATCH = 65535
#: Where 32-bit indices end. Generated and packed kernels count the elements of a result with 64
#: bits from here on, production kernels those of every matrix.
INDEX_LIMIT = 2**31
#: The largest m, n and k: kernels add the side of a tile or of a work-item's share to them.
LONGEST = 2**30


def is_wide(elements: int) -> bool:
    """Whether so many elements need 64-bit indices."""
    return elements >= INDEX_LIMIT


def check_indices(spans: Mapping[str, int]) -> None:
    """Reject matrices, by name, that span more elements than a kernel counts with 32 bits."""
    for name, elements in spans.items():
        if is_wide(elements):
            raise ValueError(
                f"{name} spans {elements:,} elements; this kernel indexes it with 32 bits, below "
                f"{INDEX_LIMIT:,}"
            )


def check_sizes(m: int, n: int, k: int) -> None:
    """Reject sizes of a product that kernels cannot count."""
    for name, size in {"m": m, "n": n, "k": k}.items():
        if size > LONGEST:
            raise ValueError(f"{name}={size:,}, but kernels count only up to {LONGEST:,}")


class Matrix(NamedTuple):
    """A matrix in memory. All distances count elements."""

    rows: int
    cols: int
    down: int  # from one row to the next
    across: int  # from one column to the next
    offset: int = 0  # before its first element
    room: int = 0  # in its whole buffer
    buffer: Any = None  # its memory, or what stands for it in a plan
    name: str = ""  # for messages
    conjugated: bool = False  # it is the complex conjugate of what is stored
    padded: bool = False  # zeros fill the distance between two columns, and loads may reach them

    @classmethod
    def compact(
        cls, rows: int, cols: int, buffer: Any = None, name: str = "", ld: int | None = None
    ) -> Matrix:
        """A column-major matrix that fills its buffer; its columns may be `ld` elements apart."""
        ld = ld or rows
        return cls(rows, cols, 1, ld, 0, ld * cols, buffer, name)

    @property
    def T(self) -> Matrix:
        """The transpose, in the same memory."""
        return self._replace(rows=self.cols, cols=self.rows, down=self.across, across=self.down)

    @property
    def by_columns(self) -> bool:
        """Whether it is column-major. A single row or column may be row-major as well."""
        adjacent = self.rows == 1 or self.down == 1
        return adjacent and (self.cols == 1 or self.across >= self.rows)

    @property
    def stored(self) -> Matrix:
        """The matrix if it is column-major, else its transpose, which then is."""
        return self if self.by_columns else self.T

    @property
    def is_compact(self) -> bool:
        """Whether it is column-major without gaps, from the start of its buffer on."""
        return self.by_columns and self.offset == 0 and self.across == self.rows

    def supports(self, rows: int, cols: int, ld: int) -> bool:
        """Whether a kernel may read it as column-major, from the start of its buffer on."""
        inside = self.across == self.rows or self.room >= ld * cols  # behind the last column, too
        same = (self.rows, self.cols) == (rows, cols) and (cols == 1 or self.across == ld)
        return self.by_columns and self.offset == 0 and same and inside

    def part(self, row: int, column: int, rows: int, cols: int) -> Matrix:
        """A rectangle of it."""
        moved = self.moved(row * self.down + column * self.across)
        return moved._replace(rows=rows, cols=cols)

    def moved(self, elements: int) -> Matrix:
        """The matrix that begins so many elements after this one, in the same buffer."""
        return self._replace(offset=self.offset + elements)

    @property
    def indexed(self) -> Matrix:
        """The matrix as kernels index it, with a stride of 1."""
        down, across = (1, self.across) if self.by_columns else (self.down, 1)
        return self._replace(down=down, across=across)

    @property
    def span(self) -> int:
        """Elements from its first one to the end of its last column, or row, with the gaps."""
        x = self.indexed
        return max(x.rows * x.down, x.cols * x.across)

    @property
    def layout(self) -> OperandLayout:
        """The matrix as a generated kernel reads it."""
        operation, stored = ("NR" if self.by_columns else "TC")[self.conjugated], self.stored
        return OperandLayout(operation, stored.offset, stored.across, self.padded)


class Batch(NamedTuple):
    """Many products of the same sizes, whose results are adjacent. Distances count elements."""

    number: int  # of products whose operands are at equal distances
    steps: tuple[int, int]  # these distances for A and for B: 0 if all products share the matrix
    #: For each group of `number` products, from the very first A and B to its first ones.
    starts: tuple[tuple[int, int], ...] = ((0, 0),)

    @classmethod
    def over(
        cls, shape: tuple[int, ...], steps_a: tuple[int, ...], steps_b: tuple[int, ...]
    ) -> Batch:
        """The products of an array of this shape, with the distances of A and of B along each
        dimension. Dimensions with equal distances are merged.
        """
        number, steps, starts = 1, (0, 0), [(0, 0)]
        for size, a, b in zip(shape[::-1], steps_a[::-1], steps_b[::-1], strict=True):
            if number == 1:
                number, steps = size, (a, b)
            elif len(starts) == 1 and (a, b) == (number * steps[0], number * steps[1]):
                number *= size
            elif size > 1:  # an outer dimension: its groups come before those within
                starts = [(i * a + x, i * b + y) for i in range(size) for x, y in starts]
        return cls(number, steps, tuple(starts))

    def launches(self, most: int) -> Iterator[tuple[int, int, int, int]]:
        """For each launch, of at most `most` products: the elements before its first A and B, the
        results before its first one, and how many products it computes.
        """
        a, b = self.steps
        for turn, (at_a, at_b) in enumerate(self.starts):
            for i in range(0, self.number, most):
                yield at_a + i * a, at_b + i * b, turn * self.number + i, min(most, self.number - i)


class Problem(NamedTuple):
    """C = alpha A B + beta C0; A is M x K, B is K x N, C and C0 are M x N."""

    a: Matrix
    b: Matrix
    c: Matrix
    alpha: float | complex = 1.0
    beta: float | complex = 0.0
    before: Matrix | None = None  # C0, if beta is not 0; it may be in the memory of C
    batch: Batch | None = None  # if there are several products: the matrices are the first ones

    @classmethod
    def compact(
        cls, m: int, n: int, k: int, a: Any = None, b: Any = None, c: Any = None
    ) -> Problem:
        """Column-major matrices without gaps, in these buffers."""
        x, y, z = (
            Matrix.compact(m, k, a, "a"),
            Matrix.compact(k, n, b, "b"),
            Matrix.compact(m, n, c),
        )
        return cls(x, y, z)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """M, N and K."""
        return self.a.rows, self.b.cols, self.a.cols

    @property
    def turned(self) -> Problem:
        """The transpose of C as the product of the transposes of B and A.

        A row-major matrix is its column-major transpose, without a copy: so this turns a row-major
        product into a column-major one.
        """
        before, batch = self.before and self.before.T, self.batch
        if batch:
            starts = tuple(start[::-1] for start in batch.starts)
            batch = Batch(batch.number, batch.steps[::-1], starts)
        return Problem(self.b.T, self.a.T, self.c.T, self.alpha, self.beta, before, batch)

    def part(self, row: int, column: int, rows: int, cols: int) -> Problem:
        """The product that computes a rectangle of C."""
        return self._replace(
            a=self.a.part(row, 0, rows, self.a.cols),
            b=self.b.part(0, column, self.b.rows, cols),
            c=self.c.part(row, column, rows, cols),
            before=self.before and self.before.part(row, column, rows, cols),
        )

    @property
    def shared(self) -> tuple[bool, bool] | None:
        """Of a batch: (A is shared, B is shared); None if other matrices are not adjacent."""
        assert self.batch is not None
        (a, b), (m, n, k) = self.batch.steps, self.sizes
        adjacent = a in (0, m * k) and b in (0, k * n) and len(self.batch.starts) == 1
        return (not a, not b) if adjacent else None

    @property
    def layouts(self) -> tuple[OperandLayout, OperandLayout]:
        """A and B as a generated kernel reads them. In a batch, an offset is the greatest common
        divisor of all offsets, so that tests of alignment hold for each product.
        """
        a, b = self.a.layout, self.b.layout
        if self.batch is None:
            return a, b
        in_a, in_b = zip(*self.batch.starts, self.batch.steps, strict=True)
        return (
            a._replace(offset=math.gcd(a.offset, *in_a)),
            b._replace(offset=math.gcd(b.offset, *in_b)),
        )


class Pass(NamedTuple):
    """One launch of a product."""

    kind: str  # "transpose", "pad", "gemm", "fix-up" or "unpad"
    operand: str  # what it makes: "A", "B" or "C"
    out: Matrix | None = None  # the matrix that is made for it; None if it writes to the result


def passes(
    spec: KernelSpec, params: Params, problem: Problem, features: frozenset[str] = frozenset()
) -> list[Pass]:
    """The passes of a product with a kernel, in their order, on a device with these features."""
    sizes, multiples = problem.sizes, spec.multiples(params)
    m, n, k = map(round_up, sizes, multiples)
    a, b = (problem.a, m, k), (problem.b, k, n)  # each with its rows and columns in whole tiles
    if spec.wants_transposed(params):
        b = problem.b.T, n, k
    planned = []
    for name, operand, alignment in zip("AB", (a, b), spec.alignment(params), strict=True):
        x, rows, cols = operand
        if not x.by_columns:
            x = Matrix.compact(x.rows, x.cols, ld=round_up(x.rows, alignment))
            planned.append(Pass("transpose", name, x))
        ld = round_up(rows, alignment)
        if not x.supports(rows, cols, ld):
            planned.append(Pass("pad", name, Matrix.compact(ld, cols)))
    whole = (m, n) == sizes[:2]
    planned.append(Pass("gemm", "C", None if whole else Matrix.compact(m, n)))
    if spec.needs_fixup(params, features):
        planned.append(Pass("fix-up", "C"))
    if not whole:
        planned.append(Pass("unpad", "C"))
    return planned
