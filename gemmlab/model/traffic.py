"""Operations, bytes, intensity, and the roofline.

The roofline is that of Williams, Waterman and Patterson (Communications of the ACM 52(4), 2009): a
program that does I operations per byte reaches at most min(peak, I x bandwidth).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..ladder import Key, find


@dataclass(frozen=True)
class Peaks:
    """The best that a device can do."""

    gflops: float  # in single precision
    bandwidth: float  # of global memory, in GB/s


def flops(m: int, n: int, k: int) -> int:
    """Floating-point operations of a product: a multiplication and an addition per term."""
    return 2 * m * n * k


def gflops(m: int, n: int, k: int, seconds: float) -> float:
    """The rate of an m x k by k x n product, in 10^9 floating-point operations per second."""
    return flops(m, n, k) / seconds * 1e-9


def least_bytes(m: int, n: int, k: int) -> int:
    """The fewest bytes a float32 product can move: A and B read once, C written once."""
    return 4 * (m * k + k * n + m * n)


def loads(kernel: Key, params: Mapping[str, int] | None = None) -> dict[str, float]:
    """Floats loaded per multiply-add from "global" and "local" memory, as the catalog states."""
    spec = find(kernel)
    full = spec.validate(params)
    return {"global": spec.global_loads(full), "local": spec.local_loads(full)}


def requested_bytes(
    kernel: Key, m: int, n: int, k: int, params: Mapping[str, int] | None = None
) -> float:
    """Bytes that a kernel moves from and to global memory if there are no caches."""
    return 4 * (loads(kernel, params)["global"] * m * n * k + m * n)


def intensity(operations: float, transferred: float) -> float:
    """Arithmetic intensity: operations per byte transferred."""
    return operations / transferred


def roofline(peaks: Peaks, operations_per_byte: float) -> float:
    """The most GFLOPS that a program of that intensity can reach."""
    return min(peaks.gflops, operations_per_byte * peaks.bandwidth)


def ridge(peaks: Peaks) -> float:
    """The intensity, in operations per byte, above which arithmetic and not memory limits."""
    return peaks.gflops / peaks.bandwidth


def tile_intensity(g: int, h: int) -> float:
    """Operations per loaded float for a g x h tile, or a g x h block in registers."""
    return 2 * g * h / (g + h)
