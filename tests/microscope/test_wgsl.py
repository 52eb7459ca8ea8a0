"""What the translation says: readable WGSL, its traps, its refusals, and no NumPy."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from microscope.corpus import RIGHT

import clscope
from clscope import TextError, parse, tree, wgsl

HEAD = (
    "__kernel __attribute__((reqd_work_group_size(8, 1, 1)))\n"
    "void k(__global float* x, const int n)\n"
)


def code(body: str, **style) -> str:
    return wgsl.translate(f"{HEAD}{{\n{body}\n}}\n", style=wgsl.Style(**style)).code


def test_a_translation_reads_like_the_kernel_and_points_to_its_lines():
    case = next(case for case in RIGHT if case.name == "tile")
    size = "__attribute__((reqd_work_group_size(8, 8, 1))) void tile"
    text = case.text.replace("void tile", size)
    source, shader = text.split("\n"), wgsl.translate(text)
    lines = [line.strip() for line in shader.code.split("\n")]
    assert len(lines) == len(shader.lines) + 1
    for line, word in (
        ("sum += sa[i * 8 + x] * sb[y][i];", "sum +="),
        ("C[col * args.M + row] = sum;", "= sum"),
        ("workgroupBarrier();", "barrier("),
    ):
        assert word in source[shader.lines[lines.index(line)] - 1]
    assert "var<workgroup> sb: array<array<f32, 9>, 8>;" in lines
    assert shader.size == (8, 8, 1) and shader.local_bytes == 4 * (64 + 72)
    assert [b.written for b in shader.buffers] == [False, False, True]


def test_translating_needs_no_package():
    """As in a page, where Python has only its standard library."""
    source = (
        "import sys; sys.modules['numpy'] = None\nimport clscope\n"
        "clscope.to_wgsl('__kernel __attribute__((reqd_work_group_size(1, 1, 1)))'\n"
        "    'void k(__global float* x) { x[0] = 1.0f; }')\n"
        "print('numpy.core' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", source], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(clscope.__file__).parents[1])},
    )  # fmt: skip
    assert done.stdout == "False\n", done.stderr


# ---- traps
def test_a_variable_in_a_loop_always_has_a_value():
    """`var t: f32;` in a loop keeps the value of the iteration before, in tint and naga."""
    for text in (
        code("for (int i = 0; i < n; i++) { float t; if (i == 2) t = 1.0f; x[i] = t; }"),
        code("for (int i = 0; i < n; i++) x[i] = i < 3 ? x[i + 1] : x[i + 2];"),
    ):
        assert not re.search(r"var \w+: (f32|i32|u32|bool|vec\d<\w+>);", text)


def test_buffers_that_are_not_used_keep_their_binding():
    text = (
        "__kernel __attribute__((reqd_work_group_size(1, 1, 1)))\n"
        "void k(__global float* a, __global float* b, long m, __global float* c) { c[0] = 1.0f; }"
    )
    shader = wgsl.translate(text)
    assert [b.name for b in shader.buffers] == ["a", "b", "c"]
    assert "@binding(2) var<storage, read_write> c" in shader.code
    assert "@binding(3) var<uniform> args" in shader.code
    assert shader.scalars == (("m", "i32"),)  # no buffer needs more than 32 bits


def test_a_pointer_to_a_row_that_may_leave_it_makes_the_array_flat():
    """A browser would clamp it to the row: a silently wrong product."""
    rows = "__local float t[4][8];\nt[0][n & 3] = 1.0f;\n"
    stays = code(rows + "for (int i = 0; i < 8; i++) { __local float* p = t[n]; x[i] = p[i]; }")
    assert "var<workgroup> t: array<array<f32, 8>, 4>;" in stays
    leaves = code(rows + "__local float* p = t[0]; for (int i = 0; i < n; i++) x[i] = p[i];")
    assert "var<workgroup> t: array<f32, 32>;" in leaves
    walks = code(rows + "__local float* p = t[1]; p += n; x[0] = *p;")
    assert "var<workgroup> t: array<f32, 32>;" in walks


def test_a_name_is_never_declared_twice_in_what_is_visible():
    """A loop's variable declared again in its body is C and not WGSL; so are reserved words."""
    text = code(
        "int var = n; for (int i = 0; i < 4; i++) { int i = 7; x[i] = var; }\n"
        "{ int var = 2; x[1] = var; } for (int i = 0; i < 3; i++) x[i] = 0.0f;"
    )
    assert "let i_2: i32 = 7;" in text and "let var_: i32 = args.n;" in text
    assert text.count("for (var i: i32 = 0;") == 2  # but one after the other they keep their name


