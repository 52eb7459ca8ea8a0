"""What a fast product needs: the nine criteria of AutoGEMM's documentation, as numbers for a device.

Source: D. Tanner, AutoGEMM, documentation of clBLAS, 2015, section II. A g x h tile loads (m/g)(n/h)(g + h) k elements
for 2 m n k operations, so 2 g h / (g + h) operations per element.
"""

from __future__ import annotations

from typing import NamedTuple

from .traffic import Peaks, tile_intensity


class Criterion(NamedTuple):
    """One of the nine.

    Attributes:
        name: what it is about.
        value: the number that this product and this tile have.
        needed: the least that suffices, or None where there is no such number.
        unit: what both count.
    """

    name: str
    value: float
    needed: float | None
    unit: str

    @property
    def met(self) -> bool | None:
        """Whether the value suffices; None where nobody can say."""
        return None if self.needed is None else self.value >= self.needed


def operations_needed(peaks: Peaks, element_bytes: int = 4) -> float:
    """Operations per loaded element at which arithmetic takes as long as loading."""
    return peaks.gflops * element_bytes / peaks.bandwidth


def smallest_partner(side: float, needed: float) -> float:
    """The h at which a tile of `side` x h has 2 g h / (g + h) = `needed` operations per element; infinite if none."""
    return needed * side / (2 * side - needed) if 2 * side > needed else float("inf")


def criteria(
    sizes: tuple[int, int, int],
    tile: tuple[int, int],
    micro_tile: tuple[int, int],
    peaks: Peaks,
    units: int,
    element_bytes: int = 4,
) -> list[Criterion]:
    """The nine criteria for a product and a tile on a device.

    Args:
        sizes: m, n and k.
        tile, micro_tile: rows and columns of C for a work-group, and for a work-item.
        peaks: of the device; where its local memory was not measured, criterion 3 has nothing to be compared with.
        units: compute units of the device.
        element_bytes: of an element of A, B and C.
    """
    (m, n, k), (g, h), (p, q) = sizes, tile, micro_tile
    needed, local = operations_needed(peaks, element_bytes), peaks.local_bandwidth
    groups = -(-m // g) * -(-n // h)
    items = (g // p) * (h // q)
    inside = (m // g * g) * (n // h * h) / (m * n)
    there = tile_intensity(min(g, m), min(h, n))
    whole = 2 * m * n * k / (m * k + k * n + 2 * m * n)  # with C read and written
    per_element = "operations per element"
    return [
        Criterion("1 global bandwidth", tile_intensity(g, h), needed, per_element),
        Criterion("2 global latency", groups * items / units, None, "work-items per compute unit"),
        Criterion("3 local bandwidth", tile_intensity(p, q), peaks.gflops * element_bytes / local if local else None,
                  per_element),
        Criterion("4 local latency", p * q * element_bytes / 4, None, "registers for accumulators"),
        Criterion("5 whole tiles", 100 * inside, None, "per cent of C"),
        Criterion("6 multiply-adds", 100 * p * q / (p * q + p + q), None, "per cent of these and local loads"),
        Criterion("7 small M x N", groups / units, 1, "work-groups per compute unit"),
        Criterion("8 small K", whole, needed, "operations per element, C counted twice"),
        Criterion("9 skinny", there, needed, per_element + ", as much of the tile as there is"),
    ]  # fmt: skip
