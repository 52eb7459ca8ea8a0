"""Each kind of finding in words: a kernel that is wrong in this way is found, with its line, and
the right one is not. (findings.txt has many more of each kind.)
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from simt.cases import SMALL, edited, line_of, product, text

from gemmlab import simt

SIZE = (8, 8, 8)
RIGHT = """
    float acc = 0.0f;
    for (int k = 0; k < K; k++) {
        acc += A[k*M + m] * B[n*K + k];
    }
    C[n*M + m] = acc;"""


def kinds(run) -> set[str]:
    return {f.kind for f in run.findings}


def found(source, kind, size=SIZE, kernel=2, params=None, **more):
    """The one finding of this kind."""
    run = simt.simulate(kernel, *size, params or {"TS": 8}, source, **more)
    assert kind in kinds(run), run.verdict
    assert not run.ok
    return next(f for f in run.findings if f.kind == kind)


def fine(body: str, size=SIZE) -> None:
    run = simt.simulate(2, *size, {"TS": 8}, product(body))
    assert run.ok and run.findings == [], run.verdict


#: By kind: the kernel's body, a part of the line, how the message begins, and how many do it.
WORDS = [
    ("out of bounds", RIGHT.replace("k < K", "k <= K"), "acc +=",
     "A[k*M + m]: work-item (0, 0) of group (0, 0) reads element 64 of A, which has elements 0 to "
     "63 of type float", 64),
    # beyond the end of a row lies the next row: the address alone would be legal
    ("out of bounds", "__local float T[8][8]; T[tn][tm] = 1.0f; barrier(CLK_LOCAL_MEM_FENCE);\n"
     "C[n*M + m] = T[tn/2][tm + 1];", "= T[tn/2]",
     "T[tn/2][tm + 1]: work-item (7, 0) of group (0, 0) reads T with 8 as its second index, which "
     "must be 0 to 7 (and 7 more work-items)", 8),
    ("out of bounds", "float x[4] = {1.0f};\nC[n*M + m] = x[tm];", "= x[tm]",
     "x[tm]: work-item (4, 0) of group (0, 0) reads x with 4 as its index", 32),
    ("out of bounds", "const __global float* p = 0;\nC[n*M + m] = *p;", "= *p",
     "*p: the pointer of work-item (0, 0) of group (0, 0) points to nothing", 64),
    ("uninitialised", RIGHT.replace("acc = 0.0f", "acc"), "acc +=",
     "acc is read by work-item (0, 0) of group (0, 0) before it has a value", 64),
    ("uninitialised", "float x; if (tm > 2) x = 1.0f;\nC[n*M + m] = x;", "= x;",
     "x is read by work-item (0, 0)", 24),
    ("uninitialised", "float x[2]; x[0] = 1.0f;\nC[n*M + m] = x[0] + x[1];", "+ x[1]",
     "x[1] is read by work-item (0, 0)", 64),
    ("uninitialised", "__local float T[8][9]; T[tn][tm] = 1.0f; barrier(CLK_LOCAL_MEM_FENCE);\n"
     "C[n*M + m] = T[tn][tm + 1];", "= T[tn]",
     "T[tn][tm + 1]: work-item (7, 0) of group (0, 0) reads T[0][8], which nobody has stored to "
     "(and 7 more", 8),
    ("uninitialised", RIGHT.replace("C[n*M + m] =", "C[n*M + m] +="), "+= acc",
     "C[n*M + m]: work-item (0, 0) of group (0, 0) reads C[0]", 64),
    ("never written", RIGHT.replace("C[n*M + m]", "if (tm < 7) C[n*M + m]"), "if (tm < 7)",
     "C(7, 0) and 7 more elements are never stored", 8),
    ("two writers", RIGHT + "\n    if (tm == 0) C[n*M + 1] = 2.0f;", "= acc;",
     "C[1] is stored by two work-items in lines", 2),
    ("divergent barrier", "if (tm < 3)\nbarrier(CLK_LOCAL_MEM_FENCE);" + RIGHT, "barrier",
     "barrier: 24 of the 64 work-items come here, such as work-item (0, 0) of group (0, 0); "
     "work-item (3, 0) of group (0, 0) and 39 more do not. They would wait for ever", 40),
    ("overflow", "int big = (m + 1)*1000000000;" + RIGHT, "int big",
     "(m + 1)*1000000000 is 3,000,000,000 for work-item (2, 0) of group (0, 0): too large for an "
     "int", 48),
    # OpenCL C leaves open what becomes of a float that no int holds
    ("overflow", "int big = (int)((m + 1)*1e9f);" + RIGHT, "int big",
     "(m + 1)*1000000000.0f is 3e+09 for work-item (2, 0) of group (0, 0): int has no such "
     "number", 48),
    ("misaligned", "float4 x = *(const __global float4*)(A + m);" + RIGHT, "float4 x",
     "*((global float4*)(A + m)): work-item (1, 0) of group (0, 0) uses A as float4 from number 1 "
     "on, which is no multiple of 4", 48),
    ("misaligned", "const __global char* c = (const __global char*)A + 2;\n"
     "C[n*M + m] = *(const __global float*)c;", "= *(const", "*((global float*)c): the pointer of "
     "work-item (0, 0) of group (0, 0) points between two numbers of type float", 64),
    ("division by zero", "int x = M/(m - 3);" + RIGHT, "int x",
     "M/(m - 3): work-item (3, 0) of group (0, 0) divides by zero", 8),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "body", "part", "words", "count"), WORDS)
def test_a_finding_in_words(kind, body, part, words, count):
    source = product(body)
    finding = found(source, kind)
    assert finding.message.startswith(words), finding.message
    assert finding.count == count
    assert finding.line == line_of(source, part)


@pytest.mark.parametrize(
    "before",
    [
        "",
        "float x; if (tm > 2) x = 1.0f; else x = 2.0f; x += 1;",
        "if (get_group_id(0) == 0) barrier(CLK_LOCAL_MEM_FENCE);",
        "long big = (m + 1L)*1000000000;",
        "uint big = (m + 1u)*1000000000u;",
        "int some = (int)(m*-7.9f); long big = (long)((m + 1)*1e9f);",
        "int least = (int)-2147483648.0f; uint none = (uint)-0.5f;",
        "int chosen = m < 2 ? (int)((m + 1)*1e9f) : 0;",
        "float4 x = *(const __global float4*)(A + 4*tn); float4 y = vload4(0, A + m);",
        "int x = m == 3 ? 0 : M/(m - 3);",
    ],
)
def test_the_right_one_has_no_findings(before):
    fine(before + RIGHT, (16, 8, 8) if "group_id" in before else SIZE)


def test_a_finding_has_a_column_and_work_items():
    source = product(RIGHT.replace("k < K", "k <= K"))
    finding = found(source, "out of bounds")
    assert finding.column == source.split("\n")[finding.line - 1].index("[") + 1
    assert finding.items[0] == ((0, 0), (0, 0))


@pytest.mark.parametrize("number", [2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13])
def test_every_barrier_that_is_removed_is_missed(number):
    source, barrier = text(number), "barrier(CLK_LOCAL_MEM_FENCE);"
    for which in range(source.count(barrier)):
        without = edited(source, barrier, "", which)
        finding = found(without, "race", (16, 16, 24), number, SMALL[number])
        assert "no barrier between" in finding.message
        assert finding.line > 0 and len(finding.items) == 2


def test_a_race_names_both_lines_and_both_work_items():
    source = product("""
    __local float T[8][8];
    T[tn][tm] = 1.0f;
    C[n*M + m] = T[tm][tn];""")
    finding = found(source, "race")
    assert finding.column == source.split("\n")[-3].index("[tn];") + 1
    words = re.fullmatch(
        r"(work-item \(\d, \d\)) of group \(0, 0\) stores (T\[\d\]\[\d\]) in line (\d+), "
        r"(work-item \(\d, \d\)) of group \(0, 0\) reads it in line (\d+), no barrier between",
        finding.message,
    )
    assert words and words[1] != words[4]
    assert (int(words[3]), int(words[5])) == (line_of(source, "T[tn][tm] ="), finding.line)


def flags(value: str) -> simt.Run:
    source = f"__kernel void f(__global int* flag) {{ *flag = {value}; }}"
    return simt.run(source, "f", (64,), (32,), [simt.Empty(1, "int32")])


def test_two_who_store_the_same_value_do_not_race():
    assert flags("1").ok and flags("1").arrays["flag"][0] == 1
    assert kinds(flags("get_global_id(0)")) == {"race"}
    assert "nothing orders work-groups" in flags("get_group_id(0)").findings[0].message


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
    first = "work-item (7, 0) of group (0, 0) stores shared[0] in line 4, work-item (0, 0)"
    assert finding.message.startswith(first)


@pytest.mark.parametrize("seed", range(20))
def test_races_are_those_of_the_definition(seed):
    """Random stores, loads and atomic functions of eight work-items on four elements."""
    rng = np.random.default_rng(seed)
    who, what, where, value = (rng.integers(0, n, 6) for n in (8, 3, 4, 2))
    forms = ("p[{}] = {};", "r += p[{}];", "atomic_add(p + {}, {});")
    lines = [
        f"if (g == {w}) {forms[f].format(at, v)}"
        for w, f, at, v in zip(who, what, where, value, strict=True)
    ]
    body = "\n".join(["int r = 0, g = get_global_id(0);", *lines])
    text = f"__kernel void f(__global int* p) {{ {body} p[4 + g] = r; }}"
    run = simt.run(text, "f", (8,), (8,), [np.zeros(12, np.int32)])

    def races(i: int, j: int) -> bool:
        stores = [what[x] == 0 for x in (i, j)]
        same = all(stores) and value[i] == value[j]
        changes = any(what[x] != 1 for x in (i, j)) and (what[i], what[j]) != (2, 2)
        return who[i] != who[j] and where[i] == where[j] and changes and not same

    expected = any(races(i, j) for i in range(6) for j in range(i))
    assert (kinds(run) == {"race"}) == expected, text


def test_two_writers_where_shifted_tiles_do_not_ask_who_owns_what():
    source = edited(text(13), "m >= own_m && n >= own_n", "1")
    finding = found(source, "two writers", (11, 13, 8), 13, SMALL[13])
    assert finding.line == line_of(source, "C[n*M + m]")


@pytest.mark.parametrize("order", ("lockstep", "warps"))
def test_barriers_that_not_all_come_to(order):
    body = "if (m >= 6) return;\n barrier(CLK_LOCAL_MEM_FENCE);" + RIGHT
    finding = found(product(body), "divergent barrier", order=order)
    assert "returned before" in finding.message
    wait = "{ barrier(CLK_LOCAL_MEM_FENCE); }"
    assert found(
        product(f"if (tn < 4) {wait} else {wait}" + RIGHT), "divergent barrier", order=order
    )


def test_a_loop_that_is_stopped():
    source = product(RIGHT.replace("k++", ""))
    finding = found(source, "stopped", limit=50)
    assert finding.line == line_of(source, "for (") and "gone round 50 times" in finding.message
    assert simt.simulate(2, *SIZE, {"TS": 8}, product(RIGHT), limit=8).ok


def test_what_was_found_before_the_end_is_reported_with_it():
    body = "float x; x += 1.0f;\n C[-1] = x;" + RIGHT
    run = simt.simulate(2, *SIZE, {"TS": 8}, product(body))
    assert [f.kind for f in run.findings] == ["uninitialised", "out of bounds"]
    assert run.stop is run.findings[-1] and run.verdict.startswith("stopped: ")


def test_macros_in_findings():
    source = product("GET(x, m + 100)" + RIGHT, before="#define GET(x, at) float x = A[at];")
    finding = found(source, "out of bounds")
    assert finding.line == line_of(source, "GET(x, m") and finding.macro == "GET"
    body = "float x[W] = {0.0f}; C[n*M + m] = x[tm*(W/2) + W];"
    finding = found(product(body, before="#define W 8"), "out of bounds")
    assert finding.message.startswith("x[tm*(W/2) + W]: work-item (0, 0)")


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
    x, add = np.arange(64, dtype=np.int32), "atomic_add(&part, x[get_global_id(0)])"
    run = simt.run(body, "f", (64,), (16,), [np.zeros(1, np.int32), x])
    assert run.ok and run.arrays["sum"][0] == x.sum()
    plain = body.replace(add, "part += x[get_global_id(0)]")
    assert "race" in kinds(simt.run(plain, "f", (64,), (16,), [np.zeros(1, np.int32), x]))
