"""Which kernel a product gets: for a reason, near the fastest on record, and right."""

import dataclasses
import json
from statistics import geometric_mean

import numpy as np
import pytest
from layouts import whole
from texts import H200

import gemmlab
from gemmlab.blas.choose import Choice, choose
from gemmlab.blas.layout import Batch, Matrix
from gemmlab.blas.product import Options, Product
from gemmlab.generate import candidates
from gemmlab.ladder import find, sources


@pytest.fixture
def gpu(any_device, fresh):
    """A device as the constants know it."""
    return dataclasses.replace(any_device, **H200)


def chosen(device, m, n, k, dtype="f4", transposed="", number=0, **options) -> Choice:
    """The choice for a column-major product, or for a batch of adjacent ones."""
    a = Matrix.compact(k, m).T if "a" in transposed else Matrix.compact(m, k)
    b = Matrix.compact(n, k).T if "b" in transposed else Matrix.compact(k, n)
    batch, dtype = Batch(number, (m * k, k * n)) if number else None, np.dtype(dtype)
    product = Product(a, b, Matrix.compact(m, n), batch=batch, dtype=dtype, result=dtype)
    return choose(product._replace(options=Options.of(**options)), device)


#: Products on an H200: the kernel, some of its parameters, and why.
REASONS = [
    ((1, 4096, 4096), {}, "narrow", {"ROWS": 1}, "one row: B is read once, and nothing is shared"),
    ((4096, 1, 4096), {}, "narrow", {"ROWS": 0}, "one column"),
    ((64, 64, 4096), {}, "warp_tiling", {"GROUPS": 132}, "few tiles and many steps are shared"),
    ((256, 256, 256), {}, "warp_tiling", {"GROUPS": 0}, "small tiles fill all units"),
    ((8192, 8192, 8192), {}, "warp_tiling", {"TSM": 256, "TSN": 128}, "tiles may be large"),
    ((1024, 1024, 17), {}, "warp_tiling", {"TAIL": 1}, "most of the last tile would be zeros"),
    ((1001, 1001, 1001), {}, "warp_tiling", {"WIDTH": 1}, "vectors of 4 do not fit a column"),
    ((64, 64, 64), {"number": 1000}, "warp_tiling", {"GROUPS": 0}, "one launch, whole tiles"),
    ((2048, 2048, 2048), {"dtype": "f8"}, "family", {"UNIT": 2}, "tensor cores for float64"),
    ((2048, 2048, 2048), {"dtype": "c8"}, "family", {"UNIT": 1}, "no tensor cores for complex64"),
    ((2048, 2048, 2048), {"dtype": "f2"}, "family", {"UNIT": 3}, "warpgroups for float16"),
    ((4096, 4096, 4096), {"precision": "tf32x3"}, "warpgroups", {"PARTS": 2}, "much faster"),
    ((64, 64, 64), {"precision": "tf32x3"}, "warp_tiling", {}, "the range check takes longer"),
    ((1000, 1000, 1000), {"edges": "guard"}, 12, {}, "the kernel that guards edges"),
    ((1000, 1000, 1000), {"edges": "split"}, "family", {}, "only generated kernels split C"),
]


@pytest.mark.parametrize(("sizes", "options", "kernel", "params", "why"), REASONS)
def test_a_product_gets_a_kernel_for_a_reason(sizes, options, kernel, params, why, gpu):
    found = chosen(gpu, *sizes, **options)
    assert found.kernel == kernel and params.items() <= found.params.items(), why


def test_how_a_kernel_multiplies(gpu, any_device):
    assert chosen(gpu, 1000, 1000, 1000, transposed="ab").swapped, "no pass is needed"
    assert not chosen(gpu, 1000, 1000, 1000, transposed="a").swapped
    assert chosen(gpu, 64, 64, 64, number=1000).whole_batch
    assert chosen(gpu, 100, 100, 100, edges="split").in_parts
    cpu = dataclasses.replace(any_device, kind="CPU")
    assert chosen(cpu, 300, 300, 300).kernel == "packed"
    assert chosen(cpu, 30, 30, 30, number=100).kernel == "family", "too small for a launch each"


@pytest.mark.parametrize("precision", candidates.IMPLIED)
def test_the_choice_is_near_the_fastest_on_record(precision, gpu):
    """Of all candidates that were timed on an H200; in TF32 of those on tensor cores."""
    path = sources.folder("results") / "nvidia_h200_candidates.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    kernels = [(name, tuple(params.items())) for name, params in record["kernels"]]
    shares = []
    for shape in record["shapes"]:
        taken = {kernels[number]: least for number, least, *_ in shape[precision]["runs"]}
        found = candidates.kernel_for(gpu, tuple(shape["sizes"]), precision=precision)
        if find(found[0]).tensor == (precision != "float32"):
            shares.append(min(taken.values()) / taken[found])
    assert len(shares) > 10
    assert geometric_mean(shares) > 0.95 and min(shares) > 0.7


def test_a_product_that_no_kernel_supports_is_refused_with_the_reasons(any_device):
    """`Options.of` refuses these options earlier."""
    product = Product.compact(8, 8, 8)._replace(options=Options(kernel=3, edges="split"))
    with pytest.raises(ValueError, match="kernel=3, edges='split'"):
        choose(product, any_device)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "float16"])
def test_a_choice_can_be_named(some_device, dtype):
    """The kernel and parameters that `auto` reports give the same result when they are named."""
    if dtype == "float64" and "double" not in some_device.features:
        pytest.skip("no double precision")
    for m, n, k in ((24, 40, 16), (90, 2, 50)):
        found = gemmlab.auto(m, n, k, device=some_device, dtype=dtype)
        a, b = whole((m, k), 0, dtype), whole((k, n), 1, dtype)
        params = None if found.kernel == "packed" else found.params
        named = gemmlab.matmul(a, b, kernel=found.kernel, params=params, device=some_device)
        assert np.array_equal(named, a @ b) and str(found.kernel) in str(found)
        assert np.array_equal(gemmlab.matmul(a, b, device=some_device), named)
        assert found.refused.keys() < {"Packed", "Ladder", "Generated"}
