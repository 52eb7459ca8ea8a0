"""The ladder's kernels as CUDA C++."""

import re

import in_cuda
import pytest

from gemmlab import catalog
from lessons.cuda import TRANSLATION

#: Words of OpenCL C in kernel 8 that are behind an #if which CUDA does not take.
BEHIND = {"__NV_CL_C_VERSION", "get_sub_group_local_id"}


@pytest.mark.parametrize("number", in_cuda.KERNELS)
def test_a_translation_holds_nothing_that_cuda_cannot_read(number):
    """All that is OpenCL's is a macro in front; pointers into local arrays are ordinary ones."""
    text = in_cuda.translate(number)
    body = re.sub(r"//.*", "", text[len(TRANSLATION) :])
    for name, value in catalog[number].defaults.items():
        assert re.search(rf"#(?:define|ifndef) {name}\b.*", body)[0] == f"#define {name} {value}"
    assert not re.search(r"__local\s+\w+\s*\*", body)
    assert len(re.findall(r"__local\s+float\w*\s+\w+\[", body)) == (2 if number > 1 else 0)
    defined = set(re.findall(r"#define (\w+)", TRANSLATION)) | {"__attribute__"}
    needed = set(re.findall(r"\b(?:get_\w+|__\w+|barrier|restrict|reqd_work_group_size)\b", body))
    assert needed - defined == (BEHIND if number == 8 else set())
