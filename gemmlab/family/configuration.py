"""What a kernel of the family is asked to do: one frozen record, checked when it is made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..catalog import Limits, ParameterError

#: Bytes that the 32 banks of local memory serve at once.
BANKS_BYTES = 128

#: What an operand may be: N as it is, T transposed, C conjugated and transposed, and R conjugated but not transposed,
#: which BLAS lacks and which a row-major product needs (the letter is that of MKL's `omatcopy`).
OPERATIONS = ("N", "T", "C", "R")

#: What may stick out of whole tiles.
EDGES = ("none", "rows", "columns", "both")

#: What computes a block of C: a work-item, a warp, or a warp with tensor cores.
UNITS = ("items", "warps", "tensor")

#: Work-items of a warp, down and across its block of C.
WARP = (8, 4)

_COPY_BYTES = (4, 8, 16)  # that an asynchronous copy may have


class Precision(NamedTuple):
    """What a letter of BLAS stands for.

    Attributes:
        dtype: NumPy's type of an element.
        real: OpenCL's type of its real part.
        parts: real numbers in an element: 1, or 2 for complex ones.
    """

    dtype: np.dtype
    real: str
    parts: int

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    def vector(self, width: int) -> str:
        """OpenCL's type of `width` neighbouring elements."""
        numbers = width * self.parts
        return self.real if numbers == 1 else f"{self.real}{numbers}"


PRECISIONS = {
    "s": Precision(np.dtype(np.float32), "float", 1),
    "d": Precision(np.dtype(np.float64), "double", 1),
    "c": Precision(np.dtype(np.complex64), "float", 2),
    "z": Precision(np.dtype(np.complex128), "double", 2),
}


def letter_of(dtype) -> str:
    """The letter of BLAS for a dtype of NumPy: s, d, c or z; KeyError for another."""
    return {precision.dtype: letter for letter, precision in PRECISIONS.items()}[np.dtype(dtype)]