def test_loops_have_ranges_that_tint_can_prove():
    text = code("for (int j = 0; j < 32; j += 4) x[j] = 1.0f;")
    assert "for (var j_turn: i32 = 0; j_turn < 8; j_turn++)" in text
    assert "let j: i32 = j_turn * 4;" in text
    changed = code("for (int j = 0; j < 32; j += 4) { x[j] = 1.0f; if (n) j++; }")
    assert "j_turn" not in changed


@pytest.mark.parametrize(
    "loop",
    [
        "for (int i = 0; i < 4; i++) { int a[2] = {i++, i}; x[i] = a[0]; }",
        "for (int i = 0; i < 8; i++) { int b[2][1] = {{0}, {--i}}; x[i] = b[n][0]; }",
        "for (int i = 0; i < 4; i++) { float4 v[1] = {(float4)(i = n)}; x[i] = v[0].x; }",
        "for (uint i = 8; i >= 0; i--) x[i] = 1.0f;",
        "for (int i = 8; i >= 0u; i--) x[i & 7] = 1.0f;",
        "for (uint i = 1; i <= 0xFFFFFFFFu; i += 2) x[i & 7] = 1.0f;",
        "for (int i = 0; i < 2000000000; i++) x[i & 7] = 1.0f;",
        "int i = 0; while (i < n) x[i] = 1.0f;",
        "do x[0] += 1.0f; while (x[0] > n);",
    ],
)
def test_a_watched_loop_that_may_not_end_is_counted(loop):
    assert "turns++" in code(loop, watched=True)


@pytest.mark.parametrize(
    "loop, is_counted",
    [
        ("for (int k = 0; k < n; k++) x[k] = 1.0f;", False),
        ("for (int k = 0; k + 4 <= n; k += 4) x[k] = 1.0f;", False),
        ("for (int k = n; k >= 0; k--) x[k] = 1.0f;", False),
        ("for (size_t k = get_local_id(0); k < n; k += 8) x[k] = 1.0f;", False),
        ("for (int k = 0; k != n; k += 3) x[k & 7] = 1.0f;", True),
        ("for (int k = 0; k < n; k += n) x[k & 7] = 1.0f;", True),
        ("for (int k = 0; k % 4 < n; k++) x[k & 7] = 1.0f;", True),
        ("for (int k = 0; k < x[0]; k++) x[k & 7] = 1.0f;", True),
        ("int m = n; for (int k = 0; k < m; k++) { x[k & 7] = 1.0f; m++; }", True),
        ("for (int k = 0; k < *x; k++) x[k & 7] = 1.0f;", True),
        ("int m = n, *p = &m; for (int k = 0; k < m; k++) { x[k & 7] = 1.0f; *p += 1; }", True),
        ("for (int k = 0; k < n; k++) { x[k & 7] = 1.0f; k--; }", True),
        ("for (uint k = n; k >= 0; k--) x[k & 7] = 1.0f;", True),
        ("for (float k = 0; k < 1e9f; k += 0.5f) x[0] = k;", True),
        ("int k = 0; while (k < n) x[k++] = 1.0f;", True),
    ],
)
def test_loops_that_are_not_proved_to_end_are_counted(loop, is_counted):
    assert ("turns++" in code(loop, counted=True)) == is_counted


@pytest.mark.parametrize("limit", ["i < 2.5f", "i <= 2.5f", "i < 2", "i <= 2", "i < 3u"])
def test_a_loop_written_iteration_by_iteration_does_all_of_them(limit):
    text = code(
        f"float a[4]; for (int i = 0; {limit}; i++) a[i] = 1.0f; x[0] = a[n];", laid_out=True
    )
    assert "for (" in text or ("a[2]" in text) == (limit != "i < 2")


