"""What a plan launches are the passes on paper, with the memory that these need."""

import dataclasses
import itertools
import random

import numpy as np
import pyopencl.array as cla
import pytest
from configurations import SMALL_TILE
from conftest import in_part
from layouts import whole
from texts import SMALL

import gemmlab
from gemmlab import catalog, matmul
from gemmlab.blas.arrays import layout_on_device
from gemmlab.blas.layout import Batch, Matrix
from gemmlab.blas.plan import PlanBuilder, multiply_in_passes
from gemmlab.blas.product import Product, passes
from gemmlab.blas.run import Session, session_of
from gemmlab.generate import candidates
from gemmlab.opencl.launch import Kernel

pytestmark = pytest.mark.optimised(False)

KERNELS = [number for number, spec in catalog.items() if not spec.tensor]
GENERATED = {"kernel": "family", "params": SMALL_TILE}


@pytest.fixture
def launched(monkeypatch) -> list[str]:
    """The names of the commands that are enqueued from now on."""
    names: list[str] = []
    run = Session.run

    def spied(*arguments):
        events = run(*arguments)
        names.extend(name for name, _ in events)
        return events

    monkeypatch.setattr(Session, "run", spied)
    return names


@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", KERNELS)
def test_the_plan_is_what_is_launched(number, some_device):
    """For random sizes and layouts."""
    rng, spec, params = random.Random(number), catalog[number], SMALL[number]
    kernel = Kernel(spec, params, some_device, some_device.context)
    smallest = spec.minimum_sizes(spec.complete(params))
    for _ in range(6):
        m, n, k = (
            max(rng.choice((1, 7, 8, 16, 33)), least if spec.edges == "shift" else 1)
            for least in smallest
        )
        a, b = (x.copy(order=rng.choice("CF")) for x in (whole((m, k)), whole((k, n), 1)))
        x, y = (cla.to_device(some_device.queue, z) for z in (a, b))
        left, right = (Matrix.of("x", layout_on_device(z), z.base_data) for z in (x, y))
        out = cla.empty(some_device.queue, (m, n), np.float32)
        product = Matrix.compact(n, m, out.base_data).T
        product = Product(left._replace(name="a"), right._replace(name="b"), product).swapped
        builder = PlanBuilder(some_device.queue, some_device)
        multiply_in_passes(builder, product, kernel)
        planned, plan = passes(spec, kernel.params, product, some_device.features), builder.finish()
        assert [name for name, _ in plan.commands] == [step.kind for step in planned]
        assert plan.size_bytes == 4 * sum(step.out.room for step in planned if step.out)
        session_of(some_device.queue, some_device).run(plan)
        assert np.array_equal(out.get(), a @ b)


@pytest.mark.parametrize(
    "m, n, k, params",
    [(64, 32, 48, {}), (67, 45, 33, {"WIDTH": 1}), (66, 34, 16, {"TRANSPOSED": 1})],
)
def test_two_transposed_operands_need_no_pass(m, n, k, params, some_device, monkeypatch, launched):
    """On a GPU "auto" multiplies them in the opposite order, and stores the transpose."""
    small = {"TSM": 32, "TSN": 32, "TSK": 8, "WPTM": 4, "WPTN": 4, "TRANSPOSED": 0, **params}
    chosen = "warp_tiling", tuple(catalog["warp_tiling"].complete(small).items())
    monkeypatch.setattr(candidates, "kernel_for", lambda *call: chosen)
    gpu = dataclasses.replace(some_device, kind="GPU")
    a, b, c = whole((m, k)), whole((k, n), 1), np.ones((m, n), np.float32)
    for x, y in itertools.product("CF", repeat=2):
        u, v = np.array(a, order=x), np.array(b, order=y)
        launched.clear()
        assert np.array_equal(matmul(u, v, device=gpu), a @ b), (x, y)
        fits = not params.get("TRANSPOSED") and (n % 4 == 0 or params.get("WIDTH") == 1)
        if (x, y) == ("F", "F") and fits:
            assert launched == ["gemm"]
        assert np.array_equal(gemmlab.sgemm(2, u, v, 3, c, device=gpu), 2 * (a @ b) + 3), (x, y)


def test_a_batch_on_paper():
    """Its products are those of the arrays, in their order, in launches of two at most."""
    rng = random.Random(0)
    for _ in range(300):
        shape = tuple(rng.choice((1, 2, 3)) for _ in range(rng.randrange(1, 5)))
        steps = [tuple(rng.choice((0, 2, 6)) for _ in shape) for _ in "ab"]
        wanted = [tuple(np.dot(index, own) for own in steps) for index in np.ndindex(*shape)]
        batch = Batch.over(shape, *steps)
        assert [(a, b) for a, b, *_ in batch.launches(1)] == wanted
        launches = list(batch.launches(2))
        assert wanted == [
            (a + i * batch.steps[0], b + i * batch.steps[1])
            for a, b, _, number in launches
            for i in range(number)
        ]
        assert all(number <= 2 for *_, number in launches)


def test_a_batch_is_one_launch_if_its_matrices_are_at_equal_distances(some_device, launched):
    for left, right, launches in (
        ((3, 5, 4), (3, 4, 6), 1), ((3, 5, 4), (4, 6), 1),
        ((2, 3, 5, 4), (2, 3, 4, 6), 1), ((2, 3, 5, 4), (3, 4, 6), 2),
    ):  # fmt: skip
        launched.clear()
        arrays = (cla.to_device(some_device.queue, whole(shape)) for shape in (left, right))
        matmul(*arrays, **GENERATED)
        assert launched == launches * ["gemm"]
    a, b = whole((3, 20, 7)), whole((7, 5), 1)  # adjacent left matrices are one tall matrix
    launched.clear()
    assert np.array_equal(matmul(a, b, device=some_device, kernel=3, params=SMALL[3]), a @ b)
    assert launched.count("gemm") == 1


@pytest.mark.parametrize(
    "number", in_part((n for n in KERNELS if not catalog[n].takes_workspace), 5)
)
def test_a_batch_of_whole_tiles_is_one_launch_of_the_ladder(number, some_device, launched):
    spec, params = catalog[number], catalog[number].complete(SMALL[number])
    (rows, cols, depth), turned = spec.tiles(params), spec.wants_transposed(params)
    n, m, k = 2 * rows, cols, 2 * depth
    for left, right in (((3, m, k), (3, k, n)), ((m, k), (3, k, n)), ((2, 3, m, k), (2, 3, k, n))):
        a, b = whole(left), whole(right, 1)
        x = a.swapaxes(-1, -2).copy() if turned else a  # no pass is needed
        x, y = (cla.to_device(some_device.queue, z) for z in (x, b))
        x = x.transpose((*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)) if turned else x
        launched.clear()
        assert np.array_equal(matmul(x, y, kernel=number, params=params).get(), a @ b)
        assert launched == ["gemm"], (left, right)
