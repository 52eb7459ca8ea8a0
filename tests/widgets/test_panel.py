"""What a panel says of rates."""

from gemmlab.measurement.rungs import Allowed
from gemmlab.widgets import panel


def test_rates_of_an_h200_have_one_unit_and_a_bound_is_not_drawn_as_measured():
    for gflops, figure in ((8359.0, "8.36"), (60100.0, "60.1")):
        html = panel.shown(panel.reachable(Allowed(gflops, "L1 cache", ())))
        assert f"<b>{figure}</b> TFLOPS at most" in html and "gemmlab-bound" in html
