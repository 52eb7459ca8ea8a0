"""OpenCL C 1.2 as the runtimes take it: values, refusals, findings, and what is not known.

constructs.txt holds what every compiler takes: type of r, statements, and the values of r as PoCL
and Intel's runtime compute them (one value: for all). x holds eight floats (0.5, 1.5, ...), y eight
ints (-3, -2, ...), l is an array of eight floats in local memory, and g is the work-item's number.
"""

from __future__ import annotations

import ctypes
import math
import os
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from microscope.harness import lacking, line_of, runtimes

import clscope
from clscope import text
from clscope.printing import printed

TEMPLATE = """{before}
__kernel __attribute__((reqd_work_group_size(8, 1, 1)))
void {name}(__global const float* x, __global const int* y, __global {type}* out)
{{
    const int g = get_global_id(0);
    __local float l[8];
    {type} r = 0;
    {body}
    out[g] = r;
}}
"""
X, Y = np.arange(8, dtype=np.float32) + 0.5, np.arange(8, dtype=np.int32) - 3
DTYPES = {
    **{"int": "i4", "uint": "u4", "short": "i2", "uchar": "u1", "long": "i8", "ulong": "u8"},
    **{"float": "f4", "double": "f8", "float4": "f4"},
}


def constructs() -> list[tuple[str, str, str, list[float]]]:
    """Type of r, text before the kernel, statements, values; lines with a space go on."""
    cases, before = [], ""
    text = Path(__file__).with_name("constructs.txt").read_text().strip()
    for line in re.split(r"\n(?! )", text):
        of, _, case = line.partition(": ")
        body, _, values = case.rpartition("-->")
        if of == "before":
            before += case + "\n"
            continue
        cases.append((of, before.strip(), body, [float(value) for value in values.split()]))
        before = ""
    return cases


CHAIN = " else ".join(f"if (a == {i}) r = {i} + 2;" for i in range(1, 60))
TERMS = " + ".join(f"(y[g] & {i})" for i in range(120))
RETURNS = " ".join(f"if (a == {i}) return {i + 3};" for i in range(100))
CONSTRUCTS = [
    *constructs(),
    ("int", "", f"int a = y[g]; {CHAIN}", [0, 0, 0, 0, 3, 4, 5, 6]),
    ("int", "", f"r = {TERMS};", [7020, 7080, 7140, 0, 60, 120, 180, 240]),
    ("int", f"int f(int a) {{ {RETURNS} return 0; }}", "r = f(g);", [3, 4, 5, 6, 7, 8, 9, 10]),
    ("int", "#define LONG_ONE 1 + \\\r\n 2", "int name = LONG_ONE; r = name;", [3]),
]


def written(case, name: str = "construct") -> str:
    of, before, body, *_ = case
    return TEMPLATE.format(type=of, before=before, body=body, name=name)


def simulated(case, order: str = "lockstep") -> clscope.Run:
    out = clscope.Empty(32 if case[0] == "float4" else 8, DTYPES[case[0]])
    return clscope.run(written(case), "construct", (8,), None, [X, Y, out], order=order)


