"""The ways to multiply, and the one that a product takes.

A `Route` says what it appends to a plan. `choose` returns the first route that the request and the
device allow:

- `Packed`: on CPUs, float32 and float64;
- `Ladder`: a kernel of the catalog, float32 and TF32; for a batch in one launch if the matrices
  allow it;
- `Split`: generated kernels, up to four launches, one for each edge;
- `Generated`: a generated kernel, one launch, any type, any layout, batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import pyopencl as cl

from ..caches import cached
from ..catalog import KernelSpec, Key, find
from ..catalog.spec import Params
from ..generate import choice
from ..generate.written import View
from ..opencl.devices import Device
from ..opencl.launch import Kernel
from . import packed, split, trials
from .plan import Builder, Product, placed, view
from .problem import MAX_BATCH, Batch, Problem, plan
from .request import AUTO, FAMILY, PACKED, Request

#: Multiply-adds from which a float32 product of a batch is worth separate launches, by kernels of
#: the ladder, if they cannot multiply all of it in one launch: on an H200, 512 cubed is not and
#: 1024 cubed just is.
ALONE_GPU = 2**30
#: The same on a CPU, whose generated kernels are much slower than the packed one.
ALONE_CPU = 2**20
#: Tiles of the kernel with warp tiles for batches of matrices that are smaller than the tile that
#: was chosen.
_WARP_TILE = {"TSK": 16, "WPTM": 8, "WPTN": 8, "WARPM": 4, "BATCHES": 10, "SPLIT": 0, "DOWN": 1}
_SMALLER_TILES = ({"TSM": 128, "TSN": 64, **_WARP_TILE}, {"TSM": 64, "TSN": 64, **_WARP_TILE})


class Route(Protocol):
    """A way to multiply.

    Attributes:
        whole_batch: whether `emit` multiplies all products of a batch.
    """

    @property
    def whole_batch(self) -> bool:
        """See above."""

    def emit(self, builder: Builder, product: Product, batch: Batch | None) -> None:
        """Append what multiplies to the builder's plan."""


@dataclass(frozen=True)
class Packed:
    """Operands are packed first: see `packed`."""

    whole_batch: ClassVar[bool] = False

    def emit(self, builder: Builder, product: Product, batch: Batch | None) -> None:
        a, b = view(product.a, product.problem.a), view(product.b, product.problem.b)
        before = view(*product.before) if product.before else None
        out = View(product.out.buffer, product.out.layout.offset, 1, product.out.layout.ld)
        packed.gemm(builder, product.problem, a, b, (product.alpha, product.beta), before, out)


@dataclass(frozen=True)
class Generated:
    """A kernel that is generated for the problem.

    Attributes:
        tile: all parameters of the tile, or None for those that suit the sizes.
    """

    tile: dict[str, int] | None
    whole_batch: ClassVar[bool] = True

    def emit(self, builder: Builder, product: Product, batch: Batch | None) -> None:
        builder.gemm(product, self.tile, batch)


@dataclass(frozen=True)
class Split:
    """Generated kernels for whole tiles and for each edge: see `split`."""

    tile: dict[str, int] | None
    whole_batch: ClassVar[bool] = False

    def emit(self, builder: Builder, product: Product, batch: Batch | None) -> None:
        split.gemm(builder, product, self.tile)


@dataclass(frozen=True)
class Ladder:
    """A kernel of the catalog; where it is not one of a whole batch, with passes before and after
    it.

    Attributes:
        kernel: the kernel that multiplies.
        whole_batch: whether one launch multiplies all products of a batch.
    """

    kernel: Kernel
    whole_batch: bool = False

    def emit(self, builder: Builder, product: Product, batch: Batch | None) -> None:
        problem, a, b, alpha, beta, before, out = product
        if batch is not None and self.whole_batch:
            shared = batch.shared(problem)
            assert shared is not None, "see `fits_batch`"
            builder.launch(
                "gemm", self.kernel.batch(*problem[:3], batch.number, shared, (a, b, out.buffer))
            )
            return
        target = out
        if before and before[0] is out.buffer:  # C may only be overwritten once it has been read
            target = builder.new(out.layout)
        if self.kernel.spec.tensor:
            builder.look_for_unsplittable(placed(a, problem.a), placed(b, problem.b))
        builder.multiply(self.kernel, problem, a, b, target)
        if alpha != 1 or before:
            y = target
            if before:
                y = placed(*before)
                y = builder.compact(y) if before[1].plain else builder.transpose(y, out.layout)
            builder.axpby(alpha, target, beta, y, out)


