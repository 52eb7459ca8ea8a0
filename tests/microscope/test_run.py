"""What `run` takes and returns."""

from __future__ import annotations

import numpy as np
import pytest

import clscope


def test_half_numbers():
    """Which CPU runtimes do not have."""
    text = """__kernel void f(__global half* out) {
        half h = (half)0.5h;
        out[0] = (h + h)*h; h = 0.1h; out[1] = h == 0.1h && 0.1h*3 == h*3;
    }"""
    run = clscope.run(text, "f", (1,), (1,), [clscope.Empty(2, "f2")])
    assert run.ok and run.arrays["out"].tolist() == [0.5, 1]


def test_a_function_waits_at_barriers_and_changes_memory():
    text = """
    void twice(__local int* x, int i) {
        barrier(CLK_LOCAL_MEM_FENCE); x[i] *= 2; barrier(CLK_LOCAL_MEM_FENCE);
    }
    void change(int* x) { *x += 3; }
    __kernel void f(__global int* out) {
        __local int shared[8];
        int g = get_global_id(0), by = 1;
        shared[g] = g; twice(shared, g); change(&by);
        out[g] = shared[7 - g] + by;
    }"""
    run = clscope.run(text, "f", (8,), (8,), [clscope.Empty(8, "i4")])
    assert run.ok and run.arrays["out"].tolist() == [2 * (7 - g) + 4 for g in range(8)]


def test_three_dimensions_and_printf():
    text = """__kernel void f(__global int* out) {
        int at = (get_global_id(2)*get_global_size(1) + get_global_id(1))*get_global_size(0)
                 + get_global_id(0);
        out[at] = get_group_id(2)*100 + get_local_id(1)*10 + get_num_groups(0);
        if (at == 5) printf("%d and %.1f\\n", at, 0.5f);
    }"""
    run = clscope.run(text, "f", (4, 2, 2), (2, 2, 1), [clscope.Empty(16, "int32")])
    assert run.ok and run.printed == ["5 and 0.5\n"]
    expected = [[[z * 100 + y * 10 + 2] * 4 for y in (0, 1)] for z in (0, 1)]
    assert run.arrays["out"].reshape(2, 2, 4).tolist() == expected


COPY = (
    "__kernel void f(const int n, const __global float* x, __global float* out) { "
    "out[get_global_id(0)] = x[0]; }"
)
ONE, OUT = np.zeros(1, "f4"), clscope.Empty(8)


@pytest.mark.parametrize(
    "local, args, error, part",
    [
        (None, [1, ONE, OUT], ValueError, "local_size is missing"),
        ((3,), [1, ONE, OUT], ValueError, "(8,) is not made of whole work-groups"),
        ((8,), [1], ValueError, "args has 1 entries, but f has 3 parameters: n, x, out"),
        ((8,), [2**31, ONE, OUT], ValueError, "n=2147483648 does not fit an int"),
        ((8,), [1, np.zeros(1), OUT], TypeError, "x needs an array of float32, not of float64"),
        ((8,), [1, [0.0], OUT], TypeError, "x is a pointer and needs a NumPy array, not list"),
    ],
)
def test_arguments_that_do_not_fit_are_named(local, args, error, part):
    with pytest.raises(error) as caught:
        clscope.run(COPY, "f", (8,), local, args)
    assert part in str(caught.value)


ATOMICS = {"add(p, 3)": 25, "sub(p, 1)": -7, "inc(p)": 9, "dec(p)": -7, "min(p, g)": 0,
           "max(p, g)": 7, "and(p, 6)": 0, "or(p, g)": 7, "xor(p, 1 << g)": 254, "xchg(p, 5)": 5,
           "cmpxchg(p, g, g + 1)": 8}  # fmt: skip


def test_atomics_and_that_arguments_are_copied():
    for op, after in ATOMICS.items():
        text, given = f"int g = get_global_id(0); atomic_{op};", np.ones(1, np.int32)
        run = clscope.run(
            f"__kernel void f(__global int* p) {{ {text} }}", "f", (8,), (4,), [given]
        )
        assert run.arrays["p"][0] == after and given[0] == 1, op
