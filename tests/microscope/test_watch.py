"""Each kind of finding in words: a kernel that is wrong in this way is found, with its line, and
the right one is not. (findings.txt has many more of each kind.)
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from microscope.corpus import MISTAKES
from microscope.corpus import RIGHT as RIGHT_KERNELS
from microscope.harness import kernel, kinds, line_of, run

import clscope

RIGHT = """
    float acc = 0.0f;
    for (int k = 0; k < K; k++) {
        acc += A[k*M + m] * B[n*K + k];
    }
    C[n*M + m] = acc;"""


def first_finding(source: str, kind: str) -> clscope.Finding:
    """The first finding of this kind."""
    seen = run(source)
    assert kind in kinds(seen) and not seen.ok, seen.verdict
    return next(finding for finding in seen.findings if finding.kind == kind)


#: By kind: the kernel's body, a part of the line, and how many do it.
WRONG = [
    # beyond the end of a row begins the next: the address alone would be legal
    ("out of bounds", "__local float T[8][8]; T[tn][tm] = 1.0f; barrier(CLK_LOCAL_MEM_FENCE);\n"
     "C[n*M + m] = T[tn/2][tm + 1];", "= T[tn/2]", 8),
    ("out of bounds", "const __global float* p = 0;\nC[n*M + m] = *p;", "= *p", 64),
    ("uninitialised", "float x; if (tm > 2) x = 1.0f;\nC[n*M + m] = x;", "= x;", 24),
    ("overflow", "int big = 2147483600 + 20*m;" + RIGHT, "int big", 40),
    # OpenCL C leaves open what becomes of a float that no int holds
    ("overflow", "int big = (int)((m + 1)*1e9f);" + RIGHT, "int big", 48),
    ("misaligned", "float4 x = *(const __global float4*)(A + m);" + RIGHT, "float4 x", 48),
    ("division by zero", "int x = M/(m - 3);" + RIGHT, "int x", 8),
]  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES, ids=lambda case: case.name)
def test_a_mistake_is_found_in_its_line(case):
    for order in ("lockstep", "warps"):
        findings = case.run(order=order).findings
        named = bool(findings) and findings[0].line in case.lines and findings[0].kind in case.kinds
        assert named, findings[:1]


@pytest.mark.parametrize("case", RIGHT_KERNELS, ids=lambda case: case.name)
def test_a_right_kernel_is_not_accused(case):
    for order in ("lockstep", "warps"):
        seen = case.run(order=order)
        assert seen.ok, seen.verdict


def test_what_work_groups_hand_over_is_a_note():
    (case,) = (case for case in RIGHT_KERNELS if case.name == "the last group adds up")
    (note,) = case.run().notes
    assert note.kind == "handed over" and note.line == line_of(case.text, "+= part[i]")


@pytest.mark.parametrize(("body", "part"), [
    ("float x = m/4;\nC[n*M + m] = x;", "m/4"),
    ("float x = A[m]*(1/2);\nC[n*M + m] = x;", "1/2"),
    ("int x = 0;\nif (x = 1) C[n*M + m] = x;", "if (x"),
])  # fmt: skip
def test_what_is_rarely_meant_is_a_note(body, part):
    seen = run(kernel(body))
    (note,) = seen.notes
    assert seen.ok and note.kind in ("whole division", "slip")
    assert note.line == line_of(seen.text, part)


@pytest.mark.parametrize(("kind", "body", "part", "count"), WRONG)
def test_a_finding_has_its_kind_its_line_and_its_work_items(kind, body, part, count):
    source = kernel(body)
    finding = first_finding(source, kind)
    assert (finding.line, finding.count) == (line_of(source, part), count), finding


def test_the_result_of_a_function_cannot_be_its_own_variable():
    source = kernel("int* p = of(m);\nC[n*M + m] = *p;",
                    before="int* of(int x) { int y = x;\n return &y; }")  # fmt: skip
    assert first_finding(source, "out of bounds").line == line_of(source, "= *p")


def test_a_race_names_both_lines_and_both_work_items():
    source = kernel("""
    __local float T[8][8];
    T[tn][tm] = 1.0f;
    C[n*M + m] = T[tm][tn];""")
    finding = first_finding(source, "race")
    assert finding.column == source.split("\n")[-3].index("[tn];") + 1
    parts = re.fullmatch(
        r"(work-item \(\d, \d\)) of group \(0, 0\) stores (T\[\d\]\[\d\]) in line (\d+), "
        r"(work-item \(\d, \d\)) of group \(0, 0\) reads it in line (\d+), no barrier between",
        finding.message,
    )
    assert parts and parts[1] != parts[4]
    assert (int(parts[3]), int(parts[5])) == (line_of(source, "T[tn][tm] ="), finding.line)


def test_who_stores_the_same_value_again_may_not_have_read_it_before():
    body = """__kernel void f(const __global float* x, __global float* out) {
        __local float shared[8];
        const int i = get_local_id(0);
        shared[7 - i] = x[i];
        shared[i] = shared[i];
        out[i] = shared[i];
    }"""
    x = np.arange(8, dtype=np.float32)
    (finding,) = clscope.run(body, "f", (8,), (8,), [x, clscope.Empty(8)]).findings
    assert finding.kind == "race" and finding.line == line_of(body, "shared[i] = shared[i]")


def test_the_source_of_a_copy_may_change_when_the_copy_has_ended():
    store, wait = "t[l] = 0;", "wait_group_events(1, &e);"
    for last, stores in ((f"{store}\n{wait}", [store]), (f"{wait}\n{store}", [])):
        source = f"""__kernel void f(__global float* out) {{
            __local float t[8];
            const int l = get_local_id(0);
            t[l] = l;
            barrier(CLK_LOCAL_MEM_FENCE);
            event_t e = async_work_group_copy(out, t, 8, 0);
            {last}
        }}"""
        seen = clscope.run(source, None, (8,), (8,), [clscope.Empty(8)])
        lines = [finding.line for finding in seen.findings[-1:]]
        assert lines == [line_of(source, part) for part in stores], seen.verdict


def test_two_groups_wait_for_their_own_copies():
    """Groups that go in step and wait in different iterations do not end each other's copies."""
    source = """\
__kernel void f(__global float* out, __global const float* a)
{
    __local float t[8];
    const int l = get_local_id(0), g = get_group_id(0);
    event_t e = async_work_group_copy(t, a, 8, 0);
    if (g == 0) wait_group_events(1, &e);
    out[8*g + l] = t[7 - l];
    if (g == 1) wait_group_events(1, &e);
}
"""
    got = clscope.run(source, None, (16,), (8,), [clscope.Empty(16), np.ones(8, np.float32)])
    assert [(f.kind, f.line) for f in got.findings] == [("race", 7)]
    assert {item.group[0] for item in got.findings[0].items} == {1}


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
    seen = clscope.run(text, "f", (8,), (4,), [np.zeros(12, np.int32)])

    def races(i: int, j: int) -> bool:
        stores = [what[x] == 0 for x in (i, j)]
        same = all(stores) and value[i] == value[j]
        changes = any(what[x] != 1 for x in (i, j)) and (what[i], what[j]) != (2, 2)
        return who[i] != who[j] and where[i] == where[j] and changes and not same

    expected = any(races(i, j) for i in range(6) for j in range(i))
    assert (kinds(seen) == {"race"}) == expected, text


