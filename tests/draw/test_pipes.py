"""The pipes agree with the ceiling that the panel names."""

import pytest

from gemmlab.draw import pipes
from gemmlab.measurement import rungs
from gemmlab.model.chip import H200


@pytest.mark.parametrize("ts", [32, 24, 16, 8])
def test_the_room_of_the_scarce_pipe_over_its_need_is_what_it_allows(ts):
    """Also where a work-group of 72 or 8 work-items leaves lanes of its last warp empty."""
    allowed = rungs.allowed(3, {"TS": ts, "WPT": 8})
    flow = pipes.flow(allowed.ceilings, H200, 1.0)
    pipe = flow.pipes[flow.tight]
    assert pipe.width / pipe.need == pytest.approx(allowed.gflops / H200.gflops, rel=0.02)
    assert f"{flow.allowed} of the peak" in flow.demands
