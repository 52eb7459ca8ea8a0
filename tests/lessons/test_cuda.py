"""Chapter 8: the ladder's kernels as CUDA C++."""

import re

import pytest

from gemmlab import ParameterError, catalog
from gemmlab.catalog import sources
from lessons import cuda

#: Words of OpenCL C in kernel 8 that are behind an #if which CUDA does not take.
BEHIND = {"__NV_CL_C_VERSION", "get_sub_group_local_id"}


def code(text):
    return re.sub(r"//.*", "", text)


@pytest.mark.parametrize("number", cuda.KERNELS)
def test_a_translation_defines_the_parameters_first(number):
    first = catalog[number].params[0].name
    moved = {**catalog[number].defaults, first: 64}
    moved |= {"TSN": 64} if "TSN" in moved else {}
    text = cuda.translate(number, moved)
    assert text.startswith(cuda.TRANSLATION)
    for name, value in moved.items():
        lines = re.findall(rf"^#(?:define|ifndef) {name}\b.*$", text, re.M)
        assert lines[:2] == [f"#define {name} {value}", f"#ifndef {name}"]
    assert f"#define {first} 64\n" not in cuda.translate(number)


@pytest.mark.parametrize("number", cuda.KERNELS)
def test_a_translation_holds_nothing_that_cuda_cannot_read(number):
    """Local arrays are __shared__; a pointer into them must not be. All that is OpenCL's is a macro
    in front.
    """
    text = cuda.translate(number)
    body = code(text[len(cuda.TRANSLATION) :])
    assert not re.search(r"__local\s+\w+\s*\*", body)
    assert len(re.findall(r"__local\s+float\w*\s+\w+\[", body)) == (2 if number > 1 else 0)
    source = sources.read(catalog[number].file)
    pairs = zip(source.splitlines()[::-1], text.splitlines()[::-1], strict=False)
    changed = [old for old, new in pairs if old != new]
    assert len(changed) == (0 if number < 7 else 2)
    assert all(line.count("__local float*") == 2 for line in changed)
    defined = set(re.findall(r"#define (\w+)", cuda.TRANSLATION)) | {"__attribute__"}
    needed = set(re.findall(r"\b(?:get_\w+|__\w+|barrier|restrict|reqd_\w+)\b", body))
    assert needed - defined == (BEHIND if number == 8 else set())
    assert {"__kernel", "__global", "restrict", "reqd_work_group_size"} <= needed
    assert "#define __global\n" in text  # casts to __global pointers become plain ones


def test_a_translation_refuses_what_the_kernel_refuses():
    with pytest.raises(ParameterError, match="kernel 3 has no parameter 'WTP'.*did you mean WPT"):
        cuda.translate(3, {"WTP": 4})
    with pytest.raises(ParameterError, match="TS=4 is not a multiple of WPT=8"):
        cuda.translate(3, {"TS": 4})
    for kernel, params in ((4, {}), (11, {}), ("warp_tiling", {}), (7, {"WIDTH": 8})):
        with pytest.raises(ValueError, match="CUDA"):
            cuda.translate(kernel, params)
    with pytest.raises(ValueError, match="kernel must be one of"):
        cuda.translate(99)