def test_a_loop_that_is_stopped():
    """What was seen until then counts, and nothing is claimed of the rest."""
    racy = "__local int all; all = tm;\n" + RIGHT
    for body, findings in ((RIGHT, set()), (racy, {"race"})):
        seen = run(kernel(body), limit=3)
        assert not seen.ok and kinds(seen) == findings and seen.stop is None
        assert seen.unfinished.line == line_of(seen.text, "for (")
    assert run(kernel(RIGHT), limit=8).ok


#: Loops that never end, with the part of the text at which they begin or repeat.
ENDLESS = [
    ("for (int k = 0; k < K; ) acc += A[k];", "for ("),
    ("for (int k = 0; k < K; k += 0) acc += A[k];", "for ("),
    ("for (uchar k = 0; k < 256; k++) acc += A[0];", "for ("),
    ("for (uint k = 7; k >= 0; k--) acc += A[k % 8];", "for ("),
    ("for (int k = 0; k < K; k++) { acc += A[k];\n if (k == 5) k -= 2; }", "for ("),
    ("while (1) { acc += 1; }", "while"),
    ("do { acc += 1; } while (true);", "do {"),
    ("again:\n acc += 1;\n goto again;", "goto"),
    ("int k = 0;\n again: acc += A[k];\n if (k < K)\n goto again;", "goto"),
    ("int k = tm; while (k != 3) k = (k + 2) % 8;", "while"),
]
#: Loops that end, late.
LATE = [
    "int k = 0, go = 1; while (go) { acc += 1; (void)(++k < 300 || (go = 0)); }",
    "int k = 0, go = 1; while (go) { acc += 1; (void)(++k >= 300 && (go = 0)); }",
    "int k = 0; goto three; two: k++; if (k >= 300) goto end; goto three;"
    "one: acc += 1; goto two; three: acc += 2; goto one; end: acc += 3;",
    "float x = -0x1p105f; while (x != 5) x = x != 0 ? -x/2 : 1/x > 0 ? -x : 5;",
    "for (int k = 0; k < 1000; k++) acc += 1;",
    "for (uchar k = 0; k < 255; k++) acc += 1;",
    "int k = 1; while (k != 3) k = k*3 % 257;",
    "int last = 0; for (int k = 0; !last; k++) { last = k == 300; }",
    "int k = 0; while (1) { if (++k == 500) break; }",
    "int k = 0; again: k++; if (k < 300) goto again;",
    "int k = 0, step = 0; while (k < 9) { if (acc == 200.0f) step = 1; k += step; acc += 1; }",
    "__local int flag[64]; flag[tn*8 + tm] = 0;while (flag[tn*8 + tm] < 300) flag[tn*8 + tm]++;",
]


