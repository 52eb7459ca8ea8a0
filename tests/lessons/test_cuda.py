"""With the macros of chapter 08 in front, kernels of the ladder are CUDA C++."""

import re

import pytest

from gemmlab import catalog
from gemmlab.ladder import sources
from lessons.cuda import TRANSLATION

#: Words of OpenCL C in kernel 8 that are behind an #if which CUDA does not take.
BEHIND = {"__NV_CL_C_VERSION", "get_sub_group_local_id"}
WORDS = r"\b(?:get_\w+|__\w+|barrier|restrict|reqd_work_group_size)\b"


@pytest.mark.parametrize("number", (1, 2, 3, 5, 6, 7, 8, 9, 10))
def test_all_that_is_opencl_s_is_a_macro(number):
    body = re.sub(r"//.*", "", sources.read(catalog[number].file))
    defined = set(re.findall(r"#define (\w+)", TRANSLATION)) | {"__attribute__"}
    assert set(re.findall(WORDS, body)) - defined == (BEHIND if number == 8 else set())
