"""A product on many devices, on paper: what a cut of it holds and moves, and how long it takes.

The devices form a grid of rows x columns x depth: the product is cut into so many parts along m, n and k, and each
device multiplies one block of A by one block of B. Before, A and B are spread evenly over the devices; afterwards so is
C.

Sources: R. van de Geijn and J. Watts, SUMMA: Scalable Universal Matrix Multiplication Algorithm (Concurrency 9(4),
1997); E. Solomonik and J. Demmel, Communication-Optimal Parallel 2.5D Matrix Multiplication (Euro-Par 2011), for cuts
along k.
"""

from __future__ import annotations

from math import ceil, inf, log2, sqrt
from typing import NamedTuple

from .traffic import flops


class Cut(NamedTuple):
    """A product of m x k by k x n on a grid of devices.

    Attributes:
        m, n, k: sizes of the product.
        rows, columns, depth: parts along m, n and k, one device for each.
        element_bytes: of an element.
    """

    m: int
    n: int
    k: int
    rows: int = 1
    columns: int = 1
    depth: int = 1
    element_bytes: int = 4

    @property
    def devices(self) -> int:
        return self.rows * self.columns * self.depth

    @property
    def flops(self) -> float:
        """Operations of each device."""
        return flops(self.m, self.n, self.k) / self.devices

    @property
    def blocks(self) -> dict[str, float]:
        """Bytes of a device's blocks of A, B and C."""
        areas = {
            "A": self.m * self.k / (self.rows * self.depth),
            "B": self.k * self.n / (self.depth * self.columns),
            "C": self.m * self.n / (self.rows * self.columns),
        }
        return {name: self.element_bytes * area for name, area in areas.items()}

    @property
    def held_bytes(self) -> float:
        """What a device needs memory for if it gets its blocks whole."""
        return sum(self.blocks.values())

    @property
    def moved(self) -> dict[str, float]:
        """Bytes that a device receives: what it lacks of A and B, and the others' terms of the sums that it keeps."""
        a, b, c = self.blocks.values()
        return {"A": a * (1 - 1 / self.columns), "B": b * (1 - 1 / self.rows), "C": c * (1 - 1 / self.depth)}

    @property
    def moved_bytes(self) -> float:
        return sum(self.moved.values())

    def panel_bytes(self, panel: int) -> float:
        """What a device needs memory for with SUMMA: its shares of A and B, its block of C, and two pairs of panels."""
        a, b, c = self.blocks.values()
        return a / self.columns + b / self.rows + c + 2 * (a + b) * self.depth * min(panel, self.k) / self.k


def near_square(devices: int) -> tuple[int, int]:
    """Rows and columns of the grid of so many devices that comes nearest to a square."""
    rows = next(r for r in range(int(sqrt(devices)), 0, -1) if devices % r == 0)
    return rows, devices // rows


class Cluster(NamedTuple):
    """What devices and their links can do.

    Attributes:
        gflops: of each device, for its blocks.
        bandwidth: GB/s that each device receives.
        latency: seconds from the wish for a message to its first byte.
        tasks_per_second: that one scheduler hands out, to all devices together.
    """

    gflops: float
    bandwidth: float
    latency: float = 0.0
    tasks_per_second: float = inf


class Times(NamedTuple):
    """How long a product takes, and what each of its parts would take alone, in seconds."""

    total: float
    multiplying: float
    receiving: float
    handing_out: float

    @property
    def bound(self) -> str:
        """The part that takes longest: "multiplying", "receiving" or "handing out"."""
        parts = {name.replace("_", " "): getattr(self, name) for name in self._fields[1:]}
        return max(parts, key=parts.__getitem__)


def summa(cut: Cut, panel: int, cluster: Cluster) -> Times:
    """Play through SUMMA: in each step a panel of A goes along the rows of the grid, one of B along its columns.

    Devices have room for two pairs of panels, so that one is received while the other is multiplied. A panel passes
    through a row of p devices in a pipeline, which takes log2 p latencies before its bytes follow. Each device's step
    is a task, and one scheduler hands out all of them.

    Args:
        cut: with a depth of 1.
        panel: columns of A, and rows of B, in a panel.
        cluster: what the devices can do.

    Raises:
        ValueError: for a cut along k, or a panel of no columns.
    """
    if cut.depth != 1:
        raise ValueError(f"SUMMA cuts along m and n alone; the depth of this grid is {cut.depth}")
    if panel < 1:
        raise ValueError(f"panel must be 1 or more, not {panel}")
    steps = ceil(cut.k / panel)
    hops = sum(ceil(log2(side)) for side in (cut.rows, cut.columns))
    multiply = cut.flops / steps / cluster.gflops * 1e-9
    receive = cut.moved_bytes / steps / cluster.bandwidth * 1e-9 + hops * cluster.latency
    hand_out = cut.devices / cluster.tasks_per_second
    arrived, done = 0.0, [0.0, 0.0]  # when the last two panels were multiplied
    for _ in range(steps):
        arrived = max(arrived, done[-2]) + max(receive, hand_out)
        done.append(max(arrived, done[-1]) + multiply)
    return Times(done[-1], steps * multiply, steps * receive, steps * hand_out)


def scaling(size: int, devices: list[int], panel: int, cluster: Cluster) -> dict[int, Times]:
    """The same square product on more and more devices, each time on the grid that is nearest to a square."""
    return {p: summa(Cut(size, size, size, *near_square(p)), panel, cluster) for p in devices}


def efficiency(times: dict[int, Times]) -> dict[int, float]:
    """What part of linear speed-up is reached, beside one device that has nothing to receive."""
    return {p: t.multiplying / t.total for p, t in times.items()}
