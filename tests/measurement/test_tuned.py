"""What `auto` says is what `matmul` does."""

import numpy as np
import pytest

import gemmlab
from gemmlab.blas import routes


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("m, n, k", [(24, 40, 16), (300, 2, 500), (260, 250, 270)])
def test_auto_names_the_route_that_matmul_takes(any_device, monkeypatch, dtype, m, n, k):
    if dtype == "float64" and "double" not in any_device.features:
        pytest.skip("no double precision")
    taken, choose = [], routes.choose
    monkeypatch.setattr(routes, "choose", lambda *given: taken.append(choose(*given)) or taken[-1])
    gemmlab.clear_caches()  # plans are made again
    told = gemmlab.auto(m, n, k, device=any_device, dtype=dtype)
    gemmlab.matmul(np.ones((m, k), dtype), np.ones((k, n), dtype), device=any_device)
    assert (told.m, told.n, told.k, told.precision) == (m, n, k, dtype) and str(told.kernel) in str(
        told
    )
    route = taken[-1]
    assert (told.kernel, told.params) == (route.kernel, route.params)


def test_auto_refuses_what_it_cannot_explain(any_device):
    for given, words in (
        ({"dtype": "int32"}, "dtype must be one of float32, .*, not int32"),
        ({"dtype": "float64", "precision": "tf32"}, "precision='tf32'"),
    ):
        with pytest.raises(ValueError, match=words):
            gemmlab.auto(8, 8, 8, device=any_device, **given)
