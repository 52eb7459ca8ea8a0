"""A product in up to four launches of the family, each with a separate kernel:
``edges="split"``.
"""

from __future__ import annotations

from ..caches import cached
from ..catalog.spec import Params
from ..generate import split, tiles
from ..generate.precision import letter_of
from ..generate.split import Launch
from ..generate.tiles import OperandLayout
from ..generate.written import Gemm, View, written
from ..opencl.devices import Device
from .plan import Builder, Product, view


def gemm(builder: Builder, product: Product, params: Params | None = None) -> None:
    """Launch generated kernels for the parts of a product that the table's rules select.

    Args:
        params: all parameters of the tile whose whole tiles are cut off; by default the rules
            choose.
    """
    problem, letter, device = product.problem, letter_of(builder.dtype), builder.device
    given = None if params is None else tuple(params.items())
    for launch in selected(device, letter, problem[:3], given):
        sizes = launch.rows, launch.columns, problem.k
        a = _moved(problem.a.layout, "a", launch.row)
        b = _moved(problem.b.layout, "b", launch.column)
        added = _corner(view(*product.before), launch) if product.before else None
        schedule = tiles.configure(letter, launch.tile, sizes, a, b, added is not None, part=True)
        kernel = written(schedule, device, builder.queue.context)
        left, right = View(product.a, a.offset, 1, a.ld), View(product.b, b.offset, 1, b.ld)
        out = _corner(View(product.out.buffer, 0, 1, problem.m), launch)
        gemm = Gemm(sizes, product.alpha, left, right, product.beta, added, out)
        builder.launch(launch.edges, kernel.bound(gemm, kernel.workspace(sizes, builder.queue)))


@cached(1024)
def selected(device: Device, letter: str, sizes: tuple[int, int, int], params=None) -> list[Launch]:
    """The launches for a product of M, N and K, or with this tile (its parameters as pairs);
    remembered.
    """
    if params is not None:
        tile: Params = dict(params)
        return split.cut(sizes, tile)
    return split.launches(sizes, split.rules_for(device, letter))


def _moved(x: OperandLayout, operand: str, by: int) -> OperandLayout:
    """A without its first rows, or B without its first columns."""
    columns_in_memory = x.operation in ("TC" if operand == "a" else "NR")
    return OperandLayout(x.operation, x.offset + by * (x.ld if columns_in_memory else 1), x.ld)


def _corner(x: View, launch: Launch) -> View:
    """The matrix from a launch's first row and column on."""
    return x._replace(offset=x.offset + launch.row * x.down + launch.column * x.across)
