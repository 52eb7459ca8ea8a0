"""What one generated kernel computes and how: a frozen record, checked when it is made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..ladder import Limits, ParameterError
from ..ladder.spec import too_many_items, too_much_memory
from .elements import ELEMENTS, Element, widest_vector

#: Bytes that the 32 banks of local memory deliver at once.
BANKS_BYTES = 128

#: op(X) as in BLAS: N as stored, T transposed, C conjugated and transposed. R, conjugated only, is
#: not in BLAS, but row-major products need it; the letter is that of MKL's `omatcopy`.
OPERATIONS = ("N", "T", "C", "R")

#: Which sizes of C may end inside a tile.
EDGE_SIDES = ("none", "rows", "columns", "both")

#: What computes a block of C: a work-item, a warp, a warp or four of them with tensor cores.
UNITS = ("items", "warps", "tensor", "warpgroups")

#: Work-items of a warp along the rows and along the columns of its block of C.
WARP = (8, 4)

_FLAGS = (False, True)
_COPY_BYTES = (2, 4, 8, 16)  # sizes of a copy; those of 2 bytes are not asynchronous
_WIDEST_BYTES = 16  # the widest load and store of a work-item


@dataclass(frozen=True)
class Operand:
    """A or B in a schedule, with the names that it has in the text."""

    name: str  # "A" or "B"
    what: str  # "row" or "column", of C
    index: str  # "m" or "n", the index that it shares with C
    size: str  # "M" or "N"
    tile_side: str  # "TSM" or "TSN"
    ld: str  # "lda" or "ldb"
    side: int  # rows of A's tile, or columns of B's
    width: int  # elements in a load from global memory
    guarded: bool  # whether the matrix may end inside a tile along `index`
    conjugated: bool
    k_contiguous: bool  # whether neighbours in memory belong to consecutive steps of k
    pitch: int  # elements from one step of k to the next in its tile in local memory

    @property
    def in_vectors(self) -> bool:
        """Whether the vectors that are loaded stay vectors in a tile in which k comes first."""
        return self.width > 1 and not self.k_contiguous

    @property
    def spread(self) -> tuple[str, str]:
        """The position and the step of k in the tile that a work-item loads, as C, where e + tid
        numbers the loads: neighbouring work-items load neighbours in memory.
        """
        first = "(e + tid)" if self.width == 1 else f"(e + tid)*{self.width}"
        run = "TSK" if self.k_contiguous else self.tile_side  # contiguous elements
        inner, outer = f"{first}%{run}", f"{first}/{run}"
        return (outer, inner) if self.k_contiguous else (inner, outer)

    def element(self, position: str, step: str) -> str:
        """Return an element in global memory, in C: its row of A or column of B, and its step of
        k.
        """
        first, second = (position, step) if self.k_contiguous else (step, position)
        column = f"({first})" if " " in first else first
        return f"{self.name}[{column}*{self.ld} + {second}]"

    def conditions(self, position: str, step: str) -> str:
        """Return whether an element exists, in C: its position if it is guarded, and its step, if
        any.
        """
        conditions = []
        if self.guarded:
            conditions.append(f"{position} < {self.size}")
        if step:
            conditions.append(f"{step} < K")
        return " && ".join(conditions)


@dataclass(frozen=True)
class Schedule:
    """One kernel for C = alpha op(A) op(B), or with `beta` for C = alpha op(A) op(B) + beta C0.

    All matrices are column-major.

    Attributes:
        precision: a letter of `ELEMENTS`.
        trans_a, trans_b: op of each operand (see `OPERATIONS`).
        beta: whether a matrix C0 is read, multiplied by beta and added.
        tile: rows and columns of C per work-group.
        micro_tile: rows and columns of C per work-item.
        depth: steps of k in a tile of A or B in local memory.
        unroll: steps of k that the compiler unrolls.
        load_widths: elements of A and of B in a load from global memory. With local memory, each
            divides its operand's offset and leading dimension, and the strides of a batch.
        stages: buffers in local memory. "items": 1; 2 to fill one while the other is used; or 0,
            where work-items load vectors of neighbouring rows straight into registers, which
            suits CPUs. "warps" and "tensor": 2 to 8.
        edges: which sizes of C may end inside a tile: "none", "rows", "columns" or "both". Without
            stages such a size is at least that of a micro-tile.
        tail: whether K may end inside a step of `depth`.
        batch: whether a launch multiplies many pairs of matrices at constant strides.
        submatrix: whether C has an offset and a leading dimension, as a part of a larger matrix.
        wide: whether elements of C and C0 are counted with 64 bits instead of 32.
        unit: what computes a block of C. "items": each work-item, rows and columns spread over the
            tile. "warps": 32 work-items share a compact block. "tensor": they multiply it by
            tensor-core instructions, for float64 or float16. "warpgroups": four warps do, for
            float16. All but the first copy tiles asynchronously.
        split_k: work-groups that share a tile of C, each with part of the steps of k.
        store_width: rows of C in one store: 1, or `widest_store`, where M is a multiple.

    Raises:
        ParameterError: (a ValueError) with a sentence for each thing that is wrong.
    """

    precision: str = "s"
    trans_a: str = "N"
    trans_b: str = "N"
    beta: bool = False
    tile: tuple[int, int] = (64, 64)
    micro_tile: tuple[int, int] = (4, 4)
    depth: int = 16
    unroll: int = 4
    load_widths: tuple[int, int] = (1, 1)
    stages: int = 1
    edges: str = "none"
    tail: bool = False
    batch: bool = False
    submatrix: bool = False
    wide: bool = False
    unit: str = "items"
    split_k: int = 1
    store_width: int = 1

    def __post_init__(self) -> None:
        problems = list(self._invalid_values()) or list(self._contradictions())
        if problems:
            raise ParameterError("schedule: " + "; ".join(problems))

    @property
    def scheme(self) -> str:
        """Which module writes the main loop: "direct", "items", "warps" or "warpgroups"."""
        if self.unit != "items":
            return "warpgroups" if self.unit == "warpgroups" else "warps"
        return "items" if self.stages else "direct"

    @property
    def is_tensor(self) -> bool:
        """Whether tensor cores multiply."""
        return self.unit in ("tensor", "warpgroups")

    @property
    def feature(self) -> str:
        """The feature of devices that the unit is for, "tensor" or "warpgroups"; "" for all.

        Asynchronous copies came with tensor cores for TF32 and float16; warpgroups, and larger
        tensor cores for float64, with Hopper.
        """
        if self.unit == "items":
            return ""
        old = self.unit == "warps" or (self.unit == "tensor" and self.element.half)
        return "tensor" if old else "warpgroups"

    @property
    def copies(self) -> bool:
        """Whether tiles are copied into local memory as they are, asynchronously."""
        return self.unit != "items"

    @cached_property
    def a(self) -> Operand:
        """Operand A."""
        return self._operand(0, "row", self.trans_a, self.trans_a in "TC")

    @cached_property
    def b(self) -> Operand:
        """Operand B."""
        return self._operand(1, "column", self.trans_b, self.trans_b in "NR")

    def _operand(self, number: int, what: str, trans: str, k_contiguous: bool) -> Operand:
        name, size, side = "AB"[number], "MN"[number], self.tile[number]
        # longer rows against bank conflicts; where they are read as vectors, one more suffices
        padding = max(1, BANKS_BYTES // (self.element.sum_size * self.depth))
        if self.copies:
            padding = self.fragment if self.unit == "warps" else 0  # a swizzle for tensor cores
        return Operand(
            name=name,
            what=what,
            index=size.lower(),
            size=size,
            tile_side=f"TS{size}",
            ld=f"ld{name.lower()}",
            side=side,
            width=self.load_widths[number],
            guarded=self.edges in (f"{what}s", "both"),
            conjugated=trans in "CR",
            k_contiguous=k_contiguous,
            pitch=side + padding if k_contiguous else side,
        )

    @property
    def operands(self) -> tuple[Operand, Operand]:
        """A and B."""
        return self.a, self.b

    @property
    def element(self) -> Element:
        """The type of an element."""
        return ELEMENTS[self.precision]

    @property
    def signs(self) -> dict[str, str]:
        """The signs in a complex product a b that conjugation changes: of Im(a) Im(b), "yy", in the
        real part; of Re(a) Im(b), "xy", and of Im(a) Re(b), "yx", in the imaginary part.
        """
        a, b = self.a.conjugated, self.b.conjugated
        return {"yy": "+" if a != b else "-", "xy": "-" if b else "+", "yx": "-" if a else "+"}

    @property
    def fragment(self) -> int:
        """Consecutive rows, or columns, of a warp's work-item: 16 bytes, or as the MMA needs."""
        return 2 if self.is_tensor else max(1, _WIDEST_BYTES // self.element.sum_size)

    @property
    def widest_store(self) -> int:
        """Rows of C in 16 bytes, where a unit can store so many at once."""
        if self.is_tensor:
            return _WIDEST_BYTES // self.element.result.itemsize if self.element.half else 1
        return self.fragment if self.unit == "warps" else 1

    @property
    def mma_depth(self) -> int:
        """Steps of k in an instruction of the tensor cores."""
        return 16 if self.element.half else 4

    @property
    def work_items(self) -> int:
        """Work-items of a work-group."""
        return self.tile[0] // self.micro_tile[0] * (self.tile[1] // self.micro_tile[1])

    @property
    def local_size(self) -> tuple[int, int]:
        """The shape of a work-group: along the rows and columns of C, or for warps one row."""
        if self.copies:
            return self.work_items, 1
        return self.tile[0] // self.micro_tile[0], self.tile[1] // self.micro_tile[1]

    @property
    def local_memory(self) -> int:
        """Bytes of local memory of a work-group."""
        size = self.element.size if self.copies else self.element.sum_size
        return self.stages * self.depth * (self.a.pitch + self.b.pitch) * size

    @property
    def name(self) -> str:
        """All fields in one word: no two schedules share it."""
        fields = {
            f"{self.precision}gemm": True,
            f"{self.trans_a}{self.trans_b}": True,
            "beta": self.beta,
            f"{self.tile[0]}x{self.tile[1]}x{self.depth}": True,
            f"{self.micro_tile[0]}x{self.micro_tile[1]}": True,
            f"unroll{self.unroll}": True,
            f"width{self.load_widths[0]}x{self.load_widths[1]}": True,
            f"stages{self.stages}": True,
            "rows": self.a.guarded,
            "columns": self.b.guarded,
            "tail": self.tail,
            "batch": self.batch,
            "submatrix": self.submatrix,
            "wide": self.wide,
            self.unit: self.unit != "items",
            f"splitk{self.split_k}": self.split_k > 1,
            f"store{self.store_width}": self.store_width > 1,
        }
        return "_".join(field for field, holds in fields.items() if holds)

    def problems(self, limits: Limits) -> list[str]:
        """Return a sentence for each limit of a device that the kernel exceeds."""
        problems = [*too_many_items(self.local_size, limits)]
        problems += too_much_memory(self.local_memory, limits)
        if self.copies and not limits.asynchronous:
            problems.append(f"{limits.name} has no asynchronous copies (compute capability 8.0)")
        if self.feature == "warpgroups" and not limits.warpgroups:
            problems.append(f"{limits.name} has no tensor cores as in compute capability 9.0")
        numbers = max(self.load_widths) * self.element.components
        widest = widest_vector(self.precision, limits)
        if numbers > widest:
            problems.append(
                f"{limits.name} takes vectors of {widest} numbers at most, not {numbers}"
            )
        return problems

    def _invalid_values(self) -> Iterator[str]:
        """Yield a sentence for each value that is not allowed, whatever the others are."""
        choices = {
            "precision": tuple(ELEMENTS),
            "trans_a": OPERATIONS,
            "trans_b": OPERATIONS,
            "edges": EDGE_SIDES,
            "unit": UNITS,
            "stages": (0, 1, 2) if self.unit == "items" else tuple(range(2, 9)),
            **dict.fromkeys(("beta", "tail", "batch", "submatrix", "wide"), _FLAGS),
        }
        for name, allowed in choices.items():
            value = getattr(self, name)
            if (type(value), value) not in [(type(one), one) for one in allowed]:
                yield f"{name} must be one of {', '.join(map(repr, allowed))}, not {value!r}"
        for name in ("tile", "micro_tile", "load_widths"):
            value = getattr(self, name)
            if not isinstance(value, tuple) or len(value) != 2 or not all(map(_is_count, value)):
                yield f"{name} must be two integers from 1 to 65536, not {value!r}"
        for name in ("depth", "unroll", "split_k", "store_width"):
            value = getattr(self, name)
            if not _is_count(value):
                yield f"{name} must be an integer from 1 to 65536, not {value!r}"

    def _contradictions(self) -> Iterator[str]:
        """Yield a sentence for each value that contradicts another."""
        for x in self.operands:
            if x.conjugated and self.element.components == 1:
                trans = self.trans_a if x.name == "A" else self.trans_b
                yield (
                    f"trans_{x.name.lower()}={trans!r} conjugates, but precision "
                    f"{self.precision!r} is real; 'T' or 'N' is the same"
                )
        if self.batch and (self.beta or self.submatrix or self.split_k > 1):
            yield "batch=True excludes beta=True, submatrix=True and split_k > 1"
        if self.split_k > 1 and not self.copies:
            yield f"split_k={self.split_k} needs another unit than 'items'"
        if self.store_width > 1 and (self.beta or self.submatrix):
            yield f"store_width={self.store_width} excludes beta=True and submatrix=True"
        if self.store_width not in (1, self.widest_store):
            yield (
                f"store_width={self.store_width} must be 1 or {self.widest_store} for unit="
                f"{self.unit!r} and precision={self.precision!r}"
            )
        if self.depth % self.unroll:
            yield f"depth={self.depth} is not a multiple of unroll={self.unroll}"
        scheme = {
            "direct": self._direct_contradictions,
            "warps": self._warp_contradictions,
            "warpgroups": self._warpgroup_contradictions,
        }.get(self.scheme)
        if scheme:
            yield from scheme()
        counts = WARP if self.copies else (1, 1)
        axes = zip(("rows", "columns"), self.tile, self.micro_tile, counts, strict=True)
        uneven = [
            (what, side, micro, count)
            for what, side, micro, count in axes
            if side % (micro * count)
        ]
        for what, side, micro, count in uneven:
            yield f"a tile of {side} {what} is not a multiple of {count} micro-tiles of {micro}"
        if self.scheme != "direct" and not uneven:
            for x in self.operands:
                yield from self.load_conflicts(x, x.width)

    def _direct_contradictions(self) -> Iterator[str]:
        width = self.load_widths[0]
        numbers = width * self.element.components
        if numbers == 1 or 16 % numbers:
            yield f"load_widths: stages=0 needs vectors, and OpenCL C has none of {numbers} numbers"
        if self.micro_tile[0] % width:
            yield f"micro_tile: {self.micro_tile[0]} rows do not consist of vectors of {width}"
        if (self.depth, self.unroll, self.load_widths[1], self.tail) != (1, 1, 1, False):
            yield "stages=0 needs depth=1, unroll=1, a load width of 1 for B, and tail=False"

    def _warp_contradictions(self) -> Iterator[str]:
        if self.unit == "tensor" and self.element.real != "double" and not self.element.half:
            yield f"unit='tensor' needs precision 'd', 'z', 'h' or 'sh', not {self.precision!r}"
        if self.unit == "warps" and self.element.half:
            yield f"unit='warps' copies 4 bytes or more, but precision is {self.precision!r}"
        columns = 4 if self.element.half else self.fragment
        axes = zip(("rows", "columns"), self.micro_tile, (self.fragment, columns), strict=True)
        for what, side, multiple in axes:
            if side % multiple:
                yield f"a micro-tile of {side} {what} is not a multiple of {multiple}"
        period = 2 * self.mma_depth if self.unit == "tensor" else 2
        if self.unit == "tensor" and self.precision == "d" and self.depth > period:
            period = 16  # the swizzle exchanges 16 steps (see `warps`)
        if self.depth % period or self.unroll != self.depth:
            yield f"depth={self.depth} must be unroll={self.unroll} and a multiple of {period}"

    def _warpgroup_contradictions(self) -> Iterator[str]:
        if not self.element.half:
            yield f"unit='warpgroups' needs precision 'h' or 'sh', not {self.precision!r}"
        if self.tile[0] % 64 or self.tile[1] > 256 or self.tile[1] % 16:
            yield f"a tile of {self.tile} is none of 64 n rows, and 16 n columns up to 256"
        if self.micro_tile != (2, self.tile[1] // 4):
            yield f"micro_tile={self.micro_tile} must be 2 rows, and a quarter of the columns"
        if self.depth not in (16, 32, 64) or self.unroll != self.depth:
            yield f"depth={self.depth} must be unroll={self.unroll} and 16, 32 or 64"

    def load_conflicts(self, x: Operand, width: int) -> Iterator[str]:
        """Yield sentences that say why the work-items cannot load an operand's tile in such
        vectors.
        """
        run = self.depth if x.k_contiguous else x.side
        if self.copies and self.element.half and run % 64 and run & (run - 1):
            rule = "are neither a power of 2 nor a multiple of 64"
            yield f"{run} contiguous elements of {x.name} {rule}"
        if 16 % (width * self.element.components):
            yield f"load_widths: OpenCL C has no vector of {width} elements of {self.precision!r}"
        if run % width:
            yield f"load_widths: {width} does not divide {run} contiguous elements of {x.name}"
        if self.copies and width * self.element.size not in _COPY_BYTES:
            yield f"load_widths: no asynchronous copy takes {width} elements of {self.precision!r}"
        if self.unit == "warps" and x.k_contiguous and width > 1:
            yield f"load_widths: {x.name} is transposed while it is copied, element by element"
        if x.side * self.depth % (width * self.work_items):
            yield (
                f"load_widths: {self.work_items} work-items cannot share the {x.side} x "
                f"{self.depth} elements of {x.name}'s tile evenly in loads of {width}"
            )


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 65536
