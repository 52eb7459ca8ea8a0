"""A kernel that fits only smaller work-groups, when it is compiled, gives way to another one."""

import numpy as np
import pytest

import gemmlab
from gemmlab import ParameterError, check
from gemmlab.opencl.build import Built

pytestmark = pytest.mark.optimised(False)


@pytest.fixture(params=[64, 16])
def limit(request, monkeypatch, fresh):
    """Every kernel as compiled fits so many work-items, as on Mesa 22.3."""
    few = property(lambda self: request.param, lambda self, value: None)
    monkeypatch.setattr(Built, "work_group_limit", few, raising=False)
    return request.param


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 50, 7), (70, 33, 40)])
def test_products_are_right(dtype, shape, limit, device):
    m, n, k = shape
    rng = np.random.default_rng(m)
    a, b = rng.integers(-3, 4, (m, k)).astype(dtype), rng.integers(-3, 4, (k, n)).astype(dtype)
    assert (gemmlab.matmul(a, b, device=device) == a @ b).all()
    several = np.stack([a, a + 1])
    assert (gemmlab.matmul(several, b, device=device) == several @ b).all()


def test_defaults_shrink_and_chosen_parameters_are_refused(limit, device):
    a, b = check.exact_inputs(40, 50, 60)
    assert check.exact(gemmlab.matmul(a, b, kernel=6, device=device), a, b).ok
    result = gemmlab.measure(6, 40, device=device, repeats=1)
    assert result.ok and np.prod(gemmlab.catalog[6].local_size(result.params)) <= limit
    large = {"TSM": 64, "TSN": 64, "WPTM": 4, "WPTN": 4}
    for call in (
        lambda: gemmlab.kernel(6, large, device),
        lambda: gemmlab.matmul(a, b, kernel=6, params=large, device=device),
        lambda: gemmlab.measure(6, 40, params=large, device=device),
    ):
        with pytest.raises(ParameterError, match=f"at most {limit} work-items"):
            call()
