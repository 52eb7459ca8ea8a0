"""What is strictly undefined is a finding where something depends on it, and else a note."""

from __future__ import annotations

import numpy as np
import pytest

import clscope

KERNEL = """\
__kernel void f(__global float* out, __global float* a)
{{
    __local float t[20], u[20];
    __local int n;
    const int l = get_local_id(0);
    if (l == 0) n = 0;
    t[l] = a[l];
    barrier(CLK_LOCAL_MEM_FENCE);
    {body}
}}
"""


def run(body: str) -> clscope.Run:
    source = KERNEL.format(body=body)
    return clscope.run(source, None, (16,), (16,), [clscope.Empty(16), np.ones(16, np.float32)])


HARMLESS = {
    "a halo that is masked": "float4 v = vload4(0, t + l); out[l] = v.x + (l < 15 ? v.y : 0);",
    "padding that is copied": "for (int i = l; i < 20; i += 16) u[i] = t[i];"
    " barrier(CLK_LOCAL_MEM_FENCE); out[l] = u[l];",
    "half a vector": "float4 v; v.xy = (float2)(1, 2); v += 1.0f; out[l] = v.x + v.y;",
    "a structure": "struct { float x, y; } s, r; s.x = 1; r = s; out[l] = r.x;",
    "a variable": "float x, y = x; out[l] = 1;",
}
HARMFUL = {
    "a store": "out[l] = t[l + 1];",
    "an index": "int i; out[i & 15] = 1;",
    "a branch": "if (t[l + 4] > 0) out[l] = 1;",
    "a loop": "while (t[l + 4] == 0) { }",
    "an atomic function": "int i; atomic_add(&n, i);",
    "two unset values": "out[l] = t[l + 1] * u[l];",
    "through another array": "u[l] = t[l + 4]; barrier(CLK_LOCAL_MEM_FENCE); out[l] = u[15 - l];",
    "in a second iteration": "for (int i = 0; i < 2; i++) { float x; if (!i) x = 1; out[l] = x; }",
}


@pytest.mark.parametrize("name", HARMLESS)
def test_values_that_do_not_matter(name):
    got = run(HARMLESS[name])
    assert got.ok, got.verdict
    assert all(note.kind == "unset" and note.line == 9 for note in got.notes)


@pytest.mark.parametrize("name", HARMFUL)
def test_values_that_matter(name):
    got = run(HARMFUL[name])
    assert {f.kind for f in got.findings} >= {"uninitialised"}, got.verdict
    assert {f.line for f in got.findings} == {9}


def test_only_the_array_that_matters_is_a_finding():
    got = run("float x; u[l] = x; out[l] = t[l + 1];")
    assert [f.array for f in got.findings] == ["t"]
    assert [note.array for note in got.notes] == ["x"]


def test_the_place_that_depends_on_a_value_is_named():
    got = run("float x;\n    float y = x;\n    out[l] = y;")
    assert (got.findings[0].line, got.findings[0].kind) == (10, "uninitialised")
    assert "line 11" in got.findings[0].message


def test_one_index_over_all_rows():
    got = run("__local float m[4][4]; m[0][l] = 1; barrier(1); out[l] = m[0][15 - l];")
    assert got.ok and {note.kind for note in got.notes} == {"row"}
    for wrong in ("m[1][l] = 1;", "m[0][l + 1] = 1;", "m[0][4] = 1;"):
        got = run(f"__local float m[4][4]; {wrong} out[l] = 1;")
        assert got.stop and got.stop.kind == "out of bounds", wrong


def test_the_product_of_a_hash_wraps_around():
    got = run("int h = l + 1; h *= 0x27d4eb2d; out[l] = h & 255;")
    assert got.ok and {note.kind for note in got.notes} == {"wraps"}
    got = run("int big = 65536 + l; out[l] = big * big;")
    assert got.findings[0].kind == "overflow"


def test_a_sum_by_compare_and_exchange():
    source = """\
void add(volatile __global float* p, float x) {
    union { uint u; float f; } old, sum;
    do { old.f = *p; sum.f = old.f + x; }
    while (atomic_cmpxchg((volatile __global uint*)p, old.u, sum.u) != old.u);
}
__kernel void f(__global float* out, __global const float* a) { add(out, a[get_global_id(0)]); }
"""
    a = np.arange(64, dtype=np.float32)
    for order in ("lockstep", "warps"):
        got = clscope.run(source, None, (64,), (16,), [np.zeros(1, np.float32), a], order=order)
        assert got.ok, got.verdict
        assert got.arrays["out"][0] == a.sum()
    plain = source.replace("__kernel", "__kernel ").replace("{ add(", "{ float seen = *out; add(")
    plain = plain.replace("]); }", "]); out[0] += seen; }")
    got = clscope.run(plain, None, (64,), (16,), [np.zeros(1, np.float32), a])
    assert {f.kind for f in got.findings} == {"race"}
