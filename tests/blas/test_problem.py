"""A product on paper: the list of passes is what is launched, and the memory that is counted is what is needed."""

import random

import numpy as np
import pyopencl.array as cla
import pytest
from gemmlab.blas.operands import form, swapped
from texts import SMALL

from gemmlab import catalog, check, matmul
from gemmlab.blas import passes
from gemmlab.blas.problem import Layout, Operand, Problem, footprint, plan
from lessons import edges

KERNELS = [number for number, spec in catalog.items() if not spec.tensor]


@pytest.mark.parametrize("number", KERNELS)
def test_the_plan_is_what_is_launched(number, some_device, monkeypatch):
    """For random sizes and layouts; and the product is right."""
    rng, spec, launched = random.Random(number), catalog[number], []
    multiply = passes.Session.multiply

    def spied(self, kernel, problem, *rest):
        out = multiply(self, kernel, problem, *rest)
        launched.append(([name for name, _ in self.events], [step.kind for step in passes.planned(kernel, problem)]))
        return out

    monkeypatch.setattr(passes.Session, "multiply", spied)
    smallest = spec.minimum_sizes(spec.complete(SMALL[number]))
    for _ in range(12):
        m, n, k = (max(rng.choice((1, 7, 8, 16, 33)), least if spec.edges == "shift" else 1) for least in smallest)
        a, b = check.exact_inputs(n, m, k)
        a, b = (np.array(x, order=rng.choice("CF")) for x in (a, b))
        c = matmul(a, b, kernel=number, params=SMALL[number], device=some_device)
        assert check.exact(c, a, b).ok
    assert len(launched) == 12 and all(events == planned for events, planned in launched)


@pytest.mark.parametrize("rows, cols", [(5, 7), (1, 7), (5, 1), (1, 1)])
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("trans", (False, True))
@pytest.mark.parametrize("on_device", (False, True))
def test_an_operand_is_read_where_it_lies(rows, cols, order, trans, on_device, any_device):
    """Both readings, where there are two, give the same matrix."""
    x = np.array(np.arange(rows * cols, dtype=np.float32).reshape(rows, cols), order=order)
    operand = swapped("x", form(cla.to_device(any_device.queue, x) if on_device else x), trans)
    memory = x.ravel(order="K")
    wanted = x if trans else x.T
    for layout, matrix in ((operand.plain, wanted), (operand.transposed, wanted.T)):
        if layout is not None:
            columns = [memory[layout.offset + j * layout.ld :][: layout.rows] for j in range(layout.cols)]
            assert np.array_equal(np.array(columns).T.reshape(matrix.shape), matrix)
    assert operand.plain or operand.transposed
    assert (operand.plain and operand.transposed) or min(rows, cols) > 1


def test_nothing_is_counted_that_is_not_made():
    """65,536 cubed in whole tiles is three matrices, and no copies of them."""
    problem = Problem.compact(65536, 65536, 65536)
    for number in (11, "warp_tiling"):
        params = catalog[number].complete({"TRANSPOSED": 0})
        found = footprint(problem, plan(catalog[number], params, problem))
        assert sum(found.values()) == 3 * 65536**2, found
    assert sum(footprint(problem, plan(catalog[9], catalog[9].defaults, problem)).values()) == 4 * 65536**2


def test_what_is_counted_has_the_users_names():
    problem = Problem(33, 40, 50, Operand("left", None, Layout.compact(50, 33)), Operand.compact("right", 50, 40))
    found = footprint(problem, plan(catalog[3], catalog[3].defaults, problem))
    assert found == {
        "left": 33 * 50,
        "right": 50 * 40,
        "the result": 33 * 40,
        "left, transposed": 33 * 50,
        "left in whole tiles": 64 * 64,
        "right in whole tiles": 64 * 64,
        "the result in whole tiles": 64 * 64,
    }
    launches, more = edges.cost(3, catalog[3].defaults, 33, 40, 50)
    assert (launches, more) == (4, 4 * 3 * 64 * 64)