@pytest.mark.parametrize(("body", "part"), ENDLESS)
def test_a_loop_that_never_ends_is_a_finding(body, part):
    source = kernel(f"float acc = 0;\n{body}\nC[n*M + m] = acc;")
    finding = first_finding(source, "endless loop")
    assert finding.line == line_of(source, part)


@pytest.mark.parametrize("body", LATE)
def test_a_loop_that_ends_late_is_not(body):
    source = kernel(f"float acc = 0;\n{body}\nacc = 0;{RIGHT.replace('float acc', 'float sum')}")
    seen = run(source)
    assert "endless loop" not in kinds(seen) and not seen.unfinished, seen.verdict


def test_what_was_found_before_the_end_is_reported_with_it():
    body = "__local float s[1];\n s[0] = (float)(tm + 8*tn);\n C[-1] = 0.0f;" + RIGHT
    seen = run(kernel(body))
    assert [f.kind for f in seen.findings] == ["race", "out of bounds"]
    assert seen.stop is seen.findings[-1]


def test_macros_in_findings():
    source = kernel("GET(x, m + 100)" + RIGHT, before="#define GET(x, at) float x = A[at];")
    finding = first_finding(source, "out of bounds")
    assert finding.line == line_of(source, "GET(x, m") and finding.macro == "GET"
    body = "float x[W] = {0.0f}; C[n*M + m] = x[tm*(W/2) + W];"
    finding = first_finding(kernel(body, before="#define W 8"), "out of bounds")
    assert finding.message.startswith("x[tm*(W/2) + W]: work-item (0, 0)")
