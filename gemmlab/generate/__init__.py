"""The generator: a `Schedule` says what a product needs, and `write` writes a kernel for just that.

    from gemmlab.generate import Schedule, write
    print(write(Schedule("d", trans_a="T", beta=True, tile=(64, 64), micro_tile=(4, 4))))

`schedule` (what can be generated), `text` (templates of C), `writer` (the parts of a text),
`items`, `direct` and `warps` (three ways to compute a tile), `epilogue`, `split_k`; `written`
(compile and launch). `tiles` chooses a tile for a problem, `split` cuts C into up to four launches,
`selection` chooses among the kernels of the ladder. Neither a schedule nor its text needs a device.
"""

from .schedule import Schedule
from .writer import origins, write

__all__ = ["Schedule", "origins", "write"]
