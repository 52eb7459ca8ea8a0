"""A product: its options, scalars, types and matrices in memory, column-major. No device.

`Options` are what a caller may choose, `Operation` adds the scalars. `validate` makes a `Product`
of an operation and the layouts of its arrays. `passes` lists the launches of a kernel of the
catalog for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from math import prod
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from ..generate import candidates, tiles
from ..generate.tiles import OperandLayout
from ..ladder import KernelSpec, Key, catalog, find
from ..ladder.spec import Params, round_up
from .layout import C0, OUT, A, B, Batch, Layout, Layouts, Matrix, check_apart, is_wide

#: Values of `kernel` that name no kernel of the catalog: the fastest one, a generated one, and the
#: one with packed operands.
AUTO, FAMILY, PACKED = "auto", "family", "packed"
#: Values of `edges`: those of kernels of the catalog, and "split", for generated kernels.
Edges = Literal["pad", "guard", "shift", "auto", "split"]
EDGE_POLICIES: tuple[Edges, ...] = get_args(Edges)
#: The values of `edges` that each of these supports.
SUPPORTED_EDGES = {AUTO: EDGE_POLICIES, FAMILY: ("auto", "guard", "split"), PACKED: ("auto",)}

#: Products in one launch at most: NVIDIA's devices count no further in the third dimension.
MAX_BATCH = 65535
#: The largest m, n and k: kernels add the side of a tile or of a work-item's share to them.
LONGEST = 2**30


class Options(NamedTuple):
    """The options of a product, valid and hashable."""

    kernel: Key = AUTO  # or "family" (generated), "packed", or a kernel of the catalog
    params: tuple[tuple[str, int], ...] | None = (
        None  # all parameters of the kernel; None for its defaults
    )
    edges: str = "auto"  # or "pad", "guard", "shift" or "split"
    precision: str = "float32"  # or "tf32" or "tf32x3"

    def __str__(self) -> str:
        """Return the options that are set, as a caller writes them."""
        options = {"kernel": self.kernel, "edges": self.edges, "precision": self.precision}
        usual = {"kernel": AUTO, "edges": "auto", "precision": "float32"}
        chosen = [f"{name}={value!r}" for name, value in options.items() if value != usual[name]]
        return ", ".join(chosen) or f"kernel={AUTO!r}"

    @classmethod
    def of(
        cls, kernel: Any = AUTO, params: Any = None, edges: Any = "auto", precision: Any = "float32"
    ) -> Options:
        """Return the options of a caller. Raise TypeError, ValueError or ParameterError for what is
        not allowed, or contradicts something else.
        """
        are_names = params is None and type(kernel) is type(edges) is type(precision) is str
        if are_names and (kernel, edges, precision) == (AUTO, "auto", "float32"):
            return PLAIN
        _check_word("edges", edges, EDGE_POLICIES)
        _check_word("precision", precision, tuple(candidates.IMPLIED))
        if params is not None and not isinstance(params, Mapping):
            raise TypeError(
                f"params must be a dictionary of parameters, not {type(params).__name__}: "
                f"{params!r}"
            )
        spec, in_tf32 = None, precision != "float32"
        if not isinstance(kernel, str) or kernel not in SUPPORTED_EDGES:
            spec = find(kernel)
            kernel = spec.number
        allowed = SUPPORTED_EDGES[kernel] if spec is None else ("auto", spec.edges)
        if kernel == AUTO and in_tf32:
            allowed = "auto", "guard"
        if edges not in allowed:
            raise ValueError(
                f"edges={edges!r}, but kernel={kernel!r} with precision={precision!r} supports "
                f"edges={' or '.join(map(repr, allowed))}"
            )
        is_tensor = spec is not None and spec.tensor
        if kernel != AUTO and in_tf32 != is_tensor:
            if is_tensor:
                type_and_hint = "TF32; it needs precision='tf32' or 'tf32x3'"
            else:
                able = " or ".join(repr(name) for name, one in catalog.items() if one.tensor)
                type_and_hint = f"float32; kernel='auto' or {able} multiplies in TF32"
            raise ValueError(
                f"precision={precision!r}, but kernel={kernel!r} multiplies in {type_and_hint}"
            )
        return cls(kernel, _complete(kernel, spec, params, precision), edges, precision)


#: No option is set.
PLAIN = Options()


def _check_word(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, not {value!r}")


def _complete(
    kernel: Key, spec: KernelSpec | None, params: Any, precision: str
) -> tuple[tuple[str, int], ...] | None:
    """Return all parameters of a kernel, or None to choose them for device and product."""
    if kernel in (AUTO, PACKED):
        if params is not None:
            raise ValueError(
                f"params={dict(params)!r}, but kernel={kernel!r} has no parameters; "
                "kernel=3 or kernel='family' has some"
            )
        return None
    if spec is None:
        return None if params is None else tuple(tiles.complete_tile(dict(params)).items())
    if params is not None:
        spec.complete(params)  # rejects names and values
    implied = candidates.implied(precision, kernel)
    if implied:
        params = {**implied, **(params or {})}
    for name, value in implied.items():
        if name != "EVERY" and params[name] != value:  # how often sums are moved is free
            raise ValueError(
                f"params has {name}={params[name]}, but precision={precision!r} means "
                f"{name}={value}"
            )
    return None if params is None else tuple(spec.complete(params).items())


class Product(NamedTuple):
    """C = alpha A B + beta C0; A is M x K, B is K x N, C and C0 are M x N."""

    a: Matrix
    b: Matrix
    c: Matrix
    alpha: float | complex = 1.0
    beta: float | complex = 0.0
    before: Matrix | None = None  # C0, if beta is not 0; it may be in the memory of C
    batch: Batch | None = None  # if there are several products: the matrices are the first ones
    dtype: np.dtype = np.dtype(np.float32)  # of A and B
    result: np.dtype = np.dtype(np.float32)  # of C and C0
    options: Options = Options()
    shape: tuple[int, ...] = ()  # of the whole result
    #: The matrices of a result to which kernels cannot write: the products are copied there.
    gaps: tuple[Matrix, ...] = ()

    @classmethod
    def compact(
        cls, m: int, n: int, k: int, a: Any = None, b: Any = None, c: Any = None
    ) -> Product:
        """Return column-major matrices without gaps, in these buffers."""
        left, right = Matrix.compact(m, k, a, "a"), Matrix.compact(k, n, b, "b")
        return cls(left, right, Matrix.compact(m, n, c), shape=(n, m))

    @property
    def sizes(self) -> tuple[int, int, int]:
        """M, N and K."""
        return self.a.rows, self.b.cols, self.a.cols

    @property
    def multiplies(self) -> bool:
        """Whether A and B are read: alpha and no size is 0."""
        return self.alpha != 0 and 0 not in (*self.sizes, *self.shape)

    @property
    def swapped(self) -> Product:
        """The transpose of C as the product of the transposes of B and A.

        A row-major matrix is its column-major transpose, without a copy: so this makes a row-major
        product column-major.
        """
        before, batch = self.before and self.before.T, self.batch
        if batch:
            starts = tuple(start[::-1] for start in batch.starts)
            batch = Batch(batch.number, batch.steps[::-1], starts)
        return self._replace(a=self.b.T, b=self.a.T, c=self.c.T, before=before, batch=batch)

    def part(self, row: int, column: int, rows: int, cols: int) -> Product:
        """Return the product that computes a rectangle of C."""
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


class Operation(NamedTuple):
    """alpha op(a) op(b) + beta c."""

    options: Options
    alpha: float | complex
    beta: float | complex
    ta: str  # op(a): "N" as it is, "T" transposed, "C" conjugated and transposed
    tb: str
    result: np.dtype  # the type of the result


def validate(do: Operation, layouts: Layouts, in_place: bool) -> Product:
    """Return the column-major product of row-major arrays; `in_place` if c and the result are the
    same memory. Raise ValueError for shapes that do not match, or arrays that kernels cannot read.
    """
    for name, x in zip(("a", "b", "c", "out"), layouts, strict=True):
        if x is not None:
            x.check_inside(name)
    a, b, c, out = layouts
    is_row, is_column = len(a.shape) == 1, len(b.shape) == 1
    a, b = a.with_axis(0) if is_row else a, b.with_axis(1) if is_column else b
    m, n, k, outer = _shapes(do, a, b, c)
    shape = (*outer, *(() if is_row else (m,)), *(() if is_column else (n,)))
    if out is not None and out.shape != shape:
        raise ValueError(f"out has the shape {out.shape}, but the product has {shape}")
    batch, elements = None, prod(shape)
    gaps = _gaps(out, is_row, is_column) if out and elements else ()
    if prod(outer) > 1:
        batch = Batch.over(outer, a.steps(outer), b.steps(outer))
        is_countable = not is_wide(max(elements, prod(a.shape)))
        if is_countable and not gaps and elements and _is_one_matrix(a, b, do.ta):
            m, batch = elements // n, None
            a = a._replace(shape=(m, k), strides=a.strides[-2:])
    left, right, before = Matrix.compact(m, k), Matrix.compact(k, n), None
    if elements and k and do.alpha:
        left, right = Matrix.of("a", a, A, do.ta), Matrix.of("b", b, B, do.tb)
    if elements and c and do.beta:
        before = Matrix.of("c", c, OUT if in_place else C0)
    product = Product(
        left,
        right,
        Matrix.compact(n, m, None if gaps else OUT).T,  # row-major
        do.alpha,
        do.beta,
        before,
        batch,
        a.dtype,
        do.result,
        do.options,
        shape,
        gaps,
    )
    return product.swapped


def _shapes(
    do: Operation, a: Layout, b: Layout, c: Layout | None
) -> tuple[int, int, int, tuple[int, ...]]:
    """Return m, n and k of op(a) op(b), which is m x n, and the dimensions before the matrices,
    broadcast. Raise ValueError for shapes that do not match.
    """
    ta, tb = do.ta, do.tb
    (m, k) = a.shape[-2:] if ta == "N" else a.shape[:-3:-1]
    (k2, n) = b.shape[-2:] if tb == "N" else b.shape[:-3:-1]
    if k != k2:
        raise ValueError(
            f"a is {m} x {k} and b is {k2} x {n}{'' if ta == tb == 'N' else ' after transposing'}: "
            f"the columns of a ({k}) must be as many as the rows of b ({k2})"
        )
    if c is not None and c.shape != (m, n):
        raise ValueError(f"c has the shape {c.shape}, expected {(m, n)}")
    try:
        outer = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise ValueError(
            f"a has the shape {a.shape} and b has {b.shape}: the dimensions before the last two "
            "must be equal, or 1, or left out"
        ) from None
    for name, size in {"m": m, "n": n, "k": k}.items():
        if size > LONGEST:
            raise ValueError(f"{name}={size:,}, but kernels count only up to {LONGEST:,}")
    return m, n, k, outer


def _is_one_matrix(a: Layout, b: Layout, ta: str) -> bool:
    """Return whether a batch is one product: a tall left matrix, and a single b."""
    rows = [pair for pair in zip(a.shape[:-1], a.strides[:-1], strict=True) if pair[0] > 1]
    adjacent = all(
        outer == size * stride for (_, outer), (size, stride) in zip(rows, rows[1:], strict=False)
    )
    return adjacent and ta == "N" and a.shape[-2] > 1 and prod(b.shape[:-2]) == 1


def _gaps(out: Layout, is_row: bool, is_column: bool) -> tuple[Matrix, ...]:
    """Return the matrices of a result to which kernels cannot write."""
    check_apart("out", out)
    if is_row:
        out = out.with_axis(len(out.shape) - (not is_column))
    if is_column:
        out = out.with_axis(len(out.shape))
    first, steps = Matrix.of("out", out, OUT), out.steps(out.shape[:-2])
    starts = [start for start, *_ in Batch.over(out.shape[:-2], steps, steps).launches(1)]
    adjacent = starts == [i * first.rows * first.cols for i in range(len(starts))]
    if adjacent and first.T.is_compact:
        return ()
    return tuple(first.moved(start) for start in starts)


class Pass(NamedTuple):
    """One launch of a product."""

    kind: str  # "transpose", "pad", "gemm", "fix-up" or "unpad"
    operand: str  # what it makes: "A", "B" or "C"
    out: Matrix | None = None  # the matrix that is made for it; None if it writes to the result


def passes(
    spec: KernelSpec, params: Params, product: Product, features: frozenset[str] = frozenset()
) -> list[Pass]:
    """Return the passes of a product with a kernel, in their order, on a device with these
    features.
    """
    sizes, multiples = product.sizes, spec.multiples(params)
    m, n, k = map(round_up, sizes, multiples)
    a, b = (product.a, m, k), (product.b, k, n)  # each with its rows and columns in whole tiles
    if spec.wants_transposed(params):
        b = product.b.T, n, k
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