def choose(
    request: Request,
    dtype: np.dtype,
    problem: Problem,
    batch: Batch | None,
    device: Device,
    context: cl.Context,
) -> Route:
    """The route of a product; `request.check_for` has passed.

    Args:
        problem: sizes and layouts, column-major; of a batch those of the first product. K may be 0.
        batch: the products, if there are several.
    """
    multiply_adds = problem.m * problem.n * problem.k
    plain = request.kernel == AUTO and (request.edges, request.precision) == ("auto", "float32")
    packs = (
        plain
        and device.kind == "CPU"
        and dtype.kind == "f"
        and (batch is None or multiply_adds >= ALONE_CPU)
    )
    if packs or request.kernel == PACKED:
        return Packed()
    tile = None if request.params is None else dict(request.params)
    if request.edges == "split":
        return Split(tile)
    if request.kernel == FAMILY or dtype != np.float32:
        return Generated(tile)
    if plain and batch is not None:
        route = _for_batch(problem, batch, device, context)
        if route or multiply_adds < ALONE_GPU:
            return route or Generated(None)
    kernel = _of_the_ladder(request, problem, plain, device, context)
    fits = (
        batch is not None
        and not kernel.turned
        and fits_batch(kernel.spec, kernel.params, device, problem, batch)
    )
    return Ladder(kernel, whole_batch=fits)


def _of_the_ladder(
    request: Request, problem: Problem, plain: bool, device: Device, context: cl.Context
) -> Kernel:
    """The kernel of the catalog that is requested, or the best one that is known."""
    if request.kernel != AUTO:
        return _kernel(request.kernel, request.params, device, context)
    if plain:
        without = _without_transposing(problem, device, context)
        if without:
            return without
    if request.edges == "auto" and trials.are_enabled():
        trials.try_out(device, problem[:3], request.precision)
    return _kernel(
        *choice.choose(device, problem[:3], request.edges, request.precision), device, context
    )


def _without_transposing(problem: Problem, device: Device, context: cl.Context) -> Kernel | None:
    """For two operands that can be read as their transposes alone: a kernel that multiplies these
    in the opposite order and stores the transpose of what it computes, which needs no pass. None if
    there is none, or for other operands.
    """
    if not problem.k or problem.a.plain or problem.b.plain:
        return None
    number, params = choice.choose(device, problem.turned[:3])
    spec = find(number)
    if not spec.turns or spec.needs_fixup(dict(params), device.features):
        return None
    return _kernel(number, params, device, context, True)


def _for_batch(
    problem: Problem, batch: Batch, device: Device, context: cl.Context
) -> Ladder | None:
    """The quickest kernel of the ladder for a batch in one launch, or None where none fits."""
    if not problem.k or device.kind != "GPU":
        return None
    for spec, params in _batch_candidates(problem, batch, device):
        rows, columns, _ = spec.tiles(params)
        fits = (
            rows <= problem.m and columns <= problem.n and not spec.problems(params, device.limits)
        )
        if fits and fits_batch(spec, params, device, problem, batch):
            return Ladder(
                _kernel(spec.number, tuple(params.items()), device, context), whole_batch=True
            )
    return None


def _batch_candidates(
    problem: Problem, batch: Batch, device: Device
) -> Iterator[tuple[KernelSpec, dict[str, int]]]:
    """Settings for a batch, the quickest first; with single floats where vectors do not divide the
    sizes.
    """
    order = choice.ranked_for_batch(device, problem[:3], batch.number)
    number, first = order[0]
    if "WARPM" in dict(first):
        order = [
            *order,
            *((number, tuple({**dict(first), **tile}.items())) for tile in _SMALLER_TILES),
        ]
    for number, pairs in order:
        params = dict(pairs)
        if "GROUPS" in params:
            params["GROUPS"] = 0  # a work-group per tile
        yield find(number), params
        if "WIDTH" in params:
            yield find(number), {**params, "WIDTH": 1}


def fits_batch(
    spec: KernelSpec, params: Params, device: Device, problem: Problem, batch: Batch
) -> bool:
    """Whether a kernel of the ladder can multiply all products in one launch: as they lie, without
    any other pass.
    """
    if not problem.k or spec.tensor or spec.workspace(params) or batch.shared(problem) is None:
        return False
    (only, *more) = plan(spec, params, problem, device.features)
    return batch.number <= MAX_BATCH and not more and only.out is None


@cached(256)
def _kernel(
    number: Key, params: tuple | None, device: Device, context: cl.Context, turned=False
) -> Kernel:
    spec = find(number)
    return Kernel(
        spec,
        spec.fit(device.limits) if params is None else dict(params),
        device,
        context,
        turned=turned,
    )
