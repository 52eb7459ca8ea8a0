"""Orders in which a work-item can go through the multiply-adds of a step of k."""

from __future__ import annotations

import re

from gemmlab.ladder import Key, find, sources

#: The order of the kernels: column by column, where each factor of B is used WPTM times in a row.
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
