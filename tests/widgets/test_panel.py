"""What a panel says of rates."""

import re

import pytest

from gemmlab.measurement.rungs import Allowed
from gemmlab.widgets import panel


@pytest.mark.parametrize(
    ("before", "words"),
    [((0.3, 0.4, 0.5), "400 × before"), ((100.0, 150.0, 161.0), ""), (None, "")],
)
def test_a_rate_is_compared_with_the_one_before_where_their_runs_do_not_overlap(before, words):
    assert panel.since((150.0, 160.0, 170.0), before) == words


@pytest.mark.parametrize(
    ("kernel", "marks"),
    [
        (3, ["kernel 1: 9.6 %", "kernel 3 measured 31 %", "cuBLAS 76 %"]),
        (1, ["kernel 1 measured 9.6 %", "cuBLAS 76 %"]),
        (None, ["kernel 1: 9.6 %", "cuBLAS 76 %"]),
    ],
)
def test_a_bound_has_the_recorded_rate_beside_it(kernel, marks):
    html = panel.shown(panel.reachable(Allowed(33_400.0, "local memory", ()), kernel=kernel))
    assert sorted(re.findall(r'title="([^"]+)"', html)) == sorted(marks)


def test_rates_of_an_h200_have_one_unit_and_a_bound_is_not_drawn_as_measured():
    for gflops, figure in ((8359.0, "8.36"), (60100.0, "60.1")):
        html = panel.shown(panel.reachable(Allowed(gflops, "L1 cache", ())))
        assert f"<b>{figure}</b> TFLOPS at most" in html and "gemmlab-bound" in html
