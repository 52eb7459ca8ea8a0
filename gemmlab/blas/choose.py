"""The choice of a kernel for a product on a device.

There are three kinds of kernels: "Packed" (panels of A, on CPUs), "Ladder" (a kernel of the
catalog) and "Generated". For each, a function returns its fastest kernel for the product, or the
reason why it has none. `choose` takes the first kind that has one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf, prod

import numpy as np

from ..generate import candidates, tiles
from ..generate.elements import check_double, letter_of
from ..ladder import KernelSpec, Key, find
from ..ladder.spec import Params
from ..opencl.devices import Device
from .packed import Blocks
from .product import AUTO, FAMILY, MAX_BATCH, PACKED, PLAIN, Options, Product, passes

#: Multiply-adds that make each float32 product of a batch worth a launch on a GPU: on an H200, 512
#: cubed is not and 1024 cubed just is.
WORTH_A_LAUNCH_GPU = 2**30
#: The same on a CPU, whose generated kernels are much slower than the packed one.
WORTH_A_LAUNCH_CPU = 2**20


@dataclass(frozen=True)
class Choice:
    """The kernel that multiplies, and how."""

    kernel: Key  # "packed", "family", or a kernel of the catalog
    params: dict[str, int]
    whole_batch: bool = False  # whether one launch multiplies all products of a batch
    swapped: bool = False  # it multiplies `Product.swapped`, and stores the transpose of the result
    in_parts: bool = False  # C is cut: a launch for the whole tiles, and one for each edge
    seconds: float = inf  # the predicted time of a generated kernel; inf without a prediction


def choose(product: Product, device: Device) -> Choice:
    """Return the choice of the first kind of kernels that has one. Raise ValueError with all
    reasons if none has: `Options.of` rejects options that no kind supports.
    """
    reasons = []
    for name, choice_of in KINDS.items():
        answer = choice_of(product, device)
        if isinstance(answer, Choice):
            return answer
        reasons.append(f"{name}: {answer}")
    raise ValueError(f"no kernel supports this product with {product.options}: {reasons}")


def check_support(options: Options, dtype: np.dtype, device: Device) -> None:
    """Reject what this type of elements or this device does not support. The ValueError names the
    argument, and what would be possible.
    """
    if options.precision != "float32" and "tensor" not in device.features:
        raise ValueError(
            f"precision={options.precision!r} needs tensor cores for TF32 (NVIDIA's, compute "
            f"capability 8.0 or later); {device} has none: precision='float32' runs everywhere"
        )
    if dtype != np.float32:
        if options.precision != "float32":
            raise ValueError(f"precision={options.precision!r} is for float32, not for {dtype}")
        if options.kernel not in (AUTO, FAMILY, PACKED):
            raise ValueError(
                f"kernel {options.kernel} multiplies float32, not {dtype}; kernel='auto' and "
                "'family' support every type"
            )
        if options.edges not in ("auto", "guard", "split"):
            raise ValueError(
                f"edges={options.edges!r} is for float32, not for {dtype}; 'auto' is for all types"
            )
        check_double(letter_of(dtype), device)
    if options.kernel == PACKED and (dtype.kind != "f" or device.kind != "CPU"):
        raise ValueError(
            f"kernel='packed' multiplies real numbers on CPUs, not {dtype} on {device}; "
            "'auto' and 'family' support all types and devices"
        )


def _has_small_products(product: Product, device: Device) -> bool:
    """Return whether the products of a batch are too small for separate launches."""
    least = WORTH_A_LAUNCH_GPU if device.kind == "GPU" else WORTH_A_LAUNCH_CPU
    return prod(product.sizes) < least


def _packed(product: Product, device: Device) -> Choice | str:
    """Return the choice of the kernel for which A is packed into panels."""
    options = product.options
    if options.kernel != PACKED:
        if options != PLAIN:
            return f"{options} requires another kernel"
        if device.kind != "CPU":
            return "it is for CPUs"
        if product.dtype.kind != "f":
            return f"it multiplies real numbers, not {product.dtype}"
        if product.batch and _has_small_products(product, device):
            return "the products of the batch are too small for a launch each"
    blocks = Blocks.of(device, product.dtype)
    return Choice(PACKED, {"WIDTH": blocks.width, "KC": blocks.depth})


def _of_catalog(product: Product, device: Device) -> Choice | str:
    """Return the choice of a kernel of the catalog, with passes where it needs them."""
    options = product.options
    if options.kernel in (FAMILY, PACKED) or options.edges == "split":
        return f"{options} requires another kernel"
    if product.dtype != np.float32:
        return f"kernels of the catalog multiply float32, not {product.dtype}"
    if options == PLAIN:
        if device.kind == "CPU":
            return "on CPUs the packed kernel is faster"
        if product.batch:
            fastest = next(_for_batch(product, device, product.batch.number), None)
            if fastest:
                return Choice(*fastest, whole_batch=True)
            if _has_small_products(product, device):
                return (
                    "no kernel multiplies the batch in one launch, and its products are too "
                    "small for a launch each"
                )
        if not product.a.by_columns and not product.b.by_columns:
            key, pairs = candidates.kernel_for(device, product.swapped.sizes)
            spec, params = find(key), dict(pairs)
            if spec.turns and not spec.needs_fixup(params, device.features):
                return Choice(key, params, swapped=True)
    if options.kernel == AUTO:
        key, pairs = candidates.kernel_for(device, product.sizes, options.edges, options.precision)
        spec, params = find(key), dict(pairs)
    else:
        spec, limits = find(options.kernel), device.limits
        own = options.params
        params = spec.fit(limits) if own is None else spec.validate(dict(own), limits)
    fits = product.batch is not None and _fits_batch(spec, params, product, device)
    return Choice(spec.number, params, fits)


def _for_batch(
    product: Product, device: Device, number: int
) -> Iterator[tuple[Key, dict[str, int]]]:
    """Yield kernels for a batch in one launch, fastest first; with single loads where vectors do
    not fit.
    """
    sizes = product.sizes
    for (key, pairs), *_ in candidates.ranked(device, sizes, number=number):
        spec, default = find(key), dict(pairs)
        for params in (default, default | {"WIDTH": 1} if "WIDTH" in default else default):
            rows, columns, _ = spec.tiles(params)
            covered = rows <= sizes[0] and columns <= sizes[1]
            legal = covered and not spec.problems(params, device.limits)
            if legal and _fits_batch(spec, params, product, device):
                yield key, params


def _fits_batch(spec: KernelSpec, params: Params, product: Product, device: Device) -> bool:
    """Return whether a kernel can multiply all products in one launch, without other passes."""
    assert product.batch is not None
    if spec.tensor or spec.workspace(params) or product.shared is None:
        return False
    (only, *more) = passes(spec, params, product, device.features)
    return product.batch.number <= MAX_BATCH and not more and only.out is None


def _generated(product: Product, device: Device) -> Choice | str:
    """Return the choice of a generated kernel: for any type, any layout, and batches."""
    options, batch = product.options, product.batch
    in_parts = options.edges == "split"
    if options.kernel not in (AUTO, FAMILY):
        return f"{options} requires another kernel"
    is_plain_batch = options == PLAIN and product.batch is not None
    may_replace = in_parts or is_plain_batch and _has_small_products(product, device)
    if options.kernel == AUTO and product.dtype == np.float32 and not may_replace:
        return "for float32 the catalog has faster kernels"
    whole = not in_parts
    if options.params is not None:
        return Choice(FAMILY, dict(options.params), whole, in_parts=in_parts)
    number = batch.number * len(batch.starts) if batch and whole else 1
    letter = letter_of(product.dtype)
    tile, seconds = tiles.tile_for(device, letter, product.sizes, number)
    return Choice(FAMILY, tile, whole, in_parts=in_parts, seconds=seconds if whole else inf)


#: By their names, in the order of preference.
KINDS: dict[str, Callable[[Product, Device], Choice | str]] = {
    "Packed": _packed,
    "Ladder": _of_catalog,
    "Generated": _generated,
}