def test_a_refusal_leaves_the_tree_as_it_was(monkeypatch):
    """A tree that is translated again says the same."""
    body = "float a[2]; for (int i = 0; i < 2; i++) a[i] = hypot(x[i], 1.0f);"
    unit = parse(f"{HEAD}{{ {body} }}")
    names = [n for f in unit.functions for n in f.walk() if isinstance(n, tree.Name)]
    before = [n.variable.constant for n in names]
    monkeypatch.setattr("clscope.wgsl.shader.parse_with", lambda *_: unit)
    for style in (wgsl.NAGA, wgsl.TINT, wgsl.NAGA):
        with pytest.raises(wgsl.RefusedError, match="hypot"):
            wgsl.translate("", style=style)
        assert [n.variable.constant for n in names] == before


def test_loops_over_private_arrays_are_laid_out_for_naga():
    text = code(
        "float a[2][2]; int q = n; for (int i = 0; i < 2; i++) for (int j = 0; j < 2; j++)"
        " { x[q++] = a[i][j]; } for (int j = 0; j < 2; j++) x[q++] = a[j][0];",
        laid_out=True,
    )
    names = re.findall(r"    let (\w+) =", text)
    assert len(names) == len(set(names)) == 6


# ---- refusals
@pytest.mark.parametrize(
    "body, words",
    [
        ("double d = x[0]; x[1] = (float)d;", "double"),
        ('printf("%d", n);', "printf"),
        ("__global float* p = n ? x : x + 1; *p = 1.0f;", "chosen at run time"),
        ("__local int c[1]; atomic_add(c, 1);", "atomic"),
        ("__global float* p; p = x;", "needs its value"),
        ("float3 v = (float3)(1.0f); x[0] = v.x;", "vectors of 3"),
        ("float8 v = (float8)(1.0f); x[0] = v.s0;", "vectors of 8"),
        ("x[0] = (float)(x < x + n);", "use indices"),
        ("switch (n) { case 0: x[0] = 1.0f; }", "switch"),
        ("long c = n + 9000000000L; x[0] = c;", "32 bits"),
        ("char c = (char)n; x[0] = c;", "WGSL has no char"),
        ("goto out; out: x[0] = 1.0f;", "goto"),
        ("x[0] = (float)(n / 0);", "division by zero"),
        ("int q = n; q %= 0; x[0] = q;", "division by zero"),
        ("const uint none = 0; x[0] = (uint)n / none;", "division by zero"),
        ("int2 v = (int2)(n); v.x /= 0; x[0] = v.x;", "division by zero"),
        ("float a[4]; a[4] = 1.0f; x[0] = a[n & 3];", "element 4"),
        ("x[-1] = 1.0f;", "element -1"),
        ("__local float t[2][3]; t[1][3] = 1.0f; x[0] = t[0][n];", "element 3"),
    ],
)
def test_what_wgsl_cannot_say_is_refused_in_words(body, words):
    with pytest.raises(wgsl.RefusedError, match=words) as error:
        code(body)
    assert error.value.line == 4 and body[:8] in str(error.value)


