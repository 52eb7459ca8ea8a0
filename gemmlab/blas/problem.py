"""A product on paper: the layouts of the operands, and the passes that multiply them.

Everything in this module is column-major and needs no device. Launching (`Builder.multiply`),
counting memory (`footprint`) and comparing strategies (`lessons.edges`) all use the list that
`plan` returns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from ..catalog import KernelSpec
from ..catalog.spec import Params, round_up
from ..generate.tiles import OperandLayout
from ..generate.written import Pairs
from ..opencl.launch import INDEX_LIMIT

#: Products in one launch at most: NVIDIA's devices count no further in the third dimension.
MAX_BATCH = 65535


class Layout(NamedTuple):
    """The layout of a column-major matrix in a buffer, in elements.

    Attributes:
        rows, cols: its shape.
        ld: its leading dimension: elements from the start of one column to the start of the next.
        offset: elements before its first one.
        room: elements that the buffer holds in all.
    """

    rows: int
    cols: int
    ld: int
    offset: int
    room: int

    @classmethod
    def compact(cls, rows: int, cols: int, ld: int | None = None) -> Layout:
        """A matrix that fills a buffer; its columns may be `ld` elements apart."""
        return cls(rows, cols, ld or rows, 0, (ld or rows) * cols)

    @property
    def is_compact(self) -> bool:
        return self.offset == 0 and (self.ld == self.rows or self.cols == 1)

    def supports(self, rows: int, cols: int, ld: int) -> bool:
        """Whether a kernel may read it as rows x cols with leading dimension `ld`, from the start
        of its buffer.
        """
        same_ld = self.ld == ld or (cols == 1 and ld == rows)
        inside = self.ld == self.rows or self.room >= ld * cols  # behind the last column, too
        return self.offset == 0 and (self.rows, self.cols) == (rows, cols) and same_ld and inside


class Operand(NamedTuple):
    """An operand X in memory.

    Attributes:
        name: the user's name for it.
        plain: the layout of X, if it is column-major.
        transposed: the layout of its transpose, if that is column-major. A single row or column has
            both.
        conjugated: whether X is the complex conjugate of what is stored.
    """

    name: str
    plain: Layout | None
    transposed: Layout | None
    conjugated: bool = False

    @classmethod
    def compact(cls, name: str, rows: int, cols: int) -> Operand:
        """X filling a buffer, without gaps."""
        return cls(name, Layout.compact(rows, cols), None)

    def moved(self, elements: int) -> Operand:
        """The operand that begins so many elements after this one, in the same buffer."""
        plain, transposed = (
            x and x._replace(offset=x.offset + elements) for x in (self.plain, self.transposed)
        )
        return self._replace(plain=plain, transposed=transposed)

    @property
    def turned(self) -> Operand:
        """The transpose of X, in the same memory."""
        return self._replace(plain=self.transposed, transposed=self.plain)

    @property
    def layout(self) -> OperandLayout:
        """The operand as a generated kernel reads it.

        Raises:
            ValueError: if it is part of so large a matrix that 32-bit indices do not reach its end.
        """
        layout = self.plain or self.transposed
        assert layout is not None, "a matrix is row-major or column-major"
        if layout.ld * layout.cols >= INDEX_LIMIT:
            raise ValueError(
                f"{self.name} spans {layout.ld * layout.cols:,} elements of a larger matrix; "
                f"generated kernels index with 32 bits, below {INDEX_LIMIT:,}"
            )
        letters = "NR" if self.plain else "TC"
        return OperandLayout(letters[self.conjugated], layout.offset, layout.ld)


class Problem(NamedTuple):
    """C = A B, column-major: A is M x K, B is K x N, C is M x N."""

    m: int
    n: int
    k: int
    a: Operand
    b: Operand

    @classmethod
    def compact(cls, m: int, n: int, k: int) -> Problem:
        """Operands without gaps, none of them transposed."""
        return cls(m, n, k, Operand.compact("a", m, k), Operand.compact("b", k, n))

    @property
    def turned(self) -> Problem:
        """The transpose of C as the product of the transposes of B and A."""
        return Problem(self.n, self.m, self.k, self.b.turned, self.a.turned)


class Batch(NamedTuple):
    """Many products of the same sizes, whose results are adjacent.

    Attributes:
        number: products whose operands are at equal distances.
        steps: these distances for A and for B, in elements: 0 if all products share the matrix.
        starts: for each group of `number` products, the elements before its first A and B, in
            addition to the operands' offsets.
    """

    number: int
    steps: tuple[int, int]
    starts: tuple[tuple[int, int], ...]

    @classmethod
    def over(
        cls, shape: tuple[int, ...], steps_a: tuple[int, ...], steps_b: tuple[int, ...]
    ) -> Batch:
        """The products of an array of this shape. Dimensions with equal distances are merged.

        Args:
            shape: numbers of products.
            steps_a, steps_b: elements from one A, or B, to the next along each dimension.
        """
        merged = [(1, 0, 0)]  # from the innermost dimension to the outermost
        for size, a, b in zip(shape[::-1], steps_a[::-1], steps_b[::-1], strict=True):
            inner, x, y = merged[-1]
            if inner == 1 or size == 1 or (a, b) == (inner * x, inner * y):
                merged[-1] = (inner * size, x, y) if inner > 1 else (size, a, b)
            else:
                merged.append((size, a, b))
        (number, *steps), outer = merged[0], merged[:0:-1]
        starts = [(0, 0)]
        for size, a, b in outer:
            starts = [(x + i * a, y + i * b) for x, y in starts for i in range(size)]
        return cls(number, (steps[0], steps[1]), tuple(starts))

    @property
    def swapped(self) -> Batch:
        """With A and B exchanged."""
        return Batch(self.number, self.steps[::-1], tuple(start[::-1] for start in self.starts))

    def shared(self, problem: Problem) -> tuple[bool, bool] | None:
        """(A is shared, B is shared); None if the matrices of an operand that is not shared are not
        adjacent.
        """
        sizes = problem.m * problem.k, problem.k * problem.n
        adjacent = all(step in (0, size) for step, size in zip(self.steps, sizes, strict=True))
        if not adjacent or self.starts != ((0, 0),):
            return None
        return not self.steps[0], not self.steps[1]

    def launches(self) -> Iterator[tuple[tuple[int, int], Pairs]]:
        """For each launch of a kernel for batches, the elements before A and B, and what it
        multiplies.
        """
        a, b = self.steps
        for turn, (at_a, at_b) in enumerate(self.starts):
            for i in range(0, self.number, MAX_BATCH):
                pairs = Pairs(min(MAX_BATCH, self.number - i), turn * self.number + i, a, b)
                yield (at_a + i * a, at_b + i * b), pairs

    def products(self) -> Iterator[tuple[int, int]]:
        """For each product, the elements before A and B."""
        a, b = self.steps
        for at_a, at_b in self.starts:
            for i in range(self.number):
                yield at_a + i * a, at_b + i * b

    def aligned(self, a: OperandLayout, b: OperandLayout) -> tuple[OperandLayout, OperandLayout]:
        """Operands whose offset is the greatest common divisor of all offsets in the batch, so that
        tests of alignment hold for each product.
        """
        in_a, in_b = zip(*self.starts, strict=True)
        return (
            a._replace(offset=math.gcd(a.offset, self.steps[0], *in_a)),
            b._replace(offset=math.gcd(b.offset, self.steps[1], *in_b)),
        )


class Pass(NamedTuple):
    """One launch of a product.

    Attributes:
        kind: "transpose", "pad", "gemm", "fix-up" or "unpad".
        operand: what it makes: "A", "B" or "C".
        out: the layout of a matrix that is made for it; None if it writes to the result.
        workspace: additional floats of memory, for partial tiles.
    """

    kind: str
    operand: str
    out: Layout | None = None
    workspace: int = 0

    @property
    def floats(self) -> int:
        """Floats of memory that it needs in addition to the operands and the result."""
        return (self.out.room if self.out else 0) + self.workspace


def plan(
    spec: KernelSpec, params: Params, problem: Problem, features: frozenset[str] = frozenset()
) -> list[Pass]:
    """The passes of a product with a kernel, in their order, on a device with these features."""
    m, n, k = (
        round_up(size, multiple)
        for size, multiple in zip(problem[:3], spec.multiples(params), strict=True)
    )
    lda, ldb = spec.leading_dimensions(m, n, k, params)
    align_a, align_b = spec.alignment(params)
    passes = _prepare("A", problem.a.plain, problem.a.transposed, (m, k, lda), align_a)
    if spec.wants_transposed(params):
        passes += _prepare("B", problem.b.transposed, problem.b.plain, (n, k, ldb), align_b)
    else:
        passes += _prepare("B", problem.b.plain, problem.b.transposed, (k, n, ldb), align_b)
    whole = (m, n) == (problem.m, problem.n)
    passes.append(
        Pass("gemm", "C", None if whole else Layout.compact(m, n), spec.workspace(params))
    )
    if spec.needs_fixup(params, features):
        passes.append(Pass("fix-up", "C"))
    if not whole:
        passes.append(Pass("unpad", "C"))
    return passes


def _prepare(
    name: str,
    layout: Layout | None,
    transposed: Layout | None,
    required: tuple[int, int, int],
    alignment: int,
) -> list[Pass]:
    """The passes that give an operand the required rows, columns and leading dimension."""
    passes = []
    if layout is None:
        assert transposed is not None, "a matrix is row-major or column-major"
        ld = round_up(transposed.cols, alignment)
        layout = Layout.compact(transposed.cols, transposed.rows, ld)
        passes.append(Pass("transpose", name, layout))
    if not layout.supports(*required):
        _, cols, ld = required
        passes.append(Pass("pad", name, Layout.compact(ld, cols)))
    return passes


def footprint(problem: Problem, passes: list[Pass]) -> dict[str, int]:
    """The elements of each matrix of a product, by name: the operands, the result, and what the
    passes make.
    """
    names = {"A": problem.a.name, "B": problem.b.name, "C": "the result"}
    elements = {
        problem.a.name: problem.m * problem.k,
        problem.b.name: problem.k * problem.n,
        "the result": problem.m * problem.n,
    }
    for step in passes:
        if step.out:
            form = ", transposed" if step.kind == "transpose" else " in whole tiles"
            elements[names[step.operand] + form] = step.out.room
        if step.workspace:
            elements["the workspace for partial tiles"] = step.workspace
    return elements
