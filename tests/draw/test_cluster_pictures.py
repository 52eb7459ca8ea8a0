"""Pictures of many devices: they are drawn, and say in words what they show."""

import pytest

from gemmlab.draw import cluster as draw
from gemmlab.model import cluster
from gemmlab.model.cluster import Cluster, Cut


@pytest.mark.parametrize("grid", [(1, 1, 1), (8, 1, 1), (2, 4, 1), (2, 2, 4)])
def test_a_cut_says_what_it_costs(grid):
    picture = draw.cut(Cut(4096, 4096, 4096, *grid))
    assert f"{grid[0]} x {grid[1]} x {grid[2]}" in picture.alt and "receives" in picture.alt
    assert picture.svg().startswith("<svg") and len(picture.png()) > 1000


@pytest.mark.parametrize("step", [1, 5, 8])
def test_a_step_of_summa(step):
    picture = draw.summa(2, 4, 8, step)
    assert f"Step {step} of 8" in picture.alt and picture.svg()


def test_steps_that_do_not_exist_are_refused():
    with pytest.raises(ValueError, match="step must be from 1 to 4, not 5"):
        draw.summa(2, 2, 4, 5)


@pytest.mark.parametrize(("bandwidth", "word"), [(1e6, "throughout"), (0.1, "receiving")])
def test_scaling_says_where_it_stops_and_why(bandwidth, word):
    times = cluster.scaling(8192, [1, 4, 16, 64], 512, Cluster(1000, bandwidth))
    picture = draw.scaling(times, "a test")
    assert word in picture.alt and picture.svg()