#: Index arithmetic, and 64-bit operations whose result does not depend on the upper bits.
NARROW_ENOUGH = """
    const size_t i = get_global_id(0); if (i < n) x[i] = 1.0f;
    size_t i = get_global_id(0) + get_global_id(1)*n; if (i < z) x[i] = 1.0f;
    for (size_t k = 0; k < n; k++) x[k] = 1.0f;
    for (size_t k = get_global_id(0); k < n; k += get_global_size(0)) x[k] = 1.0f;
    for (size_t s = get_local_size(0)/2; s > 0; s >>= 1) x[s] = 1.0f;
    for (size_t s = 1; s < get_local_size(0); s *= 2) x[s] = 1.0f;
    for (long k = n - 1; k >= 0; k--) x[k] = 1.0f;
    long at = (long)n*n + get_local_id(0); x[at] = 1.0f;
    x[(size_t)n*u + 3] = 1.0f;
    x[get_global_id(0)/n] = x[get_global_id(0)%n];
    for (int t = 0; t < n/get_local_size(0); t++) x[t] = 1.0f;
    int h = (ulong)n * n; x[0] = h;
    y[0] = (int)((ulong)u + u);
    x[0] = (float)get_global_id(0);
    x[0] = (float)((ulong)u & 255);
    x[0] = min(get_global_id(0), (size_t)n);
    if (z) x[0] = 1.0f;
    size_t k = 0; while (k < n) { x[k] = 1.0f; k += 4; }
    size_t k = 0; while (k < n) { x[k] = 1.0f; k = k + 1; }
    const int i = get_global_id(0); if ((long)i*n < z) x[0] = 1.0f;
    x[0] = (get_global_id(0) + 7)/8;
    x[0] = (size_t)u / 3;
    x[0] = (long)n % 3;
    for (size_t k = 0; k < z; k += n) x[k] = 1.0f;
    size_t tile = get_group_id(0); x[tile*8 + get_local_id(0)] = tile % 2 ? 1.0f : 2.0f;
    ulong m = 5; m = m*3 + 1; x[m] = 2.0f;
"""
#: What 32 bits may compute otherwise.
TOO_WIDE = """
    ulong p = (ulong)n * n; x[0] = (float)(p >> 32);
    ulong p = (ulong)u * u; x[0] = p > 4000000000UL;
    ulong p = (ulong)u * u; x[0] = (float)p;
    int v = 3; int* p = &v; *p = n; x[0] = (long)v*v > 5;
    ulong p = (ulong)u * u % z; x[0] = p;
    ulong p = z; p >>= 32; x[0] = p;
    ulong p = z << 32; x[0] = p;
    ulong p = z << n; x[0] = (int)p;
    ulong p = z >> n; x[0] = (int)p;
    long s = 0; for (int i = 0; i < n; i++) s += y[i]; x[0] = s / n;
    long s = 0; for (int i = 0; i < n; i++) s += y[i]; if (s > 0) x[0] = 1.0f;
    long s = (long)n + n; if (s > 2147483647) x[0] = 1.0f;
    ulong h = 5381; for (int i = 0; i < n; i++) h = h*33 + y[i]; x[0] = h % 1000;
    ulong a[4]; a[n & 3] = 1; x[0] = a[0];
    __local long a[4]; a[n & 3] = 1; x[0] = a[0];
    long4 v = (long4)(1); x[0] = v.x;
    long v = n; long* p = &v; x[0] = *p;
    x[0] = clz((ulong)u);
    x[0] = popcount((long)n);
    if ((long)u - 5 < 0) x[0] = 1.0f;
    x[0] = -(ulong)u > 5;
    x[0] = ~(ulong)u / 2;
    long f = (long)x[0]; if (f > 3) x[0] = 1.0f;
    x[0] = (float)((ulong)n << 3);
    x[0] = (ulong)u*u ? 1.0f : 2.0f;
    x[0] = !((ulong)u*u);
    x[0] = max((ulong)u*u, z);
    long q = n; q *= n; q /= 3; x[0] = q;
    x[0] = convert_float((ulong)u + u);
    ulong s = u, t = s; for (int i = 0; i < n; i++) { s ^= s << 13; s ^= s >> 7; } x[0] = (int)s;
"""
ARGUMENTS = HEAD.replace("const int n", "__global int* y, const int n, const uint u, const ulong z")


@pytest.mark.parametrize("body", NARROW_ENOUGH.strip().splitlines())
def test_index_arithmetic_of_64_bits_is_translated(body):
    wgsl.translate(f"{ARGUMENTS}{{\n{body}\n}}")


@pytest.mark.parametrize("body", TOO_WIDE.strip().splitlines())
def test_64_bits_that_32_may_compute_otherwise_are_refused(body):
    with pytest.raises(wgsl.RefusedError) as error:
        wgsl.translate(f"{ARGUMENTS}{{\n{body}\n}}")
    assert error.value.line == 4


def test_64_bits_are_followed_through_functions():
    square = "ulong square(ulong a) { return a*a; }\n"
    wgsl.translate(
        f"{square}{ARGUMENTS}{{ x[square(u)] = square(3); }}".replace("= square(3)", "= 1.0f")
    )
    with pytest.raises(wgsl.RefusedError):
        wgsl.translate(f"{square}{ARGUMENTS}{{ x[0] = square(u)/3; }}")


def test_texts_that_are_refused():
    with pytest.raises(wgsl.RefusedError, match="reqd_work_group_size"):
        wgsl.translate("__kernel void k(__global float* x) { x[get_global_id(0)] = 1.0f; }")
    with pytest.raises(TextError) as error:
        code("x[0] = 1.0f;\nx[1] = nn;")
    assert error.value.line == 5 and "nn" in str(error.value)
