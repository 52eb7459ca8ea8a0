"""Steps: everything a work-group does, once each, line by line; and what the macros on a line stand
for.
"""

from __future__ import annotations

import pytest
from conftest import in_part
from simt.cases import SMALL, edited, line_of, text

from gemmlab import simt
from gemmlab.simt import views


@pytest.mark.sampled(2)
@pytest.mark.parametrize("number", in_part(SMALL, 3))
@pytest.mark.parametrize("order", ["lockstep", "warps"])
def test_the_steps_of_all_groups_are_the_whole_run(number, order):
    run = simt.simulate(number, 16, 16, 16, SMALL[number], order=order)
    groups = run.global_size[0] * run.global_size[1] // (run.local_size[0] * run.local_size[1])
    every = [step for group in range(groups) for step in views.steps(run, group)]
    for array in run.counts.loads | run.counts.stores:
        assert sum(s.counts.loads.get(array, 0) for s in every) == run.counts.loads.get(array, 0)
        assert sum(s.counts.stores.get(array, 0) for s in every) == run.counts.stores.get(array, 0)
    assert sum(s.counts.multiply_adds for s in every) == run.counts.multiply_adds == 16**3
    assert all(e.site.line == s.line for s in every for e in s.entries)


def test_a_step_is_one_execution_of_a_line():
    run = simt.simulate(2, 16, 16, 16, {"TS": 8})
    source = text(2)
    a, b = line_of(source, "Atile[tn][tm] ="), line_of(source, "Btile[tn][tm] =")
    first, add = line_of(source, "barrier(CLK"), line_of(source, "acc +=")
    second, store = line_of(source, "barrier(CLK", 1), line_of(source, "= acc;")
    assert [s.line for s in views.steps(run)] == 2 * [a, b, first, *8 * [add], second] + [store]


def test_a_run_that_stops_ends_with_the_line_that_stopped_it():
    source = edited(text(2), "Atile[k][tm]", "Atile[k + 1][tm]")
    run = simt.simulate(2, 16, 16, 16, {"TS": 8}, source)
    last = views.steps(run)[-1]
    assert last.line == run.stop.line == line_of(source, "Atile[k + 1][tm]") and not last.entries


def test_macros_are_explained_where_they_are_used():
    run = simt.simulate(3, 16, 16, 16, {"TS": 8, "WPT": 4})
    source, means = text(3), views.macros(run)
    assert means[line_of(source, "for (int j0 = 0")] == {"TS": "8", "RTS": "(TS/WPT) = 2"}
    assert line_of(source, "#define RTS") not in means and line_of(source, "#if !") not in means
    of_11 = simt.simulate(11, 16, 16, 16, SMALL[11])
    shown = {name: value for line in views.macros(of_11).values() for name, value in line.items()}
    assert any(
        name.startswith("B_AT(") and value.startswith("B[(") for name, value in shown.items()
    ), shown
