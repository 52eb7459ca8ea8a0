"""Each kind of finding: a kernel that is wrong in this way is found, with its line, and the right
one is not.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from simt.cases import SMALL, edited, line_of, product, text

from gemmlab import simt

SIZE = (8, 8, 8)


def kinds(run) -> set[str]:
    return {f.kind for f in run.findings}


def found(source, kind, size=SIZE, kernel=2, params=None, **more):
    """The one finding of this kind."""
    run = simt.simulate(kernel, *size, params or {"TS": 8}, source, **more)
    assert kind in kinds(run), run.verdict
    assert not run.ok
    return next(f for f in run.findings if f.kind == kind)


RIGHT = """
    float acc = 0.0f;
    for (int k = 0; k < K; k++) {
        acc += A[k*M + m] * B[n*K + k];
    }
    C[n*M + m] = acc;"""


def test_the_right_one_has_no_findings():
    run = simt.simulate(2, *SIZE, {"TS": 8}, product(RIGHT))
    assert run.ok and run.findings == []
    assert run.verdict == "right: every element exact, and nothing suspicious was seen"


def test_out_of_bounds():
    source = product(RIGHT.replace("k < K", "k <= K"))
    finding = found(source, "out of bounds")
    assert finding.line == line_of(source, "acc +=")
    assert finding.column == source.split("\n")[finding.line - 1].index("[") + 1
    assert finding.message.startswith(
        "A[k*M + m]: work-item (0, 0) of group (0, 0) reads element 64 of A, which has "
        "elements 0 to 63 of type float"
    )
    assert finding.count == 64 and finding.items[0] == ((0, 0), (0, 0))


def test_each_index_of_a_local_array_is_looked_at_by_itself():
    """Beyond the end of a row lies the next row: the address alone would be legal."""
    body = """
    __local float T[8][8];
    T[tn][tm] = 1.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    C[n*M + m] = T[tn/2][tm + 1];"""
    finding = found(product(body), "out of bounds")
    assert "T[tn/2][tm + 1]: work-item (7, 0)" in finding.message
    assert (
        "reads T with 8 as its second index, which must be 0 to 7 (and 7 more work-items)"
        in finding.message
    )


def test_out_of_bounds_of_a_private_array():
    body = "float x[4] = {1.0f}; C[n*M + m] = x[tm];"
    assert "x with 4 as its index" in found(product(body), "out of bounds").message
    assert "out of bounds" not in kinds(
        simt.simulate(2, *SIZE, {"TS": 8}, product(body.replace("x[tm]", "x[tm/2]")))
    )


def test_uninitialised_variable():
    finding = found(product(RIGHT.replace("acc = 0.0f", "acc")), "uninitialised")
    assert finding.message.startswith(
        "acc is read by work-item (0, 0) of group (0, 0) before it has a value"
    )


def test_a_variable_that_only_some_have_set():
    body = "float x; if (tm > 2) x = 1.0f; C[n*M + m] = x;"
    finding = found(product(body), "uninitialised")
    assert finding.count == 3 * 8
    both = body.replace("C[", "else x = 2.0f; C[")
    assert "uninitialised" not in kinds(simt.simulate(2, *SIZE, {"TS": 8}, product(both)))


def test_uninitialised_private_and_local_arrays():
    body = "float x[2]; x[0] = 1.0f; C[n*M + m] = x[0] + x[1];"
    assert found(product(body), "uninitialised").message.startswith(
        "x[1] is read by work-item (0, 0)"
    )
    body = (
        "__local float T[8][9]; T[tn][tm] = 1.0f; barrier(CLK_LOCAL_MEM_FENCE); C[n*M + m] = "
        "T[tn][tm + 1];"
    )
    finding = found(product(body), "uninitialised")
    assert (
        "work-item (7, 0) of group (0, 0) reads T[0][8], which nobody has stored to (and 7 more"
        in finding.message
    )


def test_uninitialised_vector():
    finding = found(product("float4 v; C[n*M + m] = v.x;"), "uninitialised")
    assert finding.message.startswith("v is read by work-item (0, 0)")


def test_reading_c_before_it_is_stored():
    assert (
        "reads C[0]"
        in found(product(RIGHT.replace("C[n*M + m] =", "C[n*M + m] +=")), "uninitialised").message
    )


@pytest.mark.parametrize("number", [2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13])
def test_every_barrier_that_is_removed_is_missed(number):
    source = text(number)
    barrier = "barrier(CLK_LOCAL_MEM_FENCE);"
    for which in range(source.count(barrier)):
        finding = found(
            edited(source, barrier, "", which), "race", (16, 16, 24), number, SMALL[number]
        )
        assert (
            "no barrier between" in finding.message and finding.line > 0 and len(finding.items) == 2
        )
        for order in ("lockstep", "warps"):
            assert simt.simulate(number, 16, 16, 24, SMALL[number], order=order).ok


def test_a_race_is_told_with_both_lines_and_both_work_items():
    body = """
    __local float T[8][8];
    T[tn][tm] = 1.0f;
    C[n*M + m] = T[tm][tn];"""
    source = product(body)
    finding = found(source, "race")
    assert (finding.line, finding.column) == (
        line_of(source, "C[n*M"),
        source.split("\n")[-3].index("[tn];") + 1,
    )
    told = re.fullmatch(
        r"(work-item \(\d, \d\)) of group \(0, 0\) stores (T\[\d\]\[\d\]) in line (\d+), "
        r"(work-item \(\d, \d\)) of group \(0, 0\) reads it in line (\d+), no barrier between",
        finding.message,
    )
    assert told and told[1] != told[4]
    assert (int(told[3]), int(told[5])) == (line_of(source, "T[tn][tm] ="), finding.line)


def test_a_race_between_groups():
    body = RIGHT + "\n    if (tm == 0) C[0] = (float)n;"
    finding = found(product(body), "race", (16, 16, 8))
    assert (
        "nothing orders work-groups" in finding.message or "no barrier between" in finding.message
    )


def test_two_who_store_the_same_value_do_not_race_but_c_has_one_writer_an_element():
    body = RIGHT + "\n    if (tm == 0) C[n*M + 1] = 2.0f;"
    assert "two work-items" in found(product(body), "two writers").message
    run = simt.run(
        "__kernel void f(__global int* flag) { *flag = 1; }",
        "f",
        (64,),
        (32,),
        [simt.Empty(1, "int32")],
    )
    assert run.ok and run.arrays["flag"][0] == 1
    run = simt.run(
        "__kernel void f(__global int* flag) { *flag = get_global_id(0); }",
        "f",
        (64,),
        (32,),
        [simt.Empty(1, "int32")],
    )
    assert kinds(run) == {"race"}


def test_who_stores_the_same_value_again_may_not_have_read_it_before():
    text = """__kernel void f(const __global float* x, __global float* out) {
        __local float shared[8];
        const int i = get_local_id(0);
        shared[7 - i] = x[i];
        barrier(CLK_LOCAL_MEM_FENCE);
        shared[i] = shared[i];
        out[i] = shared[i];
    }"""
    x = np.arange(8, dtype=np.float32)
    assert simt.run(text, "f", (8,), (8,), [x, simt.Empty(8)]).ok
    racing = text.replace("barrier(CLK_LOCAL_MEM_FENCE);", "")
    (finding,) = simt.run(racing, "f", (8,), (8,), [x, simt.Empty(8)]).findings
    assert finding.kind == "race" and finding.line == line_of(text, "shared[i] = shared[i]")
    assert finding.message.startswith(
        "work-item (7, 0) of group (0, 0) stores shared[0] in line 4, work-item (0, 0)"
    )


def test_two_writers_where_shifted_tiles_do_not_ask_who_owns_what():
    source = edited(text(13), "m >= own_m && n >= own_n", "1")
    assert found(source, "two writers", (11, 13, 8), 13, SMALL[13]).line == line_of(
        source, "C[n*M + m]"
    )


def test_elements_that_are_never_stored():
    finding = found(product(RIGHT.replace("C[n*M + m]", "if (tm < 7) C[n*M + m]")), "never written")
    assert finding.message == "C(7, 0) and 7 more elements are never stored"


def test_divergent_barrier():
    body = "if (tm < 3) barrier(CLK_LOCAL_MEM_FENCE);" + RIGHT
    finding = found(product(body), "divergent barrier")
    assert finding.message.startswith(
        "barrier: 24 of the 64 work-items come here, such as work-item (0, 0) of group (0, 0); "
        "work-item (3, 0) of group (0, 0) and 39 more do not. They would wait for ever"
    )
    whole_groups = "if (get_group_id(0) == 0) barrier(CLK_LOCAL_MEM_FENCE);" + RIGHT
    assert simt.simulate(2, 16, 8, 8, {"TS": 8}, product(whole_groups)).ok


def test_an_early_return_before_a_barrier():
    body = "if (m >= 6) return;\n barrier(CLK_LOCAL_MEM_FENCE);" + RIGHT
    for order in ("lockstep", "warps"):
        finding = found(product(body), "divergent barrier", order=order)
        assert "returned before" in finding.message


def test_warps_at_different_barriers():
    body = (
        "if (tn < 4) { barrier(CLK_LOCAL_MEM_FENCE); } else { barrier(CLK_LOCAL_MEM_FENCE); }"
        + RIGHT
    )
    for order in ("lockstep", "warps"):
        assert found(product(body), "divergent barrier", order=order)


def test_endless_loop():
    source = product(RIGHT.replace("k++", ""))
    finding = found(source, "stopped", limit=50)
    assert finding.line == line_of(source, "for (") and "gone round 50 times" in finding.message
    assert "stopped" not in kinds(simt.simulate(2, *SIZE, {"TS": 8}, product(RIGHT), limit=8))


def test_overflow():
    body = "int big = (m + 1)*1000000000;" + RIGHT
    finding = found(product(body), "overflow")
    assert (
        "is 3,000,000,000 for work-item (2, 0) of group (0, 0): too large for an int"
        in finding.message
    )
    for fine in ("long big = (m + 1L)*1000000000;", "uint big = (m + 1u)*1000000000u;"):
        assert simt.simulate(2, *SIZE, {"TS": 8}, product(fine + RIGHT)).ok


def test_a_float_that_no_int_holds():
    """OpenCL C leaves open what becomes of it."""
    finding = found(product("int big = (int)((m + 1)*1e9f);" + RIGHT), "overflow")
    assert (
        "3e+09 for work-item (2, 0)" in finding.message
        and "int has no such number" in finding.message
    )
    assert (
        "nan"
        in found(product("uint none = convert_uint(sqrt(-1.0f - m));" + RIGHT), "overflow").message
    )
    assert found(product("int2 two = convert_int2((float2)(1.0f, -4e9f));" + RIGHT), "overflow")
    for fine in (
        "int some = (int)(m*-7.9f); long big = (long)((m + 1)*1e9f); int least = "
        "(int)-2147483648.0f;",
        "uint none = (uint)-0.5f; int chosen = m < 2 ? (int)((m + 1)*1e9f) : 0;",
    ):
        assert simt.simulate(2, *SIZE, {"TS": 8}, product(fine + RIGHT)).ok


def test_misaligned_vector():
    body = "float4 x = *(const __global float4*)(A + m); float4 y = vload4(0, A + m);" + RIGHT
    finding = found(product(body), "misaligned")
    assert "from number 1 on, which is no multiple of 4" in finding.message
    assert len([f for f in simt.simulate(2, *SIZE, {"TS": 8}, product(body)).findings]) == 1
    assert simt.simulate(
        2, *SIZE, {"TS": 8}, product(body.replace("(A + m);", "(A + 4*tn);", 1))
    ).ok


def test_division_by_zero():
    finding = found(product("int x = M/(m - 3);" + RIGHT), "division by zero")
    assert "M/(m - 3): work-item (3, 0) of group (0, 0) divides by zero" in finding.message
    guarded = "int x = m == 3 ? 0 : M/(m - 3);" + RIGHT
    assert simt.simulate(2, *SIZE, {"TS": 8}, product(guarded)).ok


def test_what_was_found_before_the_end_is_told_with_it():
    body = "float x; x += 1.0f;\n C[-1] = x;" + RIGHT
    run = simt.simulate(2, *SIZE, {"TS": 8}, product(body))
    assert run.stop is run.findings[-1] and [f.kind for f in run.findings] == [
        "uninitialised",
        "out of bounds",
    ]
    assert run.verdict.startswith("stopped: ")


def test_a_finding_inside_a_macro_points_to_its_use_and_names_it():
    source = product("GET(x, m + 100)" + RIGHT, before="#define GET(x, at) float x = A[at];")
    finding = found(source, "out of bounds")
    assert finding.line == line_of(source, "GET(x, m") and finding.macro == "GET"


def test_macros_are_shown_by_their_names():
    body = "float x[W] = {0.0f}; C[n*M + m] = x[tm*(W/2) + W];"
    finding = found(product(body, before="#define W 8"), "out of bounds")
    assert finding.message.startswith("x[tm*(W/2) + W]: work-item (0, 0)")


def test_pointers_to_nothing_and_between_numbers():
    nothing = "const __global float* p = 0; C[n*M + m] = *p;"
    assert "points to nothing" in found(product(nothing), "out of bounds").message
    odd = (
        "const __global float* p = (const __global float*)((const __global char*)A + 2); C[n*M + "
        "m] = *p;"
    )
    assert "between two numbers" in found(product(odd), "misaligned").message


def test_local_memory_is_fresh_in_every_group():
    body = """
    __local float T[64];
    if (get_group_id(0) == 0) T[tn*8 + tm] = 1.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    C[n*M + m] = T[tn*8 + tm];"""
    for order in ("lockstep", "warps"):
        finding = found(product(body), "uninitialised", (16, 8, 8), order=order)
        assert all(item.group == (1, 0) for item in finding.items)


def test_atomics_do_not_race():
    body = """__kernel void f(__global int* sum, const __global int* x) {
        __local int part;
        if (get_local_id(0) == 0) part = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        atomic_add(&part, x[get_global_id(0)]);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (get_local_id(0) == 0) atomic_add(sum, part);
    }"""
    x = np.arange(64, dtype=np.int32)
    run = simt.run(body, "f", (64,), (16,), [np.zeros(1, np.int32), x])
    assert run.ok and run.arrays["sum"][0] == x.sum()
    plain = simt.run(
        body.replace("atomic_add(&part, x[get_global_id(0)])", "part += x[get_global_id(0)]"),
        "f",
        (64,),
        (16,),
        [np.zeros(1, np.int32), x],
    )
    assert "race" in kinds(plain)
