"""Products through WebGPU, with the compilers of Firefox (naga) and Chrome (tint)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from microscope import gpus

import clscope
from clscope import wgsl
from clscope.wgsl.host import Host
from gemmlab import check, webgpu
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
        if math.prod(spec.multiples(p)) <= 128 * 128 * 32
    ]
    return [spec.fit(SMALL), *quick[: count - 1]]


def sizes(kernel: int, params) -> tuple[int, int, int]:
    """Two tiles in each direction, or odd sizes where the kernel takes any."""
    spec = catalog[kernel]
    m, n, k = spec.multiples(params)
    if spec.edges == "pad":
        return 2 * m, 2 * n, 2 * k
    rows, cols, depth = spec.tiles(params)
    return rows + 5, cols + 3, 2 * depth + 1


STYLES = {**wgsl.STYLES, "watched": wgsl.Style(watched=True)}


@pytest.fixture(scope="module")
def naga():
    return gpus.naga()


@pytest.fixture(scope="module")
def tint():
    return gpus.tint()


CASES = [
    (compiler, kernel, params, label)
    for compiler, labels in (("naga", list(STYLES)), ("tint", ["even"]))
    for kernel in LADDER
    for params in settings(kernel, 2)
    for label in labels
]


#: Floats of NaN behind C that no kernel may touch.
FRAME = 64


def product(gpu: Host, job, a, b) -> tuple[np.ndarray, bool]:
    """C = A B in the job's one style, and whether the frame behind C is untouched."""
    (shader,) = job.shaders.values()
    framed = np.full(job.m * job.n + FRAME, np.nan, np.float32)
    arrays = {"A": a.ravel("F"), "B": (b.T if job.transposed else b).ravel("F"), "C": framed}
    framed = gpu.run(shader, arrays, {"M": job.m, "N": job.n, "K": job.k}, job.groups)["C"]
    c = framed[: job.m * job.n].reshape(job.n, job.m).T
    return c, bool(np.isnan(framed[job.m * job.n :]).all())


@pytest.mark.sampled(5)
@pytest.mark.parametrize("compiler, kernel, params, label", CASES, ids=str)
def test_a_product_is_exact_and_framed(request, compiler, kernel, params, label):
    m, n, k = sizes(kernel, params)
    job = webgpu.job(kernel, m, n, k, params, styles={label: STYLES[label]})
    a, b = check.exact_inputs(m, n, k)
    c, untouched = product(request.getfixturevalue(compiler), job, a, b)
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
        shader = wgsl.translate(source, name, {}, STYLES[label])
        given = {**given, "out": np.full(96 * 64 + 8, np.nan, np.float32)}
        sizes = [g * s for g, s in zip(groups, shader.size, strict=True)]
        expected = clscope.run(source, name, sizes, None, list(given.values()))
        assert expected.ok, expected.verdict
        arrays = {key: given.pop(key) for key in expected.arrays}
        got = gpu.run(shader, arrays, given, groups)["out"]
        assert np.array_equal(got, expected.arrays["out"], equal_nan=True), name
