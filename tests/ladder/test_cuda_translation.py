"""Kernels as CUDA C++; what nvcc makes of them is measured on a GPU."""

import re

import pytest

from gemmlab.ladder import cuda, find


@pytest.mark.parametrize("number", cuda.TRANSLATED)
def test_a_translation_has_the_words_of_cuda_only(number):
    spec = find(number)
    for params in [spec.defaults, *spec.sample(count=5, seed=2)]:
        if params.get("WIDTH", 1) > 4:
            with pytest.raises(ValueError, match="at most 4 floats"):
                cuda.translate(spec, params)
            continue
        text = cuda.translate(spec, params)
        code = re.sub(r"//.*", "", text)
        assert code.count('extern "C" __global__ __launch_bounds__(') == 1
        rest = (
            r"__kernel|__global\b|__local|\brestrict|get_\w+_id|barrier\(CLK|__attribute__|floatX"
        )
        assert not re.search(rest, code), re.search(rest, code)
        for name, value in params.items():
            assert f"#define {name} {value} //" in text
        rows, cols = spec.local_size(params)
        assert f"dim3({rows}, {cols})>>>" in text
        assert ("__shared__" in code) == bool(spec.local_memory(params))
        for line in code.splitlines():  # functions besides the kernel
            if re.match(r"(static inline )?\w+ \w+\(", line) and " gemm(" not in line:
                assert "__device__" in line


def test_vectors_have_arithmetic_where_a_kernel_needs_it():
    four = cuda.translate(find(4), {"TS": 32, "WIDTH": 2})
    assert "make_float2(a.x*b, a.y*b)" in four and "float2 acc = vector(0.0f);" in four
    assert "float acc = (float)(0.0f);" in cuda.translate(find(4), {"TS": 32, "WIDTH": 1})
    assert "operator" not in cuda.translate(find(7), find(7).defaults)


def test_other_kernels_are_refused():
    with pytest.raises(ValueError, match="kernel 19 is not translated"):
        cuda.translate(find(19), find(19).defaults)
