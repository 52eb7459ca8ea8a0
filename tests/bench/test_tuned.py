"""What `auto` says is what `matmul` does."""

import re

import numpy as np
import pytest

import gemmlab
from gemmlab.blas import packed, plan


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("m, n, k", [(24, 40, 16), (300, 2, 500), (260, 250, 270)])
def test_auto_names_the_text_that_matmul_runs(any_device, monkeypatch, dtype, m, n, k):
    if dtype == "float64" and "double" not in any_device.features:
        pytest.skip("no double precision")
    gemmlab.clear_caches()  # plans are made again
    ran, (build, written) = [], (packed.build, plan.written)
    monkeypatch.setattr(packed, "build", lambda *given, **more: ran.append(given[2]) or build(*given, **more))
    monkeypatch.setattr(plan, "written", lambda *given: ran.append(given[0].name) or written(*given))
    a, b = np.ones((m, k), dtype), np.ones((k, n), dtype)
    told = gemmlab.auto(m, n, k, device=any_device, dtype=dtype)
    gemmlab.matmul(a, b, device=any_device)
    assert (told.m, told.n, told.k, told.precision) == (m, n, k, dtype) and str(told.kernel) in str(told)
    if told.kernel == "packed":
        assert re.search(r"\w+gemm_\w+", told.why)[0] in ran
    elif told.kernel == "family":
        assert any("x".join(str(told.params[name]) for name in ("TSM", "TSN", "TSK")) in name for name in ran)


def test_auto_refuses_what_it_cannot_explain(any_device):
    for given, words in (
        ({"dtype": "complex64"}, "dtype must be float32 or float64, not complex64"),
        ({"dtype": "float64", "precision": "tf32"}, "precision='tf32'"),
    ):
        with pytest.raises(ValueError, match=words):
            gemmlab.auto(8, 8, 8, device=any_device, **given)
