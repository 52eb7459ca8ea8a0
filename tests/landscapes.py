"""Made-up landscapes: what several tests share."""

from dataclasses import asdict

import record_landscape

from gemmlab import catalog, model
from gemmlab.ladder.spec import Limits

H200 = Limits("NVIDIA H200", 1024, (1024, 1024, 64), 49152)
PEAK = model.H200.gflops  # that of a chip which the model knows
FACTS = {
    "device": "NVIDIA H200",
    "platform": "made up",
    "version": "1",
    "driver": "1",
    "kind": "GPU",
    "units": 132,
}


def made_up(
    *kernels: int, title: str = "NVIDIA H200", peak: float = PEAK, limits: Limits = H200
) -> record_landscape.Recording:
    """Every setting of these kernels that would be recorded, with a rate that follows from its
    number.
    """
    head = {
        "title": title,
        "date": "2026-11-22",
        "command": "python tools/record_landscape.py",
        "device": FACTS,
    }
    found = record_landscape.Recording(
        {**head, "size": 4096, "peak": peak, "limits": asdict(limits)}
    )
    for kernel in kernels:
        settings = record_landscape.settings(catalog[kernel], limits)
        for place, params in enumerate(settings):
            found.add(
                kernel,
                params,
                [round(peak * (place + 1) / (len(settings) + 1)), 32 + place % 200, 0, 50],
            )
        found.table(kernel)["sizes"]["4096"] = 1000
    return found
