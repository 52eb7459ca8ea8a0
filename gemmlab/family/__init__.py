"""The family: a `Configuration` says what a product needs, and `write` writes the kernel that holds just this.

    from gemmlab.family import Configuration, write
    print(write(Configuration("d", a="T", beta=True, tile=(64, 64), micro_tile=(4, 4))))

`configuration` (what can be asked for), `text` (blocks of C with gaps), `writer` (one function for each idea), `direct`
and `warps` (the parts of kernels without local memory, and of those whose warps share blocks of C), `tiles` (which tile
for which problem), `split` (C in up to four launches), `written` (compile and launch); `selection` chooses among the
kernels of the ladder. Neither a configuration nor its text needs a device.
"""

from .configuration import Configuration
from .writer import origins, write

__all__ = ["Configuration", "origins", "write"]
