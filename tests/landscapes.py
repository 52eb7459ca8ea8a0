"""Made-up landscapes: what several tests share."""

import tempfile
from dataclasses import asdict
from pathlib import Path

import record_landscape

from gemmlab import catalog, model
from gemmlab.ladder.spec import Limits
from gemmlab.measurement import records
from gemmlab.measurement.landscape import Landscape, fingerprint

H200 = Limits("NVIDIA H200", 1024, (1024, 1024, 64), 49152)
PEAK = model.H200.gflops  # that of a chip which the model knows
SIZES = {"m": 4096, "n": 4096, "k": 4096}


def write(
    path: Path, *kernels: int, title: str = "NVIDIA H200", peak: float = PEAK, limits: Limits = H200
) -> None:
    """Every setting of these kernels that would be recorded, with a rate that follows from its
    number.
    """
    head = {"title": title, "device": title, "driver": "1", "date": "2026-11-22", "kind": "GPU"}
    head |= {"command": "python tools/record_landscape.py", "limits": asdict(limits)}
    rows = [{"series": "landscape", **SIZES, "metric": "peak GFLOPS", "median": peak}]
    for kernel in kernels:
        spec = catalog[kernel]
        settings = record_landscape.settings(spec, limits)
        shared = {"kernel": kernel, "code": fingerprint(spec.file), **SIZES, "metric": "GFLOPS"}
        rows.append({"series": "sizes", **shared, **settings[0], "median": 1000})
        for place, params in enumerate(settings):
            rate = round(peak * (place + 1) / (len(settings) + 1))
            compiled = {"registers": 32 + place % 200, "spilled": 0}
            rows.append({"series": "landscape", **shared, **params, "median": rate, **compiled})
    records.append(path, head, rows)


def made_up(*kernels: int, title: str = "NVIDIA H200") -> Landscape:
    """The landscape of these kernels that `write` writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "landscape.json"
        write(path, *kernels, title=title)
        return Landscape(records.read(path))
