"""Kernels with a learner's mistake, after public questions, and right ones that look like them.

A tile kernel with work-groups of 8 x 8; each mistake is named with its line, or by what is wrong
with C.
"""

from __future__ import annotations

import pytest
from simt.cases import line_of, product

from gemmlab import simt

TILED = """
    __local float As[8][8];
    __local float Bs[8][8];
    float acc = 0.0f;
    for (int t = 0; t < K; t += 8) {
        As[tm][tn] = A[(t + tn)*M + m];
        Bs[tn][tm] = B[n*K + t + tm];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < 8; k++) {
            acc += As[tm][k] * Bs[tn][k];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    C[n*M + m] = acc;"""
NAIVE = """
    float acc = 0.0f;
    for (int k = 0; k < K; k++) {
        acc += A[k*M + m] * B[n*K + k];
    }
    C[n*M + m] = acc;"""
FENCE = "barrier(CLK_LOCAL_MEM_FENCE);"


def changed(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    return product(text)


#: Text, a part of the line that is named ("" if none is), kind of the finding.
MISTAKES = {
    "a tile that is read the wrong way round": (
        changed(TILED, ("As[tm][k]", "As[k][tm]")),
        "acc += As",
        "wrong product",
    ),
    "a tile of B from other columns": (
        changed(TILED, ("B[n*K + t + tm]", "B[tn*K + t + tm]")),
        "B[tn*K",
        "wrong product",
    ),
    "a tile too few": (changed(TILED, ("t < K;", "t < K - 8;")), "As[tm][tn] =", "wrong product"),
    "the same tile again and again": (
        changed(TILED, ("A[(t + tn)*M", "A[tn*M"), ("n*K + t + tm", "n*K + tm")),
        "As[tm][tn] =",
        "wrong product",
    ),
    "a sum that begins again with each tile": (
        changed(TILED, ("        As[tm][tn] =", "        acc = 0.0f;\n        As[tm][tn] =")),
        "acc += As",
        "wrong product",
    ),
    "every product twice": (
        changed(NAIVE, ("acc += A[k*M + m]", "acc += 2*A[k*M + m]")),
        "C[n*M",
        "wrong product",
    ),
    "no barrier before the tiles are read": (changed(TILED, (FENCE, "")), "acc += As", "race"),
    "no barrier before they are overwritten": (
        changed(TILED, (f"        {FENCE}\n    }}", "    }")),
        "acc += As",
        "race",
    ),
    "a fence of the wrong memory": (
        changed(TILED, (FENCE, "barrier(CLK_GLOBAL_MEM_FENCE);")),
        "acc += As",
        "race",
    ),
    "a memory fence in place of a barrier": (
        changed(TILED, (FENCE, "mem_fence(CLK_LOCAL_MEM_FENCE);")),
        "acc += As",
        "race",
    ),
    "a barrier in a branch": (
        changed(TILED, (FENCE, f"if (tm < 4) {FENCE}")),
        "if (tm < 4)",
        "divergent barrier",
    ),
    "an early return": (changed("\n    if (m > 12) return;" + TILED), FENCE, "divergent barrier"),
    "a break before the barrier": (
        changed(TILED, (FENCE, "if (tm == 7 && t) break; " + FENCE)),
        "if (tm == 7",
        "divergent barrier",
    ),
    "one row too many": (changed(TILED, ("k < 8;", "k <= 8;")), "acc += As", "out of bounds"),
    "the global index where the local one was meant": (
        changed(TILED, ("As[tm][tn] =", "As[m][tn] =")),
        "As[m][tn] =",
        "out of bounds",
    ),
    "the local index where the global one was meant": (
        changed(TILED, ("C[n*M + m] = acc", "C[tn*M + tm] = acc")),
        "C[tn*M",
        "two writers|race",
    ),
    "a group's number times the wrong size": (
        changed(TILED, ("C[n*M + m] = acc", "C[(get_group_id(1)*8 + n)*M + m] = acc")),
        "C[(get_group",
        "out of bounds",
    ),
    "rows of A as long as K": (
        changed(NAIVE, ("A[k*M + m]", "A[m*K + k]")),
        "A[m*K",
        "wrong product",
    ),
    "rows of C as long as K": (
        changed(NAIVE, ("C[n*M + m]", "C[n*K + m]")),
        "C[n*K",
        "two writers|race|out of bounds",
    ),
    "no zero at the beginning": (
        changed(NAIVE, ("float acc = 0.0f;", "float acc;")),
        "acc +=",
        "uninitialised",
    ),
    "C added to without zero": (
        changed(NAIVE, ("C[n*M + m] = acc", "C[n*M + m] += acc")),
        "C[n*M",
        "uninitialised",
    ),
    "a component forgotten": (
        changed(
            NAIVE,
            ("float acc = 0.0f;", "float2 s; s.x = 0.0f;\n    float acc = 0.0f;"),
            ("= acc;", "= acc + s.y;"),
        ),
        "= acc + s.y",
        "uninitialised",
    ),
    "a tile that is not filled": (
        changed(TILED, ("        Bs[tn][tm] =", "        if (tm) Bs[tn][tm] =")),
        "acc += As",
        "uninitialised",
    ),
    "= in place of +=": (changed(NAIVE, ("acc += ", "acc = ")), "acc = A", "wrong product"),
    "one step too few": (changed(NAIVE, ("k < K", "k < K - 1")), "acc +=", "wrong product"),
    "one step too many": (changed(NAIVE, ("k < K", "k <= K")), "acc +=", "out of bounds"),
    "an unsigned countdown": (
        changed(NAIVE, ("int k = 0; k < K; k++", "uint k = K - 1; k >= 0; k--")),
        "acc +=",
        "out of bounds",
    ),
    "a loop without a step": (changed(NAIVE, ("k++", "")), "for (int k", "stopped"),
    "m and n exchanged": (changed(NAIVE, ("C[n*M + m]", "C[m*N + n]")), "C[m*N", "wrong product"),
    "a whole number where a float was meant": (
        changed(NAIVE, ("float acc = 0.0f", "float acc = 1/2"), ("= acc;", "= acc + 1/2 + 0.5f;")),
        "acc = 1/2",
        "whole division",
    ),
    "a sum shared by all": (
        changed(
            "\n    __local float s;\n    if (tm == 0 && tn == 0) s = 0.0f;\n"
            + NAIVE.replace("acc +=", "s +=").replace("= acc;", "= s;")
        ),
        "",
        "race",
    ),
    "an atomic sum that is read too early": (
        changed(
            "\n    __local int c;\n    if (tm == 0 && tn == 0) c = 0;\n    "
            + FENCE
            + "\n    atomic_inc(&c);\n    int all = c;\n"
            + NAIVE
        ),
        "int all = c",
        "race",
    ),
    "a private array that is too small": (
        changed(
            NAIVE,
            (
                "float acc = 0.0f;",
                "float r[4];\n    for (int i = 0; i <= 4; i++) r[i] = 0.0f;\n    float acc = r[0];",
            ),
        ),
        "r[i] = 0.0f",
        "out of bounds",
    ),
    "a wide load off its boundary": (
        changed(
            NAIVE,
            (
                "float acc = 0.0f;",
                "float acc = 0.0f;\n    const float4 v = *(const __global float4*)(A + 1);",
            ),
        ),
        "const float4 v",
        "misaligned",
    ),
    "half of C is left out": (
        changed(NAIVE, ("C[n*M + m] = acc;", "if (m & 1) C[n*M + m] = acc;")),
        "if (m & 1) C",
        "never written",
    ),
    "an int that overflows": (
        changed(
            NAIVE, ("float acc = 0.0f;", "int big = M * 200000000;\n    float acc = big*0.0f;")
        ),
        "int big",
        "overflow",
    ),
    "tiles exchanged between groups": (
        changed(TILED, ("A[(t + tn)*M + m]", "A[(t + tn)*M + get_group_id(1)*8 + tm]")),
        "get_group_id(1)*8 + tm]",
        "out of bounds",
    ),
    "division by the wrong count": (
        changed(NAIVE, ("= acc;", "= acc / (m / 16);")),
        "/ 16);",
        "ratio",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named(name):
    text, part, kind = MISTAKES[name]
    run = simt.simulate(2, 16, 24, 32, {"TS": 8}, text)
    assert not run.ok, "nothing was found"
    found = run.findings[0]
    assert found.kind in kind.split("|"), run.verdict
    assert not part or found.line == line_of(text, part), run.verdict


RIGHT = {
    "naive": NAIVE,
    "tiled": TILED,
    "a loop downwards": NAIVE.replace("int k = 0; k < K; k++", "int k = K - 1; k >= 0; k--"),
    "an unsigned loop": NAIVE.replace("int k", "uint k"),
    "size_t": NAIVE.replace("int k", "size_t k"),
    "while": NAIVE.replace("for (int k = 0; k < K; k++) {", "int k = -1;\n    while (++k < K) {"),
    "do": NAIVE.replace("for (int k = 0; k < K; k++) {", "int k = 0;\n    do {").replace(
        "n*K + k];\n    }", "n*K + k];\n    } while (++k < K);"
    ),
    "a helper": NAIVE.replace("A[k*M + m] * B[n*K + k]", "dot(A[k*M + m], B[n*K + k])"),
    "fma": NAIVE.replace(
        "acc += A[k*M + m] * B[n*K + k]", "acc = fma(A[k*M + m], B[n*K + k], acc)"
    ),
    "mad": NAIVE.replace(
        "acc += A[k*M + m] * B[n*K + k]", "acc = mad(A[k*M + m], B[n*K + k], acc)"
    ),
    "a guard": NAIVE.replace("C[n*M + m] = acc", "if (m < M && n < N) C[n*M + m] = acc"),
    "an early return without barriers": "\n    if (m >= M) return;" + NAIVE,
    "pointers": NAIVE.replace(
        "for (int", "const __global float *a = A + m, *b = B + n*K;\n    for (int"
    ).replace("acc += A[k*M + m] * B[n*K + k]", "acc += *a * *b++; a += M"),
    "an array of sums": NAIVE.replace("float acc = 0.0f", "float s[2] = {0}; float acc = 0.0f")
    .replace("acc +=", "s[k & 1] +=")
    .replace("= acc;", "= s[0] + s[1];"),
    "a vector of sums": NAIVE.replace("float acc = 0.0f", "float4 s = (float4)(0)")
    .replace("acc +=", "s.x +=")
    .replace("= acc;", "= s.x + s.y + s.z + s.w;"),
    "components of an array": NAIVE.replace(
        "float acc = 0.0f", "float4 s[2]; s[0].x = 0; s[0].y = 0"
    )
    .replace("acc +=", "s[0].x +=")
    .replace("= acc;", "= s[0].x + s[0].y;"),
    "a vector filled by components": NAIVE.replace("float acc = 0.0f", "float2 s; s.x = 0; s.y = 0")
    .replace("acc +=", "s.y +=")
    .replace("= acc;", "= s.x + s.y;"),
    "a structure": NAIVE.replace(
        "float acc = 0.0f", "struct { float sum; int n; } s; s.sum = 0; s.n = 0"
    )
    .replace("acc +=", "s.n++; s.sum +=")
    .replace("= acc;", "= s.sum + s.n - K;"),
    "a const size": TILED.replace(
        "__local float As[8][8]", "const int T = 8; __local float As[T][T]"
    ),
    "padding": TILED.replace("As[8][8]", "As[8][9]"),
    "both fences": TILED.replace(
        "CLK_LOCAL_MEM_FENCE", "CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE"
    ),
    "a flat tile": TILED.replace("As[8][8]", "As[64]")
    .replace("As[tm][tn]", "As[tm*8 + tn]")
    .replace("As[tm][k]", "As[tm*8 + k]"),
    "a pointer to a tile": TILED.replace(
        "float acc", "__local float (*q)[8] = As;\n    float acc"
    ).replace("As[tm][k]", "q[tm][k]"),
    "a barrier in a branch for all": TILED.replace(
        "        barrier", "        if (K > 0) barrier", 1
    ),
    "a switch": NAIVE.replace(
        "acc += ", "switch (k & 1) { case 0: acc += 0; break; default: ; }\n        acc += "
    ),
    "goto": NAIVE.replace("for (int k = 0; k < K; k++) {", "int k = 0;\nmore: {").replace(
        "n*K + k];\n    }", "n*K + k];\n    }\n    if (++k < K) goto more;"
    ),
    "double": NAIVE.replace("float acc = 0.0f", "double acc = 0"),
    "int sums": NAIVE.replace("float acc = 0.0f", "int acc = 0").replace(
        "acc += A", "acc += (int)A"
    ),
    "isnan": NAIVE.replace("= acc;", "= isnan(acc) ? 0.0f : acc;"),
    "select": NAIVE.replace("= acc;", "= select(acc, 0.0f, isnan(acc));"),
    "async copies": TILED.replace(
        "        Bs[tn][tm] = B[n*K + t + tm];\n        barrier(CLK_LOCAL_MEM_FENCE);",
        "        event_t e = 0;\n        for (int i = 0; i < 8; i++)\n            e = "
        "async_work_group_copy(Bs[i], B + ((int)get_group_id(1)*8 + i)*K + t, 8, e);\n        "
        "wait_group_events(1, &e);",
    ),
    "printf": NAIVE.replace(
        "= acc;", '= acc;\n    if (m == 0 && n == 0) printf("%f %v4hlf\\n", acc, (float4)(acc));'
    ),
    "clamped indices": NAIVE.replace("B[n*K + k]", "B[min(n, N - 1)*K + clamp(k, 0, K - 1)]"),
    "a macro": "\n#define AT(p, i, j, ld) p[(j)*(ld) + (i)]"
    + NAIVE.replace("A[k*M + m]", "AT(A, m, k, M)"),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_kernel_is_right(name):
    for order in ("lockstep", "warps"):
        run = simt.simulate(2, 16, 24, 16, {"TS": 8}, product(RIGHT[name]), order=order)
        assert run.ok, run.verdict


def test_a_parameter_that_the_text_sets_itself_is_named():
    run = simt.simulate(
        2,
        16,
        24,
        16,
        {"TS": 8},
        "#undef TS\n#define TS 4\n" + product(TILED.replace("[8][8]", "[TS][TS]")),
    )
    assert run.findings[0].kind == "redefined" and run.findings[0].line == 2
    assert run.findings[0].message == "the text sets TS to 4 itself, but is launched for TS=8"
