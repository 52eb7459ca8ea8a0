"""The plot of the main line: each kernel, its rate on an H200, and the one idea behind it."""

from __future__ import annotations

from html import escape
from typing import NamedTuple

from gemmlab import catalog
from gemmlab.measurement import records

from . import facts, waterfall

#: What each rung adds, in the words of the main line.
IDEAS = {
    1: "one work-item computes one element",
    2: "a work-group shares what it fetched",
    3: "a value in a register serves eight multiply-adds",
    6: "a block of C in registers",
    15: "four floats per load from local memory",
    16: "ask early, use late",
    17: "equal shares of the work",
    18: "tensor cores, and two numbers for a float",
    19: "one instruction for four warps, B prepared once",
}
LEFT = 'style="text-align:left"'


class Row(NamedTuple):
    """A kernel of the main line, or the library: GFLOPS on an H200 at 4096 x 4096 x 4096."""

    kernel: int | None  # 0 is kernel 1 with its indices swapped
    name: str
    gflops: float
    share: float  # of the library's rate
    idea: str


class Table:
    """The rungs of the main line as a table, slowest first.

    Args:
        last: the last kernel; by default all are shown.
    """

    def __init__(self, last: int | None = None) -> None:
        library, rungs = waterfall.variants()[facts.LIBRARY].gflops, waterfall.rungs()
        swapped = records.variants(series="swapped identifiers", size=4096)["swapped"].gflops
        rows = [
            Row(None, facts.LIBRARY, library, 1.0, "NVIDIA's own library"),
            Row(0, "indices swapped", swapped, swapped / library, "neighbours load far apart"),
        ]
        for kernel, idea in IDEAS.items():
            rung = rungs[kernel]
            rows.append(Row(kernel, rung.name, rung.gflops, rung.gflops / library, idea))
        shown = (row for row in rows if last is None or (row.kernel or 0) <= last)
        self.rows = sorted(shown, key=lambda row: row.gflops)

    def __repr__(self) -> str:
        lines = ["kernel                   TFLOPS   of cuBLAS   the idea"]
        lines += [
            f"{_number(row):>2} {row.name:20} {facts.two(row.gflops / 1000):>8}   "
            f"{row.share:9.0%}   {row.idea}"
            for row in self.rows
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        most = max(row.gflops for row in self.rows)
        body = "".join(_row(row, 100 * row.gflops / most) for row in self.rows)
        heads = (
            f"<th></th><th {LEFT}>kernel</th><th {LEFT}>the idea</th>"
            "<th>TFLOPS</th><th>of cuBLAS</th><th></th>"
        )
        return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def _number(row: Row) -> str:
    return "" if row.kernel is None else str(row.kernel)


def _row(row: Row, width: float) -> str:
    colour = "#808080" if row.kernel is None else "#16835a"
    bar = f'<div style="width:{1.8 * width:.0f}px;height:12px;background:{colour}"></div>'
    name = escape(row.name)
    if row.kernel:
        name = f'<a href="../kernels/{catalog[row.kernel].file}">{name}</a>'
    return (
        f"<tr><td>{_number(row)}</td><td {LEFT}>{name}</td><td {LEFT}>{escape(row.idea)}</td>"
        f"<td>{facts.two(row.gflops / 1000)}</td><td>{facts.percent(row.share)}</td>"
        f"<td {LEFT}>{bar}</td></tr>"
    )
