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


def test_a_request_has_a_job_in_each_style():
    panel = web.run(3, 128)
    request = panel.request
    assert request["id"] == 1 and set(request["jobs"]) == set(web.STYLES)
    job = request["jobs"]["even"]
    assert (job["m"], job["n"], job["k"]) == (128, 128, 128) and job["shader"]["entry"] == "gemm"
    assert "openGPU" in panel._esm and "import " not in panel._esm.split("\n")[0]


def test_settings_are_those_that_the_gpu_allows():
    panel = web.BrowserGPU(gpu={"name": "small", "limits": SMALL})
    panel.product(1, 128)
    assert panel.request["jobs"]["even"]["params"]["TS"] == 16
    with pytest.raises(ParameterError, match="over the limit of 256 of small"):
        panel.product(1, 128, params={"TS": 32})


def test_an_edited_text_runs_in_the_simulator_before_the_page():
    panel = web.BrowserGPU(gpu={"name": "small", "limits": SMALL})
    text = catalog[1].text(catalog[1].validate({}))
    panel.product(1, 64, params={"TS": 8}, text=text.replace("k*M + m", "k*M + m + 0"))
    assert panel.request["watched"]["shader"]["watched"]
    for edit in (("k++", "k += 0"), ("k < K", "k <= K"), ("k*M + m", "k*M + n")):
        with pytest.raises(ValueError):
            panel.product(1, 64, params={"TS": 8}, text=text.replace(*edit))
    assert panel.request["id"] == 1


def test_results_arrive_in_a_function():
    panel, seen = web.BrowserGPU(), []
    panel.on_result(seen.append)
    panel.result = {"id": 1, "ok": True}
    assert seen == [{"id": 1, "ok": True}]
