"""Orders in which a work-item can go through the multiply-adds of a step of k."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gemmlab.ladder import Key, find, sources

from . import cycles

#: What the H200's record calls the order of the kernels, and one that the compiler cannot change.
OWN, PINNED = "column by column", "serpentine in PTX"
#: The loops of the kernels: each factor of B is used WPTM times in a row.
_COLUMNS = re.compile(
    r"( +)for \(int j = 0; j < WPTN; j\+\+\) \{\n"
    r" +for \(int i = 0; i < WPTM; i\+\+\) \{\n +(acc.* \+= .*;)\n +\}\n +\}\n"
)
#: Others, as one loop over all elements e of the block: column j and row i of element number e.
ORDERS = {
    "row by row": ("e%WPTN", "e/WPTN"),
    "serpentine": ("e/WPTM", "e/WPTM%2 ? WPTM - 1 - e%WPTM : e%WPTM"),
    "blocks of 2 x 2": ("e/(2*WPTM)*2 + e/2%2", "e/4%(WPTM/2)*2 + (e + e/2)%2"),
    "diagonal": ("(e/WPTM + e)%WPTN", "e%WPTM"),
}


def text(kernel: Key, order: str) -> str:
    """Return the source code of kernel 6, 15 or 16 with one of the `ORDERS`."""
    column, row = ORDERS[order]

    def loop(found: re.Match[str]) -> str:
        margin, product = found.groups()
        lines = (
            "#pragma unroll",
            "for (int e = 0; e < WPTM*WPTN; e++) {",
            f"    const int j = {column};",
            f"    const int i = {row};",
            f"    {product}",
            "}",
        )
        return "".join(f"{margin}{line}\n" for line in lines)

    return _COLUMNS.sub(loop, sources.read(find(kernel).file))


def table(kernels: Iterable[Key]) -> str:
    """Return the H200's rate, dispatch stalls and reused factors of kernels in each order."""
    lines = ["kernel  order                 TFLOPS   dispatch stalls   factors from the cache"]
    for kernel in kernels:
        for order in (OWN, *ORDERS, PINNED):
            counts = cycles.counts(kernel, order)
            waiting = sum(w for why, w in counts.stalls.items() if why not in cycles.READY)
            slots = (100 - counts.totals["issue"]) * counts.stalls["dispatch_stall"] / waiting
            lines.append(
                f"{kernel:6}  {order:19} {counts.gflops / 1000:8.1f} {slots:8.0f} % of slots "
                f"{counts.totals['reused factors']:12.0%} of multiply-adds"
            )
    return "\n".join(lines)
