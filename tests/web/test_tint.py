"""tint, the compiler of Chrome, accepts every translation; no browser and no GPU is needed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from conftest import lacking
from web_rates import Host

from gemmlab import web
from gemmlab.catalog import catalog, sources

DRIVER = Path("/usr/lib/chromium/vk_swiftshader_icd.json")  # which Debian's Chromium brings


@pytest.fixture(scope="module")
def tint():
    before = os.environ.get("VK_ICD_FILENAMES")
    os.environ["VK_ICD_FILENAMES"] = str(DRIVER)
    try:
        return Host("wgpudawn", "SwiftShader")
    except (ImportError, RuntimeError) as error:
        lacking(f"no tint through wgpudawn and SwiftShader: {error}")
    finally:
        os.environ.pop("VK_ICD_FILENAMES")
        if before is not None:
            os.environ["VK_ICD_FILENAMES"] = before


def accept(tint, shader: web.Shader) -> None:
    tint.device.create_shader_module(code=shader.code)


def test_all_kernels_in_all_styles(tint):
    begin = time.process_time()
    for style in (*web.STYLES.values(), web.Style(watched=True)):
        for kernel in range(1, 14):
            full = catalog[kernel].validate({})
            accept(tint, web.translate(catalog[kernel].text(full), "gemm", full, style))
        for name in ("pad", "transpose", "transpose_naive", "axpby", "range"):
            accept(tint, web.translate(sources.read(f"support/{name}.cl"), name, {}, style))
    assert time.process_time() - begin < 2


def test_a_barrier_that_not_all_reach_is_refused(tint):
    """naga lets it pass, and computes something."""
    text = (
        "__kernel __attribute__((reqd_work_group_size(8, 1, 1)))\n"
        "void k(__global float* x) { if (get_local_id(0) < 4) barrier(1); x[0] = 1.0f; }"
    )
    with pytest.raises(Exception, match="uniform"):
        accept(tint, web.translate(text))
