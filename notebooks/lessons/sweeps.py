"""The recorded sweeps: one parameter varies, the others stay."""

from __future__ import annotations

from gemmlab.measurement import records
from gemmlab.measurement.records import Row


def curve(series: str) -> dict[int, Row]:
    """A sweep recorded on an NVIDIA H200, such as "03 WPT" or "10 size", by the values of what
    varies: a parameter, or M = N = K.
    """
    found = [
        row
        for row in records.rows(record="nvidia_h200_chapters", series=series)
        if row.metric.endswith("GFLOPS")
    ]
    first, *others = found
    name = next((name for name, x in first.params.items() if x != others[0].params[name]), None)
    return {row.params[name] if name else row.size: row for row in found}
