"""Texts of the kernels and what was recorded of them, without a device."""

import pytest

from gemmlab import catalog, model
from gemmlab.ladder import sources
from gemmlab.measurement import records
from gemmlab.opencl import ptx
from lessons import sweeps


@pytest.mark.parametrize("number", list(catalog)[1::3])
def test_a_difference_tells_both_texts(number):
    """With enough context it holds every line of both, without the headers, empty lines and
    indentation.
    """
    assert catalog[1].before == 0
    texts = [sources.read(catalog[n].file) for n in (catalog[number].before, number)]
    told = sources.diff(*texts, context=10_000).splitlines()[1:]
    for text, sign in zip(texts, "-+", strict=True):
        body = sources.body(text).splitlines()
        assert [line[1:].split() for line in told if line[0] in (" ", sign)] == [
            line.split() for line in body if line.strip()
        ]


def test_a_line_that_was_only_indented_is_no_difference():
    old, new = (
        "__kernel void f()\n{\n    go();\n}",
        "__kernel void f()\n{\n    if (a)\n        go();\n}",
    )
    told = sources.diff(old, new).splitlines()
    assert "         go();" in told and [line for line in told if line[0] in "+-"] == [
        "+    if (a)"
    ]


PTX = """
    ld.param.u64  %rd1, [gemm_param_3];
    ld.global.nc.v2.f32  {%f1, %f2}, [%rd1];
    ld.global.f32  %f3, [%rd2];
    st.shared.v2.f32  [%r1], {%f1, %f2};
    st.shared.f32  [%r1+8], %f3;
    bar.sync  0;
    ld.shared.f32  %f4, [%r2];
    ld.shared.v4.f32  {%f5, %f6, %f7, %f8}, [%r2+16];
    ld.shared.u32  %r3, [%r4];
    fma.rn.f32  %f9, %f4, %f5, %f9;
    fma.rn.f32  %f9, %f4, %f6, %f9;
    fma.rn.f64  %fd1, %fd2, %fd3, %fd1;
    mul.f32  %f10, %f9, %f9;
    barrier.sync  0;
    st.global.v4.f32  [%rd3], {%f9, %f9, %f9, %f10};
    st.global.f32  [%rd3+16], %f9;
"""


def test_instructions_are_counted_once_a_float():
    memory = {"local loads": 5, "local stores": 3, "global loads": 3, "global stores": 5}
    assert ptx.instructions(PTX) == {"multiply-adds": 2, **memory, "barriers": 2}
    assert ptx.instructions("") == dict.fromkeys(ptx.KINDS, 0)


@pytest.mark.parametrize("wpt", sweeps.curve("03 WPT"))
def test_a_compiler_loads_what_the_formula_says(wpt):
    """The recorded PTX of kernel 3: loads of local memory a multiply-add are 1 + 1/WPT, exactly."""
    rows = records.rows(series="instructions")
    counts = {row.metric: row.median for row in rows if row.params["WPT"] == wpt}
    per = model.loads(3, {"TS": 32, "WPT": wpt})
    assert counts["local loads"] / counts["multiply-adds"] == per["local"] == 1 + 1 / wpt
    # outside the loop over k: two loads and stores for each of WPT elements of a tile, WPT elements
    # of C
    assert counts["global loads"] == counts["local stores"] == 2 * wpt
    assert (counts["global stores"], counts["barriers"]) == (wpt, 2)
