"""The generator: a `Schedule` says what a product needs, and `write` writes a kernel for just that.

    from gemmlab.generate import Schedule, write
    print(write(Schedule("d", trans_a="T", beta=True, tile=(64, 64), micro_tile=(4, 4))))

`schedule` (what can be generated), `text` (templates of C), `writer` (the parts of a text),
`items`, `direct`, `warps` and `warpgroups` (four schemes to compute a tile), `epilogue`, `split_k`.
`choice` chooses a kernel of the catalog by a model of its time, and reads the table of constants;
`tiles` chooses a tile, and cuts C into up to four launches. Neither a schedule nor its text needs a
device.
"""

from .schedule import Schedule
from .writer import write

__all__ = ["Schedule", "write"]