@dataclass(frozen=True)
class Configuration:
    """One kernel for C = alpha op(A) op(B), or with `beta` for C = alpha op(A) op(B) + beta C0; all column-major.

    Attributes:
        precision: "s", "d", "c" or "z": float32, float64, complex64 or complex128.
        a, b: what happens to each operand: "N", "T", "C" or "R" (see `OPERATIONS`).
        beta: whether a matrix C0 is read, multiplied by beta and added. Without it, no C0 is read.
        tile: rows and columns of C that a work-group computes.
        micro_tile: rows and columns of C that a work-item computes.
        depth: steps of k that are loaded into local memory at a time.
        unroll: steps of k that the compiler lays out in one turn of its loop.
        widths: elements of A and of B that a work-item loads from global memory at once. Where it is more than 1 and
            local memory is used, views must begin, and their columns lie apart, by multiples of it.
        stages: 1 buffer in local memory, or 2, one to compute from while the other is filled; or 0, where each
            work-item loads what it needs itself, in vectors of neighbouring rows, which processors like best. Then
            depth, unroll and the width of B are 1, and sizes that may end inside a tile are no smaller than a
            micro-tile.
        edges: which sizes of C may end inside a tile: "none", "rows", "columns" or "both".
        tail: whether K may end inside a step of `depth`.
        batch: whether a launch multiplies many pairs of matrices, which lie at equal distances, without beta. Offsets
            and distances are multiples of the widths, as the columns are.
        part: whether C is a rectangle of a larger matrix, as in a product of several launches (see `split`).
        unit: how the work-items of a group share its tile. With "items" each has rows and columns all over it. With
            "warps" the 32 of a warp share one block, and read it as vectors; with "tensor" they multiply it by
            instructions for float64. Both copy tiles asynchronously, in 2 to 8 stages (see `warps`).
        shares: work-groups that share each tile of C. Each adds up a share of the steps of k (split-K), and the last
            one to finish adds up what they have (see `shares`). More than 1 for warps only, and not for a batch.
        stored: neighbouring rows of C that a work-item stores at once: 1, or for unit "warps" its `neighbours`. Then M
            is a multiple of them, and there is neither beta nor part.

    Raises:
        ParameterError: (a ValueError) with a sentence for each thing that does not fit.
    """

    precision: str = "s"
    a: str = "N"
    b: str = "N"
    beta: bool = False
    tile: tuple[int, int] = (64, 64)
    micro_tile: tuple[int, int] = (4, 4)
    depth: int = 16
    unroll: int = 4
    widths: tuple[int, int] = (1, 1)
    stages: int = 1
    edges: str = "none"
    tail: bool = False
    batch: bool = False
    part: bool = False
    unit: str = "items"
    shares: int = 1
    stored: int = 1

    def __post_init__(self) -> None:
        found = list(self._unknown()) or list(self._uneven())
        if found:
            raise ParameterError("configuration: " + "; ".join(found))

    def _unknown(self) -> Iterator[str]:
        """A sentence for each value that is none of those that there are."""
        choices = {
            "precision": tuple(PRECISIONS), "a": OPERATIONS, "b": OPERATIONS, "edges": EDGES, "unit": UNITS,
            "stages": (0, 1, 2) if self.unit == "items" else tuple(range(2, 9)),
            "beta": (False, True), "tail": (False, True), "batch": (False, True), "part": (False, True),
        }  # fmt: skip
        for name, allowed in choices.items():
            value = getattr(self, name)
            if not any(value is choice or (value == choice and type(value) is type(choice)) for choice in allowed):
                yield f"{name} must be one of {', '.join(map(repr, allowed))}, not {value!r}"
        for name in ("tile", "micro_tile", "widths"):
            value = getattr(self, name)
            if not isinstance(value, tuple) or len(value) != 2 or not all(map(_counts, value)):
                yield f"{name} must be two whole numbers from 1 to 65536, not {value!r}"
        for name in ("depth", "unroll", "shares", "stored"):
            if not _counts(getattr(self, name)):
                yield f"{name} must be a whole number from 1 to 65536, not {getattr(self, name)!r}"

    def _uneven(self) -> Iterator[str]:
        """A sentence for each thing that another does not divide."""
        for name, letter in (("a", self.a), ("b", self.b)):
            if letter in "CR" and self.parts == 1:
                yield f"{name}={letter!r} conjugates, but precision {self.precision!r} is real; 'T' or 'N' is the same"
        for what, side, part in zip(("rows", "columns"), self.tile, self.micro_tile, strict=True):
            if side % part:
                yield f"a tile of {side} {what} does not consist of micro-tiles of {part}"
        if self.batch and self.beta:
            yield "beta adds one matrix, and a batch has many; choose beta=False or batch=False"
        if self.batch and self.part:
            yield "the results of a batch follow each other without gaps; choose batch=False or part=False"
        if self.batch and self.shares > 1:
            yield f"a launch's third dimension counts shares or a batch's pairs: shares={self.shares} or batch=True"
        if self.unit == "items" and self.shares > 1:
            yield f"only warps share tiles; shares={self.shares} needs unit='warps' or unit='tensor'"
        if self.stored > 1 and (self.unit != "warps" or self.stored != self.neighbours or self.beta or self.part):
            words = f"beta={self.beta}, part={self.part}, unit={self.unit!r}, precision={self.precision!r}"
            yield f"stored={self.stored}: only warps store 16 bytes at once, without beta and part; this has {words}"
        if self.depth % self.unroll:
            yield f"depth={self.depth} is not a multiple of unroll={self.unroll}"
        if self.stages == 0:
            yield from self._undirect()
        elif self.unit != "items":
            yield from self._unwarped()
        elif all(side % part == 0 for side, part in zip(self.tile, self.micro_tile, strict=True)):
            for operand in "ab":
                yield from self._unshared(operand, self.width(operand))

    def _undirect(self) -> Iterator[str]:
        """A sentence for each thing that does not fit a kernel without local memory."""
        numbers = self.widths[0] * self.parts
        if numbers == 1 or 16 % numbers:
            yield f"widths: {numbers} numbers are no vector of OpenCL C, which a kernel without stages needs"
        if self.micro_tile[0] % self.widths[0]:
            yield f"a micro-tile of {self.micro_tile[0]} rows does not consist of vectors of {self.widths[0]}"
        if (self.depth, self.unroll, self.widths[1], self.tail) != (1, 1, 1, False):
            yield "without stages depth, unroll and the width of B are 1, and every K is served without a tail"

    def _unwarped(self) -> Iterator[str]:
        """A sentence for each thing that does not fit the blocks of warps."""
        if self.unit == "tensor" and PRECISIONS[self.precision].real != "double":
            yield f"unit='tensor' multiplies float64 and complex128, but precision {self.precision!r} is neither"
        whole = True
        for what, side, part, count in zip(("rows", "columns"), self.tile, self.micro_tile, WARP, strict=True):
            if side % (part * count):
                whole = False
                yield f"a tile of {side} {what} does not consist of blocks of {part * count}, {part} per work-item"
            if part % self.neighbours:
                yield f"a micro-tile of {part} {what} does not consist of groups of {self.neighbours}"
        turn = 8 if self.unit == "tensor" else 2
        if self.unit == "tensor" and self.precision == "d" and self.depth > turn:
            turn = 16  # steps of 16 change places, against bank conflicts: see `warps._swizzled`
        if self.depth % turn or self.unroll != self.depth:
            words = f"depth={self.depth} must be a multiple of {turn}, and unroll={self.unroll} as much"
            yield f"{words}: the steps of a warp take turns"
        if whole:
            for operand in "ab":
                yield from self._unshared(operand, self.width(operand))

    def _unshared(self, operand: str, width: int) -> Iterator[str]:
        """A sentence for each reason why loads of so many elements do not make up the operand's tile."""
        side = self.side(operand)
        run = self.depth if self.along_k(operand) else side
        if 16 % (width * self.parts):
            yield f"widths: no vector of OpenCL C holds {width} elements of precision {self.precision!r}"
        if run % width:
            yield f"widths: loads of {width} do not divide the {run} neighbours of {operand} in a tile"
        if self.unit != "items" and width * PRECISIONS[self.precision].size not in _COPY_BYTES:
            yield f"widths: no asynchronous copy takes {width} elements of precision {self.precision!r}"
        if self.unit == "warps" and self.along_k(operand) and width > 1:
            yield f"widths: {operand} is turned round while it is copied, which takes one element at a time"
        if side * self.depth % (width * self.items):
            yield (
                f"{self.items} work-items cannot share the {side} x {self.depth} elements of {operand}'s tile "
                f"evenly in loads of {width}"
            )

    # What follows.

    @property
    def parts(self) -> int:
        """Real numbers in an element."""
        return PRECISIONS[self.precision].parts

    @property
    def local_size(self) -> tuple[int, int]:
        """Work-items of a work-group: along the rows of C, and along its columns."""
        return self._shape if self.unit == "items" else (self.items, 1)

    @property
    def _shape(self) -> tuple[int, int]:
        return self.tile[0] // self.micro_tile[0], self.tile[1] // self.micro_tile[1]

    @property
    def items(self) -> int:
        """Work-items of a work-group in all."""
        return self._shape[0] * self._shape[1]

    @property
    def neighbours(self) -> int:
        """Rows, and columns, that a work-item of a warp has in a group: what 16 bytes hold, or the instruction."""
        return 2 if self.unit == "tensor" else max(1, 16 // PRECISIONS[self.precision].size)

    def type(self, width: int = 1) -> str:
        """OpenCL's type of `width` neighbouring elements."""
        return PRECISIONS[self.precision].vector(width)

    def zero(self, width: int = 1) -> str:
        """Zero in OpenCL C, as `width` elements."""
        real = "0.0f" if PRECISIONS[self.precision].real == "float" else "0.0"
        return real if width * self.parts == 1 else f"({self.type(width)})({real})"

    def operation(self, operand: str) -> str:
        """What happens to operand "a" or "b": "N", "T", "C" or "R"."""
        return self.a if operand == "a" else self.b

    def width(self, operand: str) -> int:
        """Elements of operand "a" or "b" in a load."""
        return self.widths["ab".index(operand)]

    def conjugates(self, operand: str) -> bool:
        """Whether the sign of the operand's imaginary parts changes."""
        return self.operation(operand) in "CR"

    def takes(self, operand: str, width: int) -> bool:
        """Whether the operand's tile could as well be loaded in loads of so many elements."""
        return not any(True for _ in self._unshared(operand, width))

    def side(self, operand: str) -> int:
        """Rows of A's tile, or columns of B's."""
        return self.tile["ab".index(operand)]

    def along_k(self, operand: str) -> bool:
        """Whether elements of the operand that are neighbours in memory belong to neighbouring steps of k."""
        return self.operation(operand) in ("TC" if operand == "a" else "NR")

    def guards(self, operand: str) -> bool:
        """Whether the rows of A, or the columns of B, may end inside a tile."""
        return self.edges in ("both", "rows" if operand == "a" else "columns")

    def row(self, operand: str) -> int:
        """Elements from one step of k to the next in the operand's tile in local memory.

        A tile that is filled along k is made longer: otherwise all work-items that store neighbouring steps of k
        would ask the same bank. Where rows are read as vectors, a vector more is enough; a tile for tensor cores
        exchanges places instead (see `warps.places`).
        """
        if not self.along_k(operand) or self.unit == "tensor":
            return self.side(operand)
        if self.unit == "warps":
            return self.side(operand) + self.neighbours
        return self.side(operand) + max(1, BANKS_BYTES // (PRECISIONS[self.precision].size * self.depth))

    @property
    def local_memory(self) -> int:
        """Bytes of local memory of a work-group."""
        return self.stages * self.depth * (self.row("a") + self.row("b")) * PRECISIONS[self.precision].size

    @property
    def name(self) -> str:
        """All that the configuration says, in one word: no two configurations share it."""
        words = [f"{self.precision}gemm", self.a + self.b, "beta" * self.beta]
        words += ["x".join(map(str, (*self.tile, self.depth))), "x".join(map(str, self.micro_tile))]
        words += [f"unroll{self.unroll}", f"width{self.widths[0]}x{self.widths[1]}", f"stages{self.stages}"]
        words += [{"none": "", "both": "rows_columns"}.get(self.edges, self.edges), "tail" * self.tail]
        words += ["batch" * self.batch, "part" * self.part, self.unit * (self.unit != "items")]
        words += [f"shares{self.shares}" * (self.shares > 1), f"stored{self.stored}" * (self.stored > 1)]
        return "_".join(word for word in words if word)

    def problems(self, limits: Limits) -> list[str]:
        """A sentence for each limit of a device that the kernel would exceed."""
        found = []
        if self.items > limits.work_group or any(
            n > most for n, most in zip(self.local_size, limits.per_dimension, strict=False)
        ):
            shape = " x ".join(map(str, self.local_size))
            found.append(f"work-groups of {shape} work-items are more than {limits.name} takes ({limits.work_group})")
        if self.local_memory > limits.local_memory:
            most = f"the {limits.local_memory:,} of {limits.name}"
            found.append(f"{self.local_memory:,} bytes of local memory are more than {most}")
        if self.unit != "items" and not limits.asynchronous:
            found.append(f"{limits.name} has no asynchronous copies (NVIDIA, from compute capability 8.0 on)")
        if self.unit == "tensor" and not limits.warpgroups:
            found.append(
                f"{limits.name} has no tensor cores that multiply 16 x 4 float64, as compute capability 9.0 has"
            )
        widest, allowed = max(self.widths) * self.parts, widest_vector(self.precision, limits)
        if widest > allowed:
            found.append(f"vectors of {widest} numbers are wider than {limits.name} takes ({allowed})")
        return found


def widest_vector(precision: str, limits: Limits) -> int:
    """How many numbers of a precision, a complex one counted as two, a vector may have on a device."""
    real_bytes = PRECISIONS[precision].size // PRECISIONS[precision].parts
    return min(limits.vector, limits.complex_bytes // real_bytes) if PRECISIONS[precision].parts == 2 else limits.vector


def _counts(value) -> bool:
    """Whether it is a whole number that can count something."""
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 65536
