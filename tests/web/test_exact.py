"""What the translations compute, with the compilers of Firefox (naga) and Chrome (tint)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from conftest import FULL, lacking
from web.small_kernels import ITEMS, text
from web_rates import Host

from gemmlab import check, simt, web
from gemmlab.ladder import catalog, sources
from gemmlab.ladder.spec import Limits

LADDER = range(1, 14)
#: A GPU that any browser offers.
SMALL = Limits("a browser", 256, (256, 256), 32768, 4, asynchronous=False, warpgroups=False)


def settings(kernel: int, count: int) -> list[dict[str, int]]:
    """The setting that fits a small GPU, and a seeded sample of those offered."""
    spec = catalog[kernel]
    quick = [
        p
        for p in spec.sample(SMALL, 40 * count, seed=kernel)
        if math.prod(spec.units(p)) <= 128 * 128 * 32
    ]
    return [spec.fit(SMALL), *quick[: count - 1]]


def sizes(kernel: int, params) -> tuple[int, int, int]:
    """Two tiles in each direction, or odd sizes where the kernel takes any."""
    spec = catalog[kernel]
    m, n, k = spec.units(params)
    if spec.edges == "pad":
        return 2 * m, 2 * n, 2 * k
    rows, cols, depth = spec.tiles(params)
    return rows + 5, cols + 3, 2 * depth + 1


STYLES = {**web.STYLES, "watched": web.Style(watched=True)}


def host(backend: str, name: str) -> Host:
    try:
        return Host(backend, name)
    except (ImportError, RuntimeError) as error:
        lacking(f"no WebGPU through {backend} and {name}: {error}")


@pytest.fixture(scope="module")
def naga():
    """The compiler of Firefox, with a Vulkan that computes on the CPU."""
    return host("wgpu", "llvmpipe")


@pytest.fixture(scope="module")
def tint():
    """The compiler of Chrome, with the Vulkan driver that Debian's Chromium brings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VK_ICD_FILENAMES", "/usr/lib/chromium/vk_swiftshader_icd.json")
        return host("wgpudawn", "SwiftShader")


CASES = [
    (compiler, kernel, params, label)
    for compiler, labels in (("naga", list(STYLES)), ("tint", list(STYLES) if FULL else ["even"]))
    for kernel in LADDER
    for params in settings(kernel, 8 if FULL else 2)
    for label in labels
]


@pytest.mark.parametrize("compiler, kernel, params, label", CASES, ids=str)
def test_a_product_is_exact_and_framed(request, compiler, kernel, params, label):
    m, n, k = sizes(kernel, params)
    job = web.job(kernel, m, n, k, params, styles={label: STYLES[label]})
    a, b = check.exact_inputs(m, n, k)
    c, untouched = request.getfixturevalue(compiler).product(job, a, b)
    assert np.array_equal(c, a @ b)
    # a watched kernel reports what it does outside C, and is run without a frame
    assert untouched


#: Launches of supporting kernels, of ragged sizes: work-groups, and arguments in order.
X = np.arange(4003, dtype=np.float32)
MATRIX = {"P": 75, "Q": 50, "LD": 80, "offset": 3, "in": X}
SUPPORT = {
    "pad": ((3, 2, 1), {**MATRIX, "P_XL": 96, "Q_XL": 64}),
    "transpose": ((3, 2, 1), {**MATRIX, "Q_XL": 64}),
    "axpby": ((3, 1, 1), {"size": 1500, "alpha": 2.0, "x": X[:1500], "beta": 3.0, "y": X[-1500:]}),
}


@pytest.mark.parametrize("label", STYLES)
@pytest.mark.parametrize("compiler", ["naga", "tint"])
def test_support_kernels_do_what_the_simulator_says(request, compiler, label):
    gpu = request.getfixturevalue(compiler)
    for name, (groups, given) in SUPPORT.items():
        source = sources.read(f"support/{name}.cl")
        shader = web.translate(source, name, {}, STYLES[label])
        given = {**given, "out": np.full(96 * 64 + 8, np.nan, np.float32)}
        sizes = [g * s for g, s in zip(groups, shader.size, strict=True)]
        expected = simt.run(source, name, sizes, None, list(given.values()))
        assert expected.ok, expected.verdict
        arrays = {key: given.pop(key) for key in expected.arrays}
        got = gpu.run(shader, arrays, given, groups)["out"]
        assert np.array_equal(got, expected.arrays["out"], equal_nan=True), name


#: Of 200 seeds, few that say something new are run outside full runs.
SEEDS = range(200) if FULL else range(0, 200, 8)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_texts_do_what_the_simulator_says(naga, seed):
    source = text(seed)
    x = (np.arange(64) % 7 - 3).astype(np.float32)
    y = (np.arange(64, dtype=np.int32) * 37) % 41 - 15
    out, whole = np.zeros(2 * ITEMS, np.float32), np.zeros(2 * ITEMS, np.int32)
    expected = simt.run(source, "fuzz", (2 * ITEMS,), None, [x, y, out, whole])
    assert expected.ok, expected.verdict
    arrays = {"x": x, "y": y, "out": out, "whole": whole}
    for style in STYLES.values():
        got = naga.run(web.translate(source, style=style), arrays, {}, (2, 1, 1))
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


def test_a_watched_kernel_reports_the_access_and_the_loop_that_go_wrong(naga):
    watched = web.Style(watched=True)

    def watch(source, n):
        shader = web.translate(source, style=watched)
        arrays = {"x": np.zeros(16, np.float32)}
        return list(naga.run(shader, arrays, {"n": n}, (2, 1, 1))["watch"])

    assert watch(OUTSIDE, 0) == [0, 0, 0, 0]
    line, index, size, endless = watch(OUTSIDE, 5)
    assert (line, size, endless) == (7, 16, 0) and index >= 16
    assert watch(OUTSIDE, -1)[:2] == [7, -1]
    assert watch(ENDLESS, 2)[3] == 0
    assert watch(ENDLESS, 0)[3] == 5


def test_tint_refuses_a_barrier_that_not_all_reach(tint):
    """naga lets it pass, and computes something."""
    text = (
        "__kernel __attribute__((reqd_work_group_size(8, 1, 1)))\n"
        "void k(__global float* x) { if (get_local_id(0) < 4) barrier(1); x[0] = 1.0f; }"
    )
    with pytest.raises(Exception, match="uniform"):
        tint.device.create_shader_module(code=web.translate(text).code)
