"""The facts that sentences mention: one row, one rounding."""

import pytest

from gemmlab import model
from gemmlab.measurement import rungs
from lessons import cycles, facts


@pytest.mark.parametrize(
    ("value", "words"), [(0.498, "0.50"), (6.398, "6.4"), (35.918, "36"), (109.8, "110")]
)
def test_rates_have_two_digits_or_are_whole(value, words):
    assert facts.two(value) == words


def test_a_fact_is_a_row_of_a_record():
    measured = rungs.rung(6).measured
    assert facts.fact("rate 6") == f"{facts.two(measured / 1000)} TFLOPS"
    assert facts.fact("share 6") == facts.percent(measured / model.H200.gflops)
    assert facts.fact("cublas cuBLAS") == "100 %" and facts.fact("times 6 -> 6") == "1.0"
    assert facts.fact("slots 6 empty") == f"{100 - cycles.counts(6).totals['issue']:.0f} %"


def test_a_roof_is_the_counted_one_and_above_the_rate():
    assert facts.roof(2) == 0.25 / cycles.turns(2) > rungs.rung(2).share
    assert facts.roof(6) == 1 / cycles.instructions(6) > rungs.rung(6).share


def test_facts_take_the_place_of_their_names():
    assert facts.fill("{{tflops 1}}!") == f"{facts.fact('tflops 1')}!"
    marked = "<!-- fact rate 6 -->1 TFLOPS<!-- / --> and <!-- fact share 6 --><!-- / -->"
    filled = facts.fill(marked)
    assert facts.fact("rate 6") in filled and facts.fill(filled) == filled
    with pytest.raises(KeyError, match="no fact"):
        facts.fill("{{rates 6}}")