@pytest.mark.parametrize("case", CONSTRUCTS, ids=range(len(CONSTRUCTS)))
def test_a_construct_has_the_value_that_runtimes_compute(case):
    for order in ("lockstep", "warps"):
        run = simulated(case, order)
        assert run.ok, run.verdict
        assert np.allclose(run.arrays["out"], case[3], rtol=1e-6, atol=0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", runtimes() or [""])
def test_the_values_are_those_of_a_runtime(name):
    runtime = runtimes()[name] if name else lacking("no OpenCL runtime")
    # to compile a program takes longer than a kernel in it
    alone = {f"construct_{i}": case for i, case in enumerate(CONSTRUCTS) if not case[1]}
    together = "\n".join(written(case, kernel) for kernel, case in alone.items())
    sources = [(together, kernel, case) for kernel, case in alone.items()]
    sources += [(written(case), "construct", case) for case in CONSTRUCTS if case[1]]
    for source, kernel, case in sources:
        out = np.zeros(32 if case[0] == "float4" else 8, DTYPES[case[0]])
        *_, out = runtime.launch(source, kernel, (8,), (8,), [X, Y, out])
        assert np.allclose(out, case[3], rtol=1e-4, atol=0), case  # half_... are not exact


#: Valid texts that the simulator cannot run: it says so, and where. None: in a function that nobody
#: calls it does not matter.
UNKNOWN = [
    ("__kernel void k(read_only image2d_t i) {}\n"
     "int f(read_only image2d_t i) { return get_image_width(i); }", "r = 1;", None),
    ("", 'asm("nop");', "asm"),
    ("struct B { int a : 3; };", "r = 1;", "a : 3"),
    ("", "switch (g) { case 0: if (r) {\n case 1: r = 2; } }", "case 1"),
    ("typedef int (*F)(int);", "r = 1;", "(*F)"),
]  # fmt: skip


@pytest.mark.parametrize("before, body, part", UNKNOWN)
def test_what_is_unknown_is_named(before, body, part):
    case = ("int", before, body)
    if part is None:
        assert simulated(case).ok
        return
    with pytest.raises(clscope.TextError) as caught:
        simulated(case)
    assert not caught.value.known and "not known to this simulator" in caught.value.message
    assert caught.value.line == line_of(written(case), part)


FINDINGS = Path(__file__).with_name("findings.txt").read_text().splitlines()


@pytest.mark.parametrize("case", FINDINGS)
def test_what_is_wrong_is_found_and_what_is_right_is_not_accused(case):
    """Each line: the kind of the first finding, or several, or none; and statements."""
    kinds, _, body = case.partition(": ")
    for order in ("lockstep", "warps"):
        run = simulated(("int", "", body), order)
        first = next(iter(run.findings), run.unfinished)
        assert (first.kind if first else "none") in kinds.split("|"), run.verdict


@pytest.mark.parametrize("form, args, expected", [
    ("%d|%+d|%x|%c|%%|%i", "3, 5, -1, 'a', -7", "3|+5|ffffffff|a|%|-7"),
    ("%v4hlf|%v2d|%v4hhu|%ld", "(float4)(1, 2, 3, 4), (int2)(1, -2), (uchar4)(200), -5L",
     "1.000000,2.000000,3.000000,4.000000|1,-2|200,200,200,200|-5"),
    ("\xfc%3.3d", "7", "\xfc007"),
])  # fmt: skip
def test_printf_prints_as_c_does(form, args, expected):
    run = simulated(("int", "", f'if (g == 0) printf("{form}", {args});'))
    assert run.printed == [expected]


@pytest.mark.skipif(os.name == "nt", reason="C's printf is another library there")
@settings(max_examples=2000, deadline=None, derandomize=True)
@given(
    flags=st.text("-+ #0", max_size=3),
    width=st.sampled_from(["", "3", "12"]),
    precision=st.sampled_from(["", ".", ".0", ".3", ".6"]),
    kind=st.sampled_from("dioxXufeEgG"),
    whole=st.sampled_from([0, 1, -1, 7, 255, -300, 2**31 - 1, -(2**31)]),
    number=st.sampled_from([0.0, -0.0, 1.5, -2.25, 1e10, 3e-7, math.inf, -math.inf, 123456.789]),
)
def test_numbers_are_printed_as_by_the_c_library(flags, width, precision, kind, whole, number):
    form = f"%{flags}{width}{precision}{kind}"
    is_whole = kind in "dioxXu"
    # two forms that Python prints in its own way
    assume(not (kind == "o" and "#" in flags) and (whole or precision not in (".", ".0")))
    buffer = ctypes.create_string_buffer(100)
    given = ctypes.c_int(whole) if is_whole else ctypes.c_double(number)
    ctypes.CDLL(None).snprintf(buffer, 100, form.encode(), given)
    kinds = ["int" if is_whole else "double"]
    ours = printed(f'"{form}"', [whole if is_whole else number], kinds)
    assert ours == buffer.value.decode()


DOUBLING = "\n".join(["#define A0 +1", *(f"#define A{i} A{i - 1} A{i - 1}" for i in range(1, 40))])


@pytest.mark.parametrize("body, message", [
    ("float a[1000000]; a[0] = 1; r = a[0];", None),
    ("__local float a[1000000000]; a[0] = 1;", None),
    ("r = 0 A39;", "more than 10,000 words"),
    ('printf("%1000000000d", 1);', ""),
])  # fmt: skip
def test_nothing_takes_all_memory(body, message, monkeypatch):
    monkeypatch.setattr(text, "MOST_TOKENS", 10_000)
    case = ("int", DOUBLING, body)
    if message is None:
        with pytest.raises(MemoryError):
            clscope.run(written(case), None, (800,), None, [X, Y, clscope.Empty(800, "i4")])
    elif message:
        with pytest.raises(clscope.TextError, match=message):
            simulated(case)
    else:
        assert len(simulated(case).printed[0]) == 10_000
