"""A product in up to four launches of the family, each with a kernel of its own:
``edges="split"``.
"""

from __future__ import annotations

from ..caches import cached
from ..catalog.spec import Params
from ..generate import split, tiles
from ..generate.precision import letter_of
from ..generate.split import Launch
from ..generate.tiles import Lying
from ..generate.written import Gemm, View, written
from ..opencl.devices import Device
from .plan import Builder, Matrix, view
from .problem import Problem


def gemm(
    builder: Builder, problem: Problem, buffers, alpha, beta, before, out: Matrix, params=None
) -> None:
    """C = alpha A B + beta C0 as `Builder.gemm`, with the launches that the table's rules select.

    Args:
        params: all parameters of the tile whose whole tiles are cut off; by default the rules
            choose.
    """
    letter, device = letter_of(builder.dtype), builder.device
    lying, given = (
        (problem.a.lying, problem.b.lying),
        None if params is None else tuple(params.items()),
    )
    for launch in selected(device, letter, problem[:3], given):
        sizes = launch.rows, launch.columns, problem.k
        a, b = _moved(lying[0], "a", launch.row), _moved(lying[1], "b", launch.column)
        c = tiles.configure(letter, launch.tile, sizes, a, b, before is not None, part=True)
        left, right = (
            View(buffer, x.offset, 1, x.ld) for buffer, x in zip(buffers, (a, b), strict=True)
        )
        corner = _corner(View(out.buffer, 0, 1, problem.m), launch)
        added = _corner(view(*before), launch) if before else None
        kernel = written(c, device, builder.queue.context)
        workspace = kernel.workspace(sizes, builder.queue)
        product = Gemm(sizes, alpha, left, right, beta, added, corner)
        builder.launch(launch.edges, kernel.bound(product, workspace))


@cached(1024)
def selected(device: Device, letter: str, sizes: tuple[int, int, int], params=None) -> list[Launch]:
    """The launches for a product of M, N and K, or with this tile (its parameters as pairs);
    remembered.
    """
    if params is not None:
        tile: Params = dict(params)
        return split.cut(sizes, tile)
    return split.launches(sizes, split.rules_for(device, letter))


def _moved(x: Lying, operand: str, by: int) -> Lying:
    """A without its first rows, or B without its first columns."""
    columns_in_memory = x.operation in ("TC" if operand == "a" else "NR")
    return Lying(x.operation, x.offset + by * (x.ld if columns_in_memory else 1), x.ld)


def _corner(x: View, launch: Launch) -> View:
    """The matrix from a launch's first row and column on."""
    return x._replace(offset=x.offset + launch.row * x.down + launch.column * x.across)
