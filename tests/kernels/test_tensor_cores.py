"""precision=: what goes the ordinary way, and what the kernels compute; see `test_errors`, too."""

import dataclasses
import re

import numpy as np
import pyopencl.array as cla
import pytest
from texts import SMALL, edited

import gemmlab
from gemmlab import check, matmul
from gemmlab.ladder import sources
from gemmlab.opencl import build


@pytest.fixture
def able(some_device):
    """A device, as if it had tensor cores: the kernels spell the products out."""
    return dataclasses.replace(some_device, features=some_device.features | {"tensor"})


TENSOR = ["tensor_cores", "warpgroups"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kernel", TENSOR)
@pytest.mark.parametrize("precision", ("tf32", "tf32x3"))
def test_products_are_as_near_as_promised(kernel, precision, able):
    options = {"kernel": kernel, "params": SMALL[kernel], "precision": precision, "device": able}
    for m, n, k in ((70, 45, 90), (1, 1, 1), (33, 130, 17), (5, 3, 200)):
        a, b = check.exact_inputs(m, n, k)
        assert check.exact(matmul(a, b, **options), a, b).ok
        a, b = check.random_inputs(m, n, k, kind="normal")
        error = 2.0**-10 if precision == "tf32" else 2.0**-21
        bound = check.bound(a, b, product=error)
        exact = a.astype(np.float64) @ b.astype(np.float64)
        got = matmul(a, b, **options)
        assert check.compare(got, exact, bound).ok
        if precision == "tf32" and m * n > 1000:  # it would not do for float32
            assert not check.accuracy(got, a, b).ok
    none = matmul(np.ones((0, 3), np.float32), np.ones((3, 2), np.float32), **options)
    assert none.shape == (0, 2)


STRANGE = (-np.inf, np.nan, 1e-40, 2.0**-101, -(2.0**127))
ORDINARY = (0.0, -0.0, 2.0**-100, -1.6e38)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kernel", TENSOR)
@pytest.mark.parametrize("value", STRANGE + ORDINARY)
def test_numbers_that_do_not_split_go_the_ordinary_way(value, kernel, able):
    """In either operand, first or last in a block of something larger, whose infinities around it
    do not count. All others go another way, and their products differ.
    """
    options = {"kernel": kernel, "params": SMALL[kernel], "device": able}

    def block(x):
        return np.pad(x, ((2, 2), (3, 3)), constant_values=np.inf)[2:-2, 3:-3]

    rng = np.random.default_rng(0)
    for m, k, n in ((7, 600, 3), (5000, 5, 2), (3, 2, 4)):
        b = block(rng.standard_normal((k, n), np.float32))
        for place in ((0, 0), (-1, -1)):
            a = rng.standard_normal((m, k), np.float32)
            a[place] = value
            a = block(a)
            for x, y in ((a, b), (b.T, a.T)):
                with np.errstate(all="ignore"):
                    want = matmul(x, y, device=able)
                for precision in ("tf32", "tf32x3"):
                    got = matmul(x, y, precision=precision, **options)
                    assert np.array_equal(got, want, equal_nan=True) == (value in STRANGE)


LOST = {
    18: ("sum = mma(sum, a[i], SMALL, b[j], BIG, at_a, at_b);", ""),
    19: ("WGMMA(sum, x, BIG, Bsmall[now][k][0], 1, at_a);", ""),
    "tensor_cores": ("CUT(SMALL(a, a_big))*b_big + ", ""),
    "warpgroups": ("CUT(x - big)*Btile[now][k/4][n][k%4] + ", ""),
}


@pytest.mark.optimised(False)
@pytest.mark.system
@pytest.mark.parametrize("kernel", LOST)
def test_a_lost_product_of_parts_is_inaccurate_and_nothing_else(kernel, device):
    """The exact check cannot see it: its numbers fit one part."""
    source = edited(kernel, LOST[kernel])
    options = {"params": SMALL[kernel], "device": device, "repeats": 1}
    result = gemmlab.measure(kernel, 60, 70, 200, **options, source=source)
    said = "wrong: too inaccurate with random inputs: "
    assert not result.ok and result.verdict.startswith(said)
    for every in (0, 1, 3) if kernel == "tensor_cores" else ():  # how often the sum is moved
        options["params"] = SMALL[kernel] | {"EVERY": every}
        assert gemmlab.measure(kernel, 60, 70, 200, **options).ok


def test_a_last_column_without_room_behind_it_is_copied(some_device):
    """Columns 8 floats apart fit the kernel, but no memory follows the last one."""
    queue, params = some_device.queue, SMALL["warp_tiling"] | {"WIDTH": 4}
    a, b = check.exact_inputs(5, 6, 6)
    flat = np.full(4 * 8 + 6, np.nan, np.float32)
    for row in range(5):
        flat[8 * row : 8 * row + 6] = a[row]
    memory = cla.to_device(queue, flat).data
    tight = cla.Array(queue, (5, 6), np.float32, strides=(32, 4), data=memory)
    other = cla.to_device(queue, np.ascontiguousarray(b))
    for x, y, want in ((tight, other, a @ b), (other.T, tight.T, (a @ b).T)):
        got = matmul(x, y, kernel="warp_tiling", params=params)
        assert np.array_equal(got.get(), want)


# Instructions that OpenCL's compiler does not know


def test_hidden_instructions_are_comments_until_they_are_told():
    text = (
        ".version 9.0\n.target sm_90, texmode_independent\n{\n//@ "
        "wgmma.fence.sync.aligned;\n}\n\0rest"
    )
    told = build.for_hopper(text)
    assert (
        told == ".version 9.0\n.target sm_90a, texmode_independent\n{\nwgmma.fence.sync.aligned;\n}"
    )
    kernel = gemmlab.catalog["warpgroups"]
    lines = [
        line for line in sources.read(kernel.file).splitlines() if re.search(r"wgmma\.\w", line)
    ]
    assert len(lines) == 4
    for line in lines:  # the instruction, or the second line of its string
        assert f'"{build.HIDDEN}' in line or line.strip().startswith('"wgmma.mma_async'), line
