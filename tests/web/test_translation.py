"""What the translation says: readable WGSL, its traps, its refusals, and no NumPy."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from gemmlab import web
from gemmlab.ladder import catalog
from gemmlab.simt import TextError
from gemmlab.web.plan import LEAST

HEAD = (
    "__kernel __attribute__((reqd_work_group_size(8, 1, 1)))\n"
    "void k(__global float* x, const int n)\n"
)


def code(body: str, **style) -> str:
    return web.translate(f"{HEAD}{{\n{body}\n}}\n", style=web.Style(**style)).code


def ladder(kernel: int, style: web.Style = web.TINT) -> web.Shader:
    full = catalog[kernel].validate({})
    return web.translate(catalog[kernel].text(full), "gemm", full, style)


def test_a_translation_reads_like_the_kernel_and_points_to_its_lines():
    text, shader = catalog[3].text({}).split("\n"), ladder(3)
    lines = [line.strip() for line in shader.code.split("\n")]
    assert len(lines) == len(shader.lines) + 1
    for line, word in (
        ("acc[j] += a * Btile[tn + j * 4][k];", "+="),
        ("C[(n0 + tn + j * 4) * args.M + m0 + tm] = acc[j];", "= acc[j]"),
        ("workgroupBarrier();", "barrier("),
    ):
        assert word in text[shader.lines[lines.index(line)] - 1]
    assert "var<workgroup> Atile: array<array<f32, 32>, 32>;" in lines
    assert shader.size == (32, 4, 1) and shader.local_bytes == 8192
    assert [b.written for b in shader.buffers] == [False, False, True]


@pytest.mark.parametrize("kernel", [15, 16, 18, 19])
def test_kernels_beyond_the_ladder_translate(kernel):
    assert ladder(kernel).entry == "gemm"


def test_nothing_needs_numpy():
    """As in a page, where Python has only its standard library."""
    source = (
        "import sys; sys.modules['numpy'] = None\n"
        "from gemmlab import web; from gemmlab.ladder import catalog\n"
        "print(len(web.job(6, 128, 128, 16).shaders)); print('pyopencl' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=False
    )
    assert done.stdout.split()[1:] == ["False"], done.stderr


# ---- traps
def test_a_variable_in_a_loop_always_has_a_value():
    """`var t: f32;` in a loop keeps the value of the iteration before, in tint and naga."""
    for text in (
        code("for (int i = 0; i < n; i++) { float t; if (i == 2) t = 1.0f; x[i] = t; }"),
        code("for (int i = 0; i < n; i++) x[i] = i < 3 ? x[i + 1] : x[i + 2];"),
        ladder(13).code,
    ):
        assert not re.search(r"var \w+: (f32|i32|u32|bool|vec\d<\w+>);", text)


def test_buffers_that_are_not_used_keep_their_binding():
    text = (
        "__kernel __attribute__((reqd_work_group_size(1, 1, 1)))\n"
        "void k(__global float* a, __global float* b, long m, __global float* c) { c[0] = 1.0f; }"
    )
    shader = web.translate(text)
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
    assert "array<array<f32, 2048>, 2>" in ladder(9).code  # proved


def test_a_name_is_never_declared_twice_in_what_is_visible():
    """A loop's variable declared again in its body is C and not WGSL; so are reserved words."""
    text = code(
        "int var = n; for (int i = 0; i < 4; i++) { int i = 7; x[i] = var; }\n"
        "{ int var = 2; x[1] = var; } for (int i = 0; i < 3; i++) x[i] = 0.0f;"
    )
    assert "let i_2: i32 = 7;" in text and "let var_: i32 = args.n;" in text
    assert text.count("for (var i: i32 = 0;") == 2  # but one after the other they keep their name


def test_a_function_of_numbers_alone_has_a_type():
    """Otherwise WGSL refuses to convert the negative result to u32."""
    assert "u32(i32(clamp((-4), (-8), 8)))" in code("uint u = (uint)clamp(-4, -8, 8); x[u] = 1.0f;")


def test_loops_have_ranges_that_tint_can_prove():
    text = code("for (int j = 0; j < 32; j += 4) x[j] = 1.0f;")
    assert "for (var j_turn: i32 = 0; j_turn < 8; j_turn++)" in text
    assert "let j: i32 = j_turn * 4;" in text
    changed = code("for (int j = 0; j < 32; j += 4) { x[j] = 1.0f; if (n) j++; }")
    assert "j_turn" not in changed


def test_loops_over_private_arrays_are_laid_out_for_naga():
    shader = ladder(6, web.NAGA)
    assert "acc[7][7] += a[7] * b[7];" in shader.code
    assert "for (var k: i32 = 0; k < 16; k++)" in shader.code
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
    ],
)
def test_what_wgsl_cannot_say_is_refused_in_words(body, words):
    with pytest.raises(web.RefusedError, match=words) as error:
        code(body)
    assert error.value.line == 4 and body[:8] in str(error.value)


def test_texts_jobs_and_settings_that_are_refused():
    with pytest.raises(web.RefusedError, match="reqd_work_group_size"):
        web.translate("__kernel void k(__global float* x) { x[get_global_id(0)] = 1.0f; }")
    with pytest.raises(TextError) as error:
        code("x[0] = 1.0f;\nx[1] = nn;")
    assert error.value.line == 5 and "nn" in str(error.value)
    with pytest.raises(ValueError, match="multiples of 128 x 128 x 16"):
        web.job(6, 100, 128, 128)
    with pytest.raises(ValueError, match="not a multiple"):
        web.job(3, 64, 64, 64, {"WPT": 5})
    with pytest.raises(ValueError, match="vectors of 4 floats"):
        catalog[7].validate({"WIDTH": 8}, LEAST)
