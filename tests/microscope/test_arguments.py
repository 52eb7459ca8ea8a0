"""Arguments of `run` that are no plain numbers and arrays."""

from __future__ import annotations

import numpy as np
import pytest

import clscope

A = np.arange(16, dtype=np.float32)


def test_local_memory_by_its_size():
    source = """\
__kernel void f(__global float* out, __global const float* a, __local float* t)
{
    const int l = get_local_id(0);
    t[l] = a[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = t[63 - l];
}
"""
    a = np.arange(128, dtype=np.float32)
    for order, size in (("lockstep", 256), ("warps", clscope.Empty(64))):
        got = clscope.run(source, None, (128,), (64,), [clscope.Empty(128), a, size], order=order)
        assert got.ok, got.verdict
        assert (got.arrays["out"] == a.reshape(2, 64)[:, ::-1].ravel()).all()
    got = clscope.run(source, None, (128,), (64,), [clscope.Empty(128), a, 252])
    assert got.stop and got.stop.kind == "out of bounds" and got.stop.line == 4
    for size in (0, 255, A):
        with pytest.raises((TypeError, ValueError), match="t"):
            clscope.run(source, None, (128,), (64,), [clscope.Empty(128), a, size])


def test_vectors_rows_and_structures():
    source = """\
typedef struct { float re, im; } complex;
__kernel void f(__global float (*out)[4], __global const complex* a, const float2 scale)
{
    const int g = get_global_id(0);
    out[g / 4][g % 4] = a[g % 8].re * scale.x + a[g % 8].im * scale.y;
}
"""
    got = clscope.run(source, None, (16,), (16,), [clscope.Empty(16), A, (10, 1)])
    want = A[::2] * 10 + A[1::2]
    assert got.ok and (got.arrays["out"] == np.tile(want, 2)).all()
    with pytest.raises(TypeError, match="scale"):
        clscope.run(source, None, (16,), (16,), [clscope.Empty(16), A, (1, 2, 3)])
    with pytest.raises(TypeError, match="a needs"):
        clscope.run(source, None, (16,), (16,), [clscope.Empty(16), A[:3], (1, 2)])


def test_a_structure_by_value():
    source = """\
typedef struct { float s; int n[2]; } P;
typedef struct __attribute__((packed)) { char c; int n; } Q;
__kernel void f(__global float* out, const P p, Q q)
{
    P r = p;
    r.n[1] += get_global_id(0);
    out[get_global_id(0)] = p.s * r.n[1] + q.n;
}
"""
    p = np.array((2.5, [10, 3]), [("s", "f4"), ("n", "i4", 2)])
    q = np.array((1, 1000), [("c", "i1"), ("n", "i4")])
    for given in (p, p[()], p.tobytes()):
        got = clscope.run(source, None, (4,), (4,), [clscope.Empty(4), given, q])
        assert got.ok and (got.arrays["out"] == 1000 + 2.5 * np.arange(3, 7)).all()
    for wrong in (3, q, "text"):
        with pytest.raises(TypeError, match="p is a struct and needs its 12 bytes"):
            clscope.run(source, None, (4,), (4,), [clscope.Empty(4), wrong, q])


def test_lines_of_line():
    source = '#line 100 "a.cl"\n__kernel void f(__global int* out) {\n    out[0] = __LINE__; }\n'
    got = clscope.run(source, None, (1,), (1,), [clscope.Empty(1, "int32")])
    assert got.arrays["out"][0] == 101


@pytest.mark.parametrize(
    "source",
    [
        "__kernel void f(__global int* o) { o[0] = (o[1] ? 1.0f : 2.0f) ? 3 : 4; }",
        "__kernel void f(__global int* o) { int* p = &(int){1}; o[0] = *p; }",
        "__kernel void f(__global int* o) { extern int x; o[0] = 1; }",
        "__kernel void f(__global int* o) { int x __attribute__((aligned(3))); o[0] = 1; }",
    ],
)
def test_what_compilers_refuse(source):
    with pytest.raises(clscope.TextError):
        clscope.parse(source)
