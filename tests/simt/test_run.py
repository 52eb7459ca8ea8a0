"""`simt.run`: what it takes and gives back, for kernels that are no products."""

from __future__ import annotations

import numpy as np
import pytest

from gemmlab import simt
from gemmlab.simt.api import read

X = np.random.default_rng(0).standard_normal(100).astype(np.float32)


def test_axpby_reads_nothing_for_a_factor_of_zero():
    text = read("support/axpby.cl")
    run = simt.run(text, None, (128,), None, [100, 2.0, X, 0.0, simt.Empty(100), simt.Empty(100)])
    assert run.ok and np.array_equal(run.arrays["out"], 2 * X) and run.counts.loads == {"x": 100}
    run = simt.run(text, None, (128,), None, [100, 2.0, X, 3.0, X[::-1], simt.Empty(100)])
    assert run.ok and np.allclose(run.arrays["out"], 2 * X + 3 * X[::-1])


def test_range():
    x = X[:40].copy()
    for strange in (False, True):
        x[17] = np.inf if strange else 1
        args = [8, 5, 8, 0, x.view(np.uint32), np.zeros(1, np.int32)]
        run = simt.run(read("support/range.cl"), None, (64, 2), (64, 1), args)
        assert run.ok and run.arrays["found"][0] == strange


def value(expression: str, before: str = "", kind: str = "int", helper: str = ""):
    """What an expression is; g is the work-item's number, of 8."""
    body = f"int g = get_global_id(0); {before} out[g] = {expression};"
    text = f"{helper}\n__kernel void f(__global {kind}* out) {{ {body} }}"
    dtype = {"int": "i4", "half": "f2"}[kind]
    run = simt.run(text, "f", (8,), (8,), [simt.Empty(8, dtype)])
    assert run.ok, run.verdict
    return run.arrays["out"].tolist()


def test_half_numbers():
    """Which CPU runtimes do not have."""
    assert value("(h + h)*h", "half h = (half)0.5h;", "half") == [0.5] * 8
    assert value("h == 0.1h && 0.1h*3 == h*3", "half h = 0.1h; h += g - g;") == [1] * 8


def test_functions():
    helper = """
    typedef float4 quad;
    int vector(int lambda) { return lambda; }
    __constant int two = 2;
    void twice(__local float* x, int i) {
        barrier(CLK_LOCAL_MEM_FENCE); x[i] *= two; barrier(CLK_LOCAL_MEM_FENCE);
    }
    float sum(const float* x, const int n) {
        float s = 0.0f; for (int i = 0; i < n; i++) s += x[i]; return s;
    }
    int sign(int x) { if (x < 0) return -1; if (x == 0) return 0; return 1; }
    float second(const float x[3]) { return x[1]; }
    void change(int* x) { *x += 3; }"""
    before = """
    __local float shared[8];
    shared[g] = g;
    twice(shared, g);
    float mine[3] = {shared[7 - g], 1.0f};
    int by = vector(sign(g - 3));
    change(&by);
    quad q = (quad)(by);"""
    expected = [2 * (7 - g) + 1 + (g > 3) - (g < 3) + 3 for g in range(8)]
    assert value("(int)(sum(mine, 3)*second(mine) + q.w)", before, "int", helper) == expected


def test_three_dimensions_and_printf():
    text = """__kernel void f(__global int* out) {
        int at = (get_global_id(2)*get_global_size(1) + get_global_id(1))*get_global_size(0)
                 + get_global_id(0);
        out[at] = get_group_id(2)*100 + get_local_id(1)*10 + get_num_groups(0);
        if (at == 5) printf("%d and %.1f\\n", at, 0.5f);
    }"""
    run = simt.run(text, "f", (4, 2, 2), (2, 2, 1), [simt.Empty(16, "int32")])
    assert run.ok and run.printed == ["5 and 0.5\n"]
    expected = [[[z * 100 + y * 10 + 2] * 4 for y in (0, 1)] for z in (0, 1)]
    assert run.arrays["out"].reshape(2, 2, 4).tolist() == expected


COPY = (
    "__kernel void f(const int n, const __global float* x, __global float* out) { "
    "out[get_global_id(0)] = x[0]; }"
)
ONE, OUT = np.zeros(1, "f4"), simt.Empty(8)


@pytest.mark.parametrize(
    "local, args, error, part",
    [
        (None, [1, ONE, OUT], ValueError, "local_size is missing"),
        ((3,), [1, ONE, OUT], ValueError, "(8,) is not made of whole work-groups"),
        ((8,), [1], ValueError, "args has 1 entries, but f has 3 parameters: n, x, out"),
        ((8,), [1.5, ONE, OUT], TypeError, "n is an int and needs a whole number"),
        ((8,), [2**31, ONE, OUT], ValueError, "n=2147483648 does not fit an int"),
        ((8,), [1, np.zeros(1), OUT], TypeError, "x needs an array of float32, not of float64"),
        ((8,), [1, [0.0], OUT], TypeError, "x is a pointer and needs a NumPy array, not list"),
    ],
)
def test_bad_arguments_are_named(local, args, error, part):
    with pytest.raises(error) as caught:
        simt.run(COPY, "f", (8,), local, args)
    assert part in str(caught.value)


ATOMICS = {"add(p, 3)": 25, "sub(p, 1)": -7, "inc(p)": 9, "dec(p)": -7, "min(p, g)": 0,
           "max(p, g)": 7, "and(p, 6)": 0, "or(p, g)": 7, "xor(p, 1 << g)": 254, "xchg(p, 5)": 5,
           "cmpxchg(p, g, g + 1)": 8}  # fmt: skip


@pytest.mark.parametrize("op", ATOMICS)
def test_atomics(op):
    text = f"__kernel void f(__global int* p) {{ int g = get_global_id(0); atomic_{op}; }}"
    run = simt.run(text, "f", (8,), (4,), [np.ones(1, np.int32)])
    assert run.arrays["p"][0] == ATOMICS[op]


def test_arrays_are_copied():
    x = np.zeros(1, np.float32)
    text = "__kernel void f(__global float* x) { x[0] = 1.0f; }"
    assert simt.run(text, "f", (1,), (1,), [x]).arrays["x"][0] == 1 and x[0] == 0
