"""What the translations compute on naga and lavapipe, and whether tint accepts them; no browser."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import FULL, lacking
from web.products import LADDER, same, settings, sizes, support
from web.small_kernels import ITEMS, text
from web_rates import Host

from gemmlab import check, simt, web
from gemmlab.catalog import catalog, sources

STYLES = {**web.STYLES, "watched": web.Style(watched=True)}


def host(backend: str, name: str) -> Host:
    try:
        return Host(backend, name)
    except (ImportError, RuntimeError) as error:
        lacking(f"no WebGPU through {backend} and {name}: {error}")


@pytest.fixture(scope="module")
def lavapipe():
    """naga, the compiler of Firefox, with a Vulkan that computes on the CPU."""
    return host("wgpu", "llvmpipe")


@pytest.fixture
def tint(monkeypatch):
    """The compiler of Chrome, with the Vulkan driver that Debian's Chromium brings."""
    monkeypatch.setenv("VK_ICD_FILENAMES", "/usr/lib/chromium/vk_swiftshader_icd.json")
    return host("wgpudawn", "SwiftShader")


CASES = [
    (kernel, params, label)
    for kernel in LADDER
    for params in settings(kernel, 8 if FULL else 2)
    for label in (STYLES if FULL else ("even", "laid out", "watched"))
]


@pytest.mark.parametrize("kernel, params, label", CASES, ids=str)
def test_a_product_is_exact_and_framed(lavapipe, kernel, params, label):
    m, n, k = sizes(kernel, params)
    job = web.job(kernel, m, n, k, params, style=STYLES[label])
    a, b = check.exact_inputs(m, n, k)
    c, untouched = lavapipe.product(job, a, b)
    assert np.array_equal(c, a @ b)
    # a watched kernel reports what it does outside C, and is run without a frame
    assert untouched


@pytest.mark.parametrize("label", STYLES)
def test_support_kernels(lavapipe, label):
    for name, arrays, values, groups, wanted in support():
        shader = web.translate(sources.read(f"support/{name}.cl"), name, {}, STYLES[label])
        got = lavapipe.run(shader, arrays, values, groups)
        assert all(same(got[key], want) for key, want in wanted.items()), name


#: Of 200 seeds, few that say something new are run outside full runs.
SEEDS = range(200) if FULL else range(0, 200, 8)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_texts_do_what_the_simulator_says(lavapipe, seed):
    source = text(seed)
    x = (np.arange(64) % 7 - 3).astype(np.float32)
    y = (np.arange(64, dtype=np.int32) * 37) % 41 - 15
    out, whole = np.zeros(2 * ITEMS, np.float32), np.zeros(2 * ITEMS, np.int32)
    expected = simt.run(source, "fuzz", (2 * ITEMS,), None, [x, y, out, whole])
    assert expected.ok, expected.verdict
    arrays = {"x": x, "y": y, "out": out, "whole": whole}
    for style in STYLES.values():
        got = lavapipe.run(web.translate(source, style=style), arrays, {}, (2, 1, 1))
        assert np.array_equal(got["out"], expected.arrays["out"])
        assert np.array_equal(got["whole"], expected.arrays["whole"])


OUTSIDE = """\
__kernel __attribute__((reqd_work_group_size(8, 1, 1)))
void k(__global float* x, const int n)
{
    float a[4] = {0.0f};
    const int i = get_global_id(0);
    a[i & 3] = 1.0f;
    x[i + n] = a[i & 3];
}
"""
ENDLESS = """\
__kernel __attribute__((reqd_work_group_size(8, 1, 1)))
void k(__global float* x, const int n)
{
    int i = get_global_id(0);
    while (i < 100) {
        x[i & 7] += 1.0f;
        if (n > 1) i++;
    }
}
"""


def test_a_watched_kernel_reports_the_access_and_the_loop_that_go_wrong(lavapipe):
    watched = web.Style(watched=True)

    def watch(source, n):
        shader = web.translate(source, style=watched)
        arrays = {"x": np.zeros(16, np.float32)}
        return list(lavapipe.run(shader, arrays, {"n": n}, (2, 1, 1))["watch"])

    assert watch(OUTSIDE, 0) == [0, 0, 0, 0]
    line, index, size, endless = watch(OUTSIDE, 5)
    assert (line, size, endless) == (7, 16, 0) and index >= 16
    assert watch(OUTSIDE, -1)[:2] == [7, -1]
    assert watch(ENDLESS, 2)[3] == 0
    assert watch(ENDLESS, 0)[3] == 5


def test_tint_accepts_all_kernels_in_all_styles(tint):
    for style in STYLES.values():
        for kernel in LADDER:
            full = catalog[kernel].validate({})
            shader = web.translate(catalog[kernel].text(full), "gemm", full, style)
            tint.device.create_shader_module(code=shader.code)
        for name in ("pad", "transpose", "transpose_naive", "axpby", "range"):
            shader = web.translate(sources.read(f"support/{name}.cl"), name, {}, style)
            tint.device.create_shader_module(code=shader.code)


def test_tint_refuses_a_barrier_that_not_all_reach(tint):
    """naga lets it pass, and computes something."""
    text = (
        "__kernel __attribute__((reqd_work_group_size(8, 1, 1)))\n"
        "void k(__global float* x) { if (get_local_id(0) < 4) barrier(1); x[0] = 1.0f; }"
    )
    with pytest.raises(Exception, match="uniform"):
        tint.device.create_shader_module(code=web.translate(text).code)
