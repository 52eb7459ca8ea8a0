"""The panel in JupyterLab, without a browser: what it asks the page for."""

from __future__ import annotations

import pytest

from gemmlab import web
from gemmlab.catalog import ParameterError, catalog

SMALL = {
    "maxComputeInvocationsPerWorkgroup": 256,
    "maxComputeWorkgroupSizeX": 256,
    "maxComputeWorkgroupSizeY": 256,
    "maxComputeWorkgroupStorageSize": 16384,
}


def test_a_request_has_a_job_in_each_style_and_a_result_arrives_in_a_function():
    panel, seen = web.run(3, 128), []
    assert panel.request["id"] == 1 and set(panel.request["jobs"]) == set(web.STYLES)
    job = panel.request["jobs"]["even"]
    assert (job["m"], job["n"], job["k"]) == (128, 128, 128) and job["shader"]["entry"] == "gemm"
    panel.on_result(seen.append)
    panel.result = {"id": 1, "ok": True}
    assert seen == [{"id": 1, "ok": True}]


def test_settings_are_those_that_the_gpu_allows():
    panel = web.BrowserGPU(gpu={"name": "small", "limits": SMALL})
    panel.product(1, 128)
    assert panel.request["jobs"]["even"]["params"]["TS"] == 16
    with pytest.raises(ParameterError, match="over the limit of 256 of small"):
        panel.product(1, 128, params={"TS": 32})


def test_an_edited_text_runs_in_the_simulator_before_the_page():
    panel = web.BrowserGPU(gpu={"name": "small", "limits": SMALL})
    text = catalog[1].text({})
    panel.product(1, 64, params={"TS": 8}, text=text.replace("k*M + m", "k*M + m + 0"))
    for edit in (("k++", "k += 0"), ("k < K", "k <= K"), ("k*M + m", "k*M + n")):
        with pytest.raises(ValueError):
            panel.product(1, 64, params={"TS": 8}, text=text.replace(*edit))
    assert panel.request["id"] == 1
