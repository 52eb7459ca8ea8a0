"""The routes of a product, and the choice among them.

A route multiplies with one kind of kernels: `Packed` (panels of A, on CPUs), `Ladder` (a kernel of
the catalog) or `Generated` (generated kernels). Each one either gives the reason why it does not
support a product, or has the fastest kernel of its kind, and appends its launches to a plan.
`choose` takes the first route that supports it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, prod
from typing import Any, NamedTuple

import numpy as np

from ..caches import cached
from ..generate import choice, tiles
from ..generate.precision import letter_of
from ..ladder import KernelSpec, Key, find
from ..ladder.spec import Params
from ..opencl import cl
from ..opencl.devices import Device
from ..opencl.launch import Kernel
from . import packed
from .plan import Plan
from .problem import MAX_BATCH, Matrix, Problem, check_indices, passes
from .request import AUTO, GENERATED, PACKED, PLAIN, Request

#: Multiply-adds that make each float32 product of a batch worth a launch on a GPU: on an H200, 512
#: cubed is not and 1024 cubed just is.
WORTH_A_LAUNCH_GPU = 2**30
#: The same on a CPU, whose generated kernels are much slower than the packed one.
WORTH_A_LAUNCH_CPU = 2**20


class Query(NamedTuple):
    """What a route is chosen for."""

    request: Request  # `Request.check_for` has passed
    dtype: np.dtype  # of the operands
    problem: Problem  # column-major, K positive
    device: Device

    @property
    def is_small(self) -> bool:
        """Whether the products of a batch are too small for separate launches."""
        least = WORTH_A_LAUNCH_GPU if self.device.kind == "GPU" else WORTH_A_LAUNCH_CPU
        return self.problem.batch is not None and prod(self.problem.sizes) < least


@dataclass(frozen=True)
class Route:
    """One kind of kernels that can multiply, with the fastest kernel of that kind."""

    kernel: Key  # what to pass as `kernel=`
    params: dict[str, int]
    whole_batch: bool = False  # whether `emit` multiplies all products of a batch

    @classmethod
    def of(cls, query: Query) -> Route | str:
        """The route for a product, or the reason why it does not support it."""
        raise NotImplementedError

    def emit(self, plan: Plan, problem: Problem) -> None:
        """Append the launches to the plan."""
        raise NotImplementedError


class Packed(Route):
    """A is first packed into panels: see `packed`."""

    @classmethod
    def of(cls, query: Query) -> Route | str:
        request, device = query.request, query.device
        if request.kernel != PACKED:
            if request != PLAIN:
                return f"{request} requires another kernel"
            if device.kind != "CPU":
                return "it is for CPUs"
            if query.dtype.kind != "f":
                return f"it multiplies real numbers, not {query.dtype}"
            if query.is_small:
                return "the products of the batch are too small for a launch each"
        blocks = packed.Blocks.of(device, query.dtype)
        return cls(PACKED, {"WIDTH": blocks.width, "KC": blocks.depth})

    def emit(self, plan: Plan, problem: Problem) -> None:
        packed.gemm(plan, problem)


@dataclass(frozen=True)
class Ladder(Route):
    """A kernel of the catalog, with passes before and after it where it needs them."""

    turned: bool = False  # it multiplies `Problem.turned`, and stores the transpose of the result

    @classmethod
    def of(cls, query: Query) -> Route | str:
        request, _, problem, device = query
        if request.kernel in (GENERATED, PACKED) or request.edges == "split":
            return f"{request} requires another kernel"
        if query.dtype != np.float32:
            return f"kernels of the catalog multiply float32, not {query.dtype}"
        if request == PLAIN:
            if device.kind == "CPU":
                return "on CPUs the packed kernel is faster"
            if problem.batch:
                chosen = next(_for_batch(query, problem.batch.number), None)
                if chosen:
                    return cls(*chosen, whole_batch=True)
                if query.is_small:
                    return (
                        "no kernel multiplies the batch in one launch, and its products are too "
                        "small for a launch each"
                    )
            if not problem.a.by_columns and not problem.b.by_columns:
                key, pairs = choice.kernel_for(device, problem.turned.sizes)
                spec, settings = find(key), dict(pairs)
                if spec.turns and not spec.needs_fixup(settings, device.features):
                    return cls(key, settings, turned=True)
        if request.kernel != AUTO:
            spec, params = find(request.kernel), request.params
            limits = device.limits
            settings = spec.fit(limits) if params is None else spec.validate(dict(params), limits)
        else:
            how = request.edges, request.precision
            key, pairs = choice.kernel_for(device, problem.sizes, *how)
            spec, settings = find(key), dict(pairs)
        fits = problem.batch is not None and _fits_batch(spec, settings, query)
        return cls(spec.number, settings, fits)

    def emit(self, plan: Plan, problem: Problem) -> None:
        spec, device, out, before = find(self.kernel), plan.device, problem.c, problem.before
        params, context = tuple(self.params.items()), plan.queue.context
        kernel = _compiled(self.kernel, params, device, context, self.turned)
        if spec.edges == "shift":
            kernel.global_size(*problem.sizes, names="nmk")  # rejects less than a tile
        if problem.batch and problem.shared:
            if not spec.wide:
                check_indices({x.name or "the result": x.span for x in problem[:3]})
            buffers = problem.a.buffer, problem.b.buffer, out.buffer
            number = problem.batch.number
            bound = kernel.batch(*problem.sizes, number, problem.shared, buffers)
            plan.launch("gemm", bound)
            return
        target = out
        if before and before.buffer is out.buffer:
            # C may only be overwritten once it has been read
            target = plan.new(Matrix.compact(out.rows, out.cols))
        if spec.tensor:
            plan.look_for_unsplittable(problem.a, problem.b)
        plan.multiply(kernel, problem._replace(c=target))
        if problem.alpha != 1 or before:
            y = plan.compact(before) if before else target
            plan.axpby(problem.alpha, target, problem.beta, y, out)


@dataclass(frozen=True)
class Generated(Route):
    """Kernels that are generated for the problem: any type, any layout, batches."""

    in_parts: bool = False  # C is cut: a launch for the whole tiles, and one for each edge
    seconds: float = inf  # the predicted time; inf if there is no prediction

    @classmethod
    def of(cls, query: Query) -> Route | str:
        request, batch, sizes = query.request, query.problem.batch, query.problem.sizes
        in_parts = request.edges == "split"
        if request.kernel not in (AUTO, GENERATED):
            return f"{request} requires another kernel"
        may_replace = in_parts or request == PLAIN and query.is_small
        if request.kernel == AUTO and query.dtype == np.float32 and not may_replace:
            return "for float32 the catalog has faster kernels"
        if request.params is not None:
            return cls(GENERATED, dict(request.params), not in_parts, in_parts)
        number = batch.number * len(batch.starts) if batch and not in_parts else 1
        tile, seconds = tiles.tile_for(query.device, letter_of(query.dtype), sizes, number)
        return cls(GENERATED, tile, not in_parts, in_parts, inf if in_parts else seconds)

    def emit(self, plan: Plan, problem: Problem) -> None:
        if not self.in_parts:
            plan.gemm(problem, self.params)
            return
        for x in tiles.cut(problem.sizes, self.params):
            plan.gemm(problem.part(x.row, x.column, x.rows, x.columns), x.tile)


#: In the order of preference.
ROUTES = (Packed, Ladder, Generated)


def choose(query: Query) -> Route:
    """The first route that supports the product. Raises ValueError with all reasons if there is
    none: `Request` rejects options that no route supports.
    """
    reasons = []
    for kind in ROUTES:
        answer = kind.of(query)
        if isinstance(answer, Route):
            return answer
        reasons.append(f"{kind.__name__}: {answer}")
    raise ValueError(f"no route supports this product with {query.request}: {'; '.join(reasons)}")


def emit(plan: Plan, request: Request, problem: Problem) -> None:
    """Append one product, or all of a batch, whose results are adjacent in `problem.c`."""
    route = choose(Query(request, plan.dtype, problem, plan.device))
    if problem.batch is None or route.whole_batch:
        route.emit(plan, problem)
        return
    c = problem.c
    target = plan.new(c)  # kernels write to the beginning of a buffer
    for at_a, at_b, i, _ in problem.batch.launches(1):
        a, b = problem.a.moved(at_a), problem.b.moved(at_b)
        route.emit(plan, problem._replace(a=a, b=b, c=target, batch=None))
        plan.copy(target.buffer, c.buffer, i * c.room, c.room)


def _for_batch(query: Query, number: int) -> Iterator[tuple[Key, dict[str, int]]]:
    """Kernels for a batch in one launch, fastest first; single loads where vectors do not fit."""
    sizes = query.problem.sizes
    for (key, pairs), *_ in choice.ranked(query.device, sizes, number=number):
        spec, params = find(key), dict(pairs)
        for settings in (params, params | {"WIDTH": 1} if "WIDTH" in params else params):
            rows, columns, _ = spec.tiles(settings)
            covered = rows <= sizes[0] and columns <= sizes[1]
            legal = covered and not spec.problems(settings, query.device.limits)
            if legal and _fits_batch(spec, settings, query):
                yield key, settings


def _fits_batch(spec: KernelSpec, params: Params, query: Query) -> bool:
    """Whether a kernel of the catalog can multiply all products in one launch, without passes."""
    problem = query.problem
    assert problem.batch is not None
    if spec.tensor or spec.workspace(params) or problem.shared is None:
        return False
    (only, *more) = passes(spec, params, problem, query.device.features)
    return problem.batch.number <= MAX_BATCH and not more and only.out is None


@cached(256)
def _compiled(
    key: Key, params: tuple[Any, ...], device: Device, context: cl.Context, turned: bool
) -> Kernel:
    return Kernel(find(key), dict(params), device, context, turned=turned)
