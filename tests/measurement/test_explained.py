"""What the model allows for a measured rate."""

import pytest

from gemmlab.catalog import sources
from gemmlab.measurement import explained
from gemmlab.measurement.explained import allowed


def test_an_edited_text_has_a_ceiling_too():
    text = sources.read("03_work_per_thread.cl")
    params = {"TS": 32, "WPT": 8}
    assert allowed(3, params, source=text) == allowed(3, params)
    slower = text.replace("acc[j] += a *", "acc[j] += Atile[k][tm] *")
    assert slower != text
    assert allowed(3, params, source=slower).gflops < allowed(3, params).gflops


def test_what_the_model_does_not_know_is_an_error():
    with pytest.raises(ValueError, match="chip must be one of"):
        explained.rates("My card")
    with pytest.raises(ValueError, match="tensor"):
        allowed("tensor_cores", {})
