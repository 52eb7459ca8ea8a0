"""Where the elements of arrays and matrices are in memory. No device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..generate.tiles import OperandLayout

#: Where 32-bit indices end. Generated and packed kernels count the elements of a result with 64
#: bits from here on, production kernels those of every matrix.
INDEX_LIMIT = 2**31


def is_wide(elements: int) -> bool:
    """Return whether so many elements need 64-bit indices."""
    return elements >= INDEX_LIMIT


def check_indices(spans: Mapping[str, int]) -> None:
    """Reject matrices, by name, that span more elements than a kernel counts with 32 bits."""
    for name, elements in spans.items():
        if is_wide(elements):
            raise ValueError(
                f"{name} spans {elements:,} elements; this kernel indexes it with 32 bits, below "
                f"{INDEX_LIMIT:,}"
            )


class Slot(NamedTuple):
    """Memory that a plan receives when it runs: an argument, or temporary memory."""

    number: int


#: The slots of the arrays of a product; those of temporary memory follow.
A, B, C0, OUT = ARGUMENTS = tuple(map(Slot, range(4)))


class Layout(NamedTuple):
    """The layout of an array in memory."""

    dtype: np.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # bytes from one element to the next along each dimension
    offset: int  # bytes before the first element
    size_bytes: int  # of the whole buffer

    @classmethod
    def compact(cls, dtype: np.dtype, shape: tuple[int, ...]) -> Layout:
        """Return the layout of a row-major array without gaps."""
        strides, size = [], dtype.itemsize
        for length in reversed(shape):
            strides.append(size)
            size *= length
        return cls(dtype, shape, tuple(reversed(strides)), 0, size)

    @property
    def swapped(self) -> Layout:
        """The layout with its last two dimensions swapped."""
        (*outer, m, n), (*steps, down, across) = self.shape, self.strides
        return self._replace(shape=(*outer, n, m), strides=(*steps, across, down))

    def with_axis(self, axis: int) -> Layout:
        """Add a dimension of one element: a vector becomes a row or a column."""
        shape, strides = list(self.shape), list(self.strides)
        shape.insert(axis, 1)
        strides.insert(axis, self.dtype.itemsize)
        return self._replace(shape=tuple(shape), strides=tuple(strides))

    def steps(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return elements from a matrix to the next along each dimension of a broadcast shape."""
        strides = [
            0 if size == 1 else stride // self.dtype.itemsize
            for size, stride in zip(self.shape[:-2], self.strides[:-2], strict=True)
        ]
        return (*(0 for _ in range(len(shape) - len(strides))), *strides)

    @property
    def reach(self) -> tuple[int, int]:
        """The first and the last byte of the elements in the buffer."""
        steps = [(size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True)]
        first = self.offset + sum(s for s in steps if s < 0)
        return first, self.offset + sum(s for s in steps if s > 0) + self.dtype.itemsize - 1

    def check_inside(self, name: str) -> None:
        """Reject a device array outside its buffer, or at bytes that are no multiples of an
        element: PyOpenCL makes arrays of any shape, offset and strides.
        """
        if 0 in self.shape:
            return
        (first, last), itemsize = self.reach, self.dtype.itemsize
        if first < 0 or last >= self.size_bytes:
            raise ValueError(
                f"{name} takes bytes {first:,} to {last:,} of its buffer, which has only "
                f"{self.size_bytes:,}"
            )
        steps = [s for size, s in zip(self.shape, self.strides, strict=True) if size > 1]
        if any(distance % itemsize for distance in (self.offset, *steps)):
            raise ValueError(
                f"{name} has the offset {self.offset} and the strides {self.strides}, in bytes; "
                f"they must be multiples of the {itemsize} bytes of an element"
            )


#: The layouts of a, b, c and out; None for an absent array.
Layouts = tuple[Layout, Layout, Layout | None, Layout | None]


def check_apart(name: str, x: Layout | np.ndarray) -> None:
    """Reject an array whose elements share memory."""
    span = x.dtype.itemsize
    dimensions = zip(map(abs, x.strides), x.shape, strict=True)
    for stride, size in sorted(pair for pair in dimensions if pair[1] > 1):
        if stride < span:
            raise ValueError(
                f"{name} has the shape {x.shape} and the strides {x.strides}, so its elements "
                "share memory; give another array"
            )
        span += stride * (size - 1)


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
        """Return a column-major matrix that fills its buffer; its columns may be `ld` elements
        apart.
        """
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
        """Return whether a kernel may read it as column-major, from the start of its buffer on."""
        inside = self.across == self.rows or self.room >= ld * cols  # behind the last column, too
        same = (self.rows, self.cols) == (rows, cols) and (cols == 1 or self.across == ld)
        return self.by_columns and self.offset == 0 and same and inside

    def part(self, row: int, column: int, rows: int, cols: int) -> Matrix:
        """Return a rectangle of it."""
        moved = self.moved(row * self.down + column * self.across)
        return moved._replace(rows=rows, cols=cols)

    def moved(self, elements: int) -> Matrix:
        """Return the matrix that begins so many elements after this one, in the same buffer."""
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

    @classmethod
    def of(cls, name: str, x: Layout, buffer: Any, operation: str = "N") -> Matrix:
        """Return the first matrix of an array, transposed or conjugated as `operation` says. Raise
        ValueError if no dimension is contiguous.
        """
        itemsize, (rows, cols) = x.dtype.itemsize, x.shape[-2:]
        down, across = (stride // itemsize for stride in x.strides[-2:])
        # a single row or column has any stride
        down, across = cols if rows == 1 else down, rows if cols == 1 else across
        check_indices({f"a row or column of {name}": max(down, across)})
        offset, room = x.offset // itemsize, x.size_bytes // itemsize
        conjugated = operation == "C" and x.dtype.kind == "c"
        matrix = cls(rows, cols, down, across, offset, room, buffer, name, conjugated)
        if not (matrix.by_columns or matrix.T.by_columns):
            raise ValueError(
                f"{name} has the strides {x.strides}; one dimension of a device array must be "
                "contiguous"
            )
        return matrix if operation == "N" else matrix.T


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
        """Return the products of an array of this shape, with the distances of A and of B along
        each dimension. Dimensions with equal distances are merged.
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
        """Yield for each launch, of at most `most` products: the elements before its first A and B,
        the results before its first one, and how many products it computes.
        """
        a, b = self.steps
        for turn, (at_a, at_b) in enumerate(self.starts):
            for i in range(0, self.number, most):
                yield at_a + i * a, at_b + i * b, turn * self.number + i, min(most, self.number - i)
