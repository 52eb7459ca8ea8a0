"""Every picture of the lessons can be shown, at extreme settings, too."""

import pytest

from gemmlab import model
from gemmlab.generate import tiles
from lessons import (
    charts,
    cluster,
    divergence,
    edges,
    hardware,
    schedules,
    tf32,
    warps,
    waterfall,
)
from pictures import assert_can_be_shown

LAUNCHES = tiles.cut((250, 270, 64), tiles.complete_tile({"TSM": 64, "TSN": 64}))


BOTH = {"here": {1: 10.0, 2: 25.0, 3: 150.0}, "NVIDIA H200": {1: 6399.8, 2: 7102.8}}
PEAKS, CEILINGS = model.Peaks(60000, 4000), model.explain(3, None, model.H200, 12_600).ceilings

PICTURES = {
    "roofline": lambda: charts.roofline(PEAKS, {"1": (0.25, 900), "7": (32, 3e4)}, "a GPU"),
    "ladder": lambda: charts.ladder(BOTH, {"a library": 50_000.0}),
    "bars": lambda: charts.bars(CEILINGS, "a title"),
    "banks of 8 bytes": lambda: hardware.banks(range(0, 32 * 17, 17), 8),
    "occupancy of none": lambda: hardware.occupancy(model.K40M, 256, 300, 0),
    "occupancy of many": lambda: hardware.occupancy(model.H200, 32, 16, 0),
    "shifts": lambda: hardware.shifts(11, 14, 4, 4),
    "time line of many": lambda: schedules.timeline(32, 3, 2, 1, 4),
    "stages": lambda: schedules.timeline(12, 5, 2, 4, 2),
    "shares": lambda: schedules.shares(9, 12, 6),
    "divergence": lambda: divergence.draw("B", 100, 50, 70, 16),
    "launches": lambda: edges.draw_launches(LAUNCHES),
    **{f"bits of {x}": lambda x=x: tf32.draw_bits(x) for x in (*tf32.NUMBERS, -2.5, 1e-20)},
    "errors": lambda: tf32.draw_errors(
        {"one": {8: 1e-3, 64: 1e-3}}, {"one": {64: 5e-4}, "theirs": {64: 1e-6}}
    ),
    "narrow block": lambda: warps.block(4, 4, 16, 1, lane=31),
    "precisions": charts.precisions,
    "cut": lambda: cluster.draw_cut(cluster.Cut(4096, 4096, 4096, 2, 2, 4)),
    "scaling": lambda: cluster.draw_scaling(8192, 512, 1, 10, 5000),
    "waterfall": lambda: waterfall.draw(
        {"first": 5000.0, "second": 30000.0, "third": 20000.0},
        {"second": "local memory: 20 % to 80 %"},
        {"a library": 25000.0},
        {"third": 5000.0},
    ),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_can_be_shown(name):
    assert_can_be_shown(PICTURES[name]())


def test_bars_say_every_ceiling():
    alt = charts.bars(CEILINGS, "kernel 3 on an H200").alt
    for c in CEILINGS:
        assert c.resource in alt and model.percent(c.share) in alt and model.percent(c.low) in alt
