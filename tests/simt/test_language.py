"""OpenCL C 1.2 as the runtimes take it: values, refusals, findings, and what is not known."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import DEVICES
from simt.cases import line_of
from simt.constructs import CONSTRUCTS

from gemmlab import simt

TEMPLATE = """{before}
__kernel __attribute__((reqd_work_group_size(8, 1, 1)))
void construct(__global const float* x, __global const int* y, __global {type}* out)
{{
    const int g = get_global_id(0);
    __local float l[8];
    {type} r = 0;
    {body}
    out[g] = r;
}}
"""
X, Y = np.arange(8, dtype=np.float32) + 0.5, np.arange(8, dtype=np.int32) - 3
DTYPES = {"int": "i4", "long": "i8", "ulong": "u8", "float": "f4", "float4": "f4"}


def written(case) -> str:
    of, before, body, *_ = case
    return TEMPLATE.format(type=of, before=before, body=body)


def simulated(case, order: str = "lockstep") -> simt.Run:
    out = simt.Empty(32 if case[0] == "float4" else 8, DTYPES[case[0]])
    return simt.run(written(case), "construct", (8,), None, [X, Y, out], order=order)


@pytest.mark.parametrize("case", CONSTRUCTS, ids=range(len(CONSTRUCTS)))
def test_a_construct_has_the_value_that_runtimes_compute(case):
    for order in ("lockstep", "warps"):
        run = simulated(case, order)
        assert run.ok, run.verdict
        assert np.allclose(run.arrays["out"], case[3], rtol=1e-6, atol=0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", DEVICES)
def test_the_values_are_those_of_a_runtime(name):
    import pyopencl as cl

    device = DEVICES[name]
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    for case in CONSTRUCTS[:: 1 if device.kind == "CPU" else 8]:
        out = np.zeros(32 if case[0] == "float4" else 8, DTYPES[case[0]])
        buffers = [cl.Buffer(device.context, flags, hostbuf=v) for v in (X, Y, out)]
        program = cl.Program(device.context, written(case)).build(options=["-cl-std=CL1.2"])
        program.construct(device.queue, (8,), (8,), *buffers)
        cl.enqueue_copy(device.queue, out, buffers[2])
        assert np.allclose(out, case[3], rtol=1e-4, atol=0), case  # half_... are not exact


#: What every compiler refuses: text before the kernel, statements (or None: the whole text stands before), and a part
#: of the line in which the mistake is.
REFUSED = [
    ("", "if (g) {\n __local int t[4]; t[0] = 1; }", "__local int t"),
    ("void f() {\n __local int t[4]; }", "f();", "__local int t"),
    ("const int N = 4;", "r = N;", "const int N"),
    ("int n = 4;", "r = n;", "int n = 4"),
    ("", "x[g] = 1;", "x[g] = 1"),
    ("", "const float4 v = (float4)(1);\n v.x = 2;", "v.x = 2"),
    ("__constant int t[2] = {1, 2};", "t[0] = 1;", "t[0] = 1"),
    ("", "static int s;", "static int"),
    ("", "register int s = 1;", "register int"),
    ("", "float2 v = (float2)(1) * 0.5;", "* 0.5"),
    ("", "r = min(get_global_id(0), 4);", "min("),
    ("", "r = sqrt(g);", "sqrt(g)"),
    ("", "r = clamp(get_local_id(0), 0, 3);", "clamp("),
    ("int f(int *p) { return *p; }", "r = f(y);", "f(y)"),
    ("int f(int *p) { return *p; }", "r = f((int*)l);", "(int*)l"),
    ("", "switch (g) { case 1: break;\n case 1: break; }", "case 1: break; }"),
    ("", "float f = 1f;", "1f"),
    ("", "r = 08;", "08"),
    ("", "float f = 1; f += (float2)(1);", "f += "),
    ("", "int4 v = (int4)(1); float4 w = v;", "float4 w"),
    ("", "r = (float2)(1, 2) ? 1 : 2;", "? 1 : 2"),
    ("", "int2 c = (int2)(1); float4 v = c ? (float4)(1) : (float4)(2);", "c ?"),
    ("", "goto nowhere;", "nowhere"),
    ("", "r = f2(3);", "f2(3)"),
    ("", "r = g.x;", "g.x"),
    ("", "int a[2]; a = 0;", "a = 0"),
    ("", "float4 v; v.xx = (float2)(1);", "v.xx"),
    ("", "float4 v; r = &v.x == 0;", "&v.x"),
    ("", "3 = g;", "3 = g"),
    ("", "if ((float4)(1)) r = 1;", "if ((float4"),
    ("", "int r = 1; ", "int r = 1; "),
    ("int f(int a) { return a; }\nint f(float a) { return 1; }", "r = f(1);", "f(float"),
    ("int f(int a) { return; }", "r = f(1);", "return;"),
    ("struct S { int a; };", "struct S s; r = s.b;", "s.b"),
    ("", "struct T t;", "struct T t"),
    ("#define F(a) a", "r = F(1, 2);", "F(1, 2)"),
    ("#define P(a) +##a", "r = P(1);", "P(1)"),
    ("#error no", "r = 1;", "#error"),
    ("#if 1 +\n#endif", "r = 1;", "#if"),
    ("", "__local int t = 3;", "__local int t"),
    ("__kernel void k(size_t n) {}", "r = 1;", "size_t n"),
    ("__kernel void k(int *p) {}", "r = 1;", "int *p"),
    ("__kernel void k(__global int **p) {}", "r = 1;", "**p"),
    ("__kernel int k() { return 1; }", "r = 1;", "__kernel int"),
    ("", "r = *g;", "*g"),
    ("", "r = as_short(1);", "as_short"),
    ("", "r = convert_float2((float4)(1)).x;", "convert_float2"),
    ("", "continue;", "continue"),
    ("", "float f = 1 % 2.0f;", "2.0f"),
    ("", "__global int *p = l;", "= l"),
    ("", "const int c; r = 1;", None),
    ("", "int n = g; int a[n];", "a[n]"),
]


@pytest.mark.parametrize("before, body, part", [c for c in REFUSED if c[2]])
def test_what_every_compiler_refuses_is_refused(before, body, part):
    source = written(("int", before, body))
    with pytest.raises(simt.TextError) as caught:
        simulated(("int", before, body))
    assert caught.value.known, caught.value
    assert caught.value.line == line_of(source, part), caught.value
    assert "did you mean" not in caught.value.message or before.startswith("struct")


#: Valid texts that the simulator cannot run: it says so, and where.
UNKNOWN = [
    ("__kernel void k(read_only image2d_t i) {}\nint f(read_only image2d_t i) { return get_image_width(i); }", "r = 1;", None),
    ("", "asm(\"nop\");", "asm"),
    ("struct B { int a : 3; };", "r = 1;", "a : 3"),
    ("", "switch (g) { case 0: if (r) {\n case 1: r = 2; } }", "case 1"),
    ("typedef int (*F)(int);", "r = 1;", "(*F)"),
]


@pytest.mark.parametrize("before, body, part", UNKNOWN)
def test_what_is_not_known_is_said(before, body, part):
    case = ("int", before, body)
    if part is None:  # it stands in a function that nobody calls
        assert simulated(case).ok
        return
    with pytest.raises(simt.TextError) as caught:
        simulated(case)
    assert not caught.value.known and "not known to this simulator" in caught.value.message
    assert caught.value.line == line_of(written(case), part)
