"""What the translations compute, with the compilers of Firefox (naga) and Chrome (tint)."""

from __future__ import annotations

import random

import numpy as np
import pytest
from microscope import gpus
from microscope.small_kernels import ITEMS, text

import clscope
from clscope import TextError, wgsl

STYLES = {**wgsl.STYLES, "watched": wgsl.Style(watched=True)}


@pytest.fixture(scope="module")
def naga():
    return gpus.naga()


@pytest.fixture(scope="module")
def tint():
    return gpus.tint()


@pytest.mark.parametrize("seed", range(0, 200, 8))
def test_random_texts_do_what_the_simulator_says(naga, seed):
    source = text(seed)
    x = (np.arange(64) % 7 - 3).astype(np.float32)
    y = (np.arange(64, dtype=np.int32) * 37) % 41 - 15
    out, whole = np.zeros(2 * ITEMS, np.float32), np.zeros(2 * ITEMS, np.int32)
    expected = clscope.run(source, "fuzz", (2 * ITEMS,), None, [x, y, out, whole])
    assert expected.ok, expected.verdict
    arrays = {"x": x, "y": y, "out": out, "whole": whole}
    for style in STYLES.values():
        got = naga.run(wgsl.translate(source, style=style), arrays, {}, (2, 1, 1))
        assert np.array_equal(got["out"], expected.arrays["out"])
        assert np.array_equal(got["whole"], expected.arrays["whole"])


OUTSIDE = """\
__kernel __attribute__((reqd_work_group_size(8, 1, 1)))
void k(__global float* x, const int n)
{
    float a[4] = {0.0f};
    const int i = get_global_id(0);
    a[i & 3] = 1.0f;
    x[i + n] = a[i & 3];
}
"""
ENDLESS = """\
__kernel __attribute__((reqd_work_group_size(8, 1, 1)))
void k(__global float* x, const int n)
{
    int i = get_global_id(0);
    while (i < 100) {
        x[i & 7] += 1.0f;
        if (n > 1) i++;
    }
}
"""


def test_a_watched_kernel_reports_the_access_and_the_loop_that_go_wrong(naga):
    watched = wgsl.Style(watched=True)

    def watch(source, n):
        shader = wgsl.translate(source, style=watched)
        arrays = {"x": np.zeros(16, np.float32)}
        return list(naga.run(shader, arrays, {"n": n}, (2, 1, 1))["watch"])

    assert watch(OUTSIDE, 0) == [0, 0, 0, 0]
    line, index, size, endless = watch(OUTSIDE, 5)
    assert (line, size, endless) == (7, 16, 0) and index >= 16
    assert watch(OUTSIDE, -1)[:2] == [7, -1]
    assert watch(ENDLESS, 2)[3] == 0
    assert watch(ENDLESS, 0)[3] == 5


@pytest.mark.parametrize("compiler", ["naga", "tint"])
def test_an_endless_loop_of_a_counted_kernel_ends_it(request, monkeypatch, compiler):
    gpu = request.getfixturevalue(compiler)
    monkeypatch.setattr("clscope.wgsl.statements.MOST_UNPROVED", 1000)  # Mesa ends loops at 65,535
    # tint must see that all work-items reach the barrier
    text = ENDLESS.replace("x[i & 7]", "barrier(CLK_GLOBAL_MEM_FENCE); x[i & 7]")
    text = text.replace("get_global_id(0)", "n")
    shader = wgsl.translate(text, style=wgsl.Style(counted=True))
    for n, line in ((2, 0), (0, 5)):
        after = gpu.run(shader, {"x": np.zeros(8, np.float32)}, {"n": n}, (2, 1, 1))
        assert after["watch"][3] == line


#: Names that mean something in WGSL, or in a translation, and nothing in OpenCL C.
NAMES = """
    storage workgroup uniform function read write handle
    var let fn loop alias override ptr f32 i32 u32 vec2 vec3 vec4 array atomic bool2_ arrayLength
    round inverseSqrt countOneBits countLeadingZeros bitcast workgroupBarrier atomicStore
    atomicCompareExchangeWeak Args args endless ended inside turns watch lid gid wid nwg t bits
    _ __ __1 __x __builtin _x x__y self Self compute group binding builtin position texture_2d
"""
HEADER = "__kernel __attribute__((reqd_work_group_size(8, 1, 1)))\n"
USES = """
    __local float held[8]; held[get_local_id(0)] = fabs(o[0]) + rint(o[1]); barrier(1);
    int at = popcount(w) + clz(w) + get_global_id(0);
    for (int j = 0; j < w; j++) at += as_int(o[2]);
"""
ROLES = {
    "kernel": "void {0}(__global float* o, int w) {{" + USES + "o[at] = held[w]; }}",
    "function": "void k(__global float* o, int w) {{" + USES + "o[at] = {0}(held[w], o); }}",
    "buffer": "void k(__global float* o, int w, __global const float* {0}) {{"
    + USES + "o[at] = {0}[w] + held[w]; }}",
    "argument": "void k(__global float* o, int w, int {0}) {{" + USES + "o[at] = {0}; }}",
    "local array": "void k(__global float* o, int w) {{ __local float {0}[8]; {0}[w] = 1.0f;"
    + USES + "o[at] = {0}[w] + held[w]; }}",
    "variable": "void k(__global float* o, int w) {{ float {0} = o[1]; {0} += 1.0f;"
    + USES + "o[at] = {0}; }}",
    "macro": "void k(__global float* o, int w) {{ int {0} = SUM({0}_1, w); "
    + USES + "o[at] = {0}; }}",
}  # fmt: skip


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("compiler", ["naga", "tint"])
def test_any_name_can_be_anything(request, compiler, role):
    gpu = request.getfixturevalue(compiler)
    for name in NAMES.split():
        before = "#define SUM(a, b) 2*b; int a = b; a += 1\n"
        if role == "function":
            before = f"float {name}(float a, __global float* p) {{ return a*p[0]; }}\n"
        shader = wgsl.translate(before + HEADER + ROLES[role].format(name), style=STYLES["watched"])
        gpu.device.create_shader_module(code=shader.code)
        assert shader.entry == name or role != "kernel" or name in shader.entry


#: Constant expressions that have a value in C, or any, and that WGSL refuses as they are written.
CONSTANTS = """
    1.0f/0.0f; -1.0f/0.0f; x[1]*(1.0f/0.0f); 3e38f*10.0f; FLT_MAX + FLT_MAX; n ? 1.0f/0.0f : 0.0f
    exp(1000.0f); pow(0.0f, -1.0f); fma(3e38f, 2.0f, 0.0f); as_float(0x7f800000); rsqrt(0.0f)
    as_float((uint)n | 0x7f800000u); 1.0f/0.0f > x[0]; 1.0f/0.0f > 3.0f; log(0.0f)
    ((float4)(1.0f)/0.0f).x; ((float2)(3e38f, 1.0f)*(float2)(10.0f)).x; exp((float2)(1000.0f)).y
    INT_MIN; -2147483648; INT_MIN + n; 1u << 31; 1 << 40; n << 40; n >> 33; (int2)(n, 5).y >> 33
    ((int2)(1) << 33).x; ((int2)(n, 5) >> (int2)(33, 1)).y; ((uint2)(7u) << (uint2)(n, 34)).y
    0xFFFFFFFFu + 1u; 0u - 1u; (uint)-1; 7 % -3; -7 / 2; -7 >> 1; abs(-7); (uint)clamp(-4, -8, 8)
    min(3, -2); max(3u, 4u); popcount(7); clz(1u); ((int2)(n, 9)/(int2)(2, 4)).y
    ((int2)(n, 9) % 4).y; sqrt(4.0f); 1e-40f > 1.0f; x[1] - -0.0f; as_int(1.0f)
"""
STATEMENTS = """
    int q = 5; q <<= 33; x[0] = q;
    uint q = 5; q >>= 33u; x[0] = q;
    int2 v = (int2)(n, 8); v <<= 33; v /= (int2)(1, 2); v %= 5; x[0] = v.y;
    const float z = 0.0f; x[0] = 1.0f/z;
    float a[2] = {1.0f/0.0f, FLT_MAX*2.0f}; x[0] = a[n & 1];
    for (float f = 0.0f; f < 1.0f/0.0f; f += 1.0f) { x[0] = f; if (f > 3.0f) break; }
"""


def constants(values: str) -> list[str]:
    """Statements that store each of these values."""
    lines = values.strip().splitlines()
    return [f"x[0] = {value.strip()};" for line in lines for value in line.split("; ")]


@pytest.mark.parametrize("compiler", ["naga", "tint"])
def test_a_constant_has_the_value_that_it_has_in_c(request, compiler):
    gpu = request.getfixturevalue(compiler)
    for body in [*constants(CONSTANTS), *STATEMENTS.strip().splitlines()]:
        text = HEADER + f"void k(__global float* x, const int n)\n{{\n{body}\n}}"
        x = np.zeros(8, np.float32)
        expected = clscope.run(text, "k", (8,), None, [x.copy(), 1]).arrays["x"]
        got = gpu.run(wgsl.translate(text), {"x": x}, {"n": 1}, (1, 1, 1))["x"]
        assert np.array_equal(got, expected, equal_nan=True), (body, got, expected)


UNDEFINED = """
    0.0f/0.0f; sqrt(-1.0f); 2147483647 + 1; INT_MIN / -1; INT_MIN * -1; -INT_MIN; (int)3e9f
    (uint)5e9f; convert_int(1.0f/0.0f); clamp(n, 8, 1); clamp(x[1], 2.0f, 1.0f); (uint)-3.0f
    ((int2)(2147483647) + 1).x; ((int2)(n, 1)/(int2)(0, 1)).x; as_float(0x7fc00001)
"""


@pytest.mark.parametrize("compiler", ["naga", "tint"])
def test_a_constant_without_a_value_is_accepted(request, compiler):
    gpu = request.getfixturevalue(compiler)
    for body in constants(UNDEFINED):
        text = HEADER + f"void k(__global float* x, const int n)\n{{\n{body}\n}}"
        for style in STYLES.values():
            gpu.device.create_shader_module(code=wgsl.translate(text, style=style).code)


#: Operands of 64-bit operations, signed and not: u and n are near the ends of their types.
OPERANDS = [
    ["(long)n", "(long)m", "(long)u", "-3L", "1000L", "65536L"],
    ["(ulong)n", "(ulong)u", "u", "5UL", "255UL", "65536UL"],
]
OPERATIONS = ["+", "-", "*", "&", "|", "^"]


def wide_expression(rng: random.Random, operands: list[str], depth: int) -> str:
    if not depth:
        return rng.choice(operands)
    a, b = (wide_expression(rng, operands, depth - 1) for _ in range(2))
    forms = [
        f"({a} {rng.choice(OPERATIONS)} {b})",
        f"({a} {rng.choice(['/', '%'])} {rng.choice(operands)})",
        f"({a} {rng.choice(['<<', '>>'])} {rng.choice([1, 5, 31, 32, 40])})",
        f"{rng.choice(['-', '~', '(uint)'])}{a}",
        f"{rng.choice(['min', 'max'])}({a}, {operands[-1]})",
        f"({a} ? {b} : {a})",
    ]
    return rng.choice(forms)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.filterwarnings("ignore")
def test_64_bits_do_the_same_in_32_or_are_refused(naga, seed):
    rng = random.Random(seed)
    head = HEADER + "void k(__global int* y, const int n, const int m, const uint u)\n{\n"
    lines = []
    while len(lines) < 100:
        operands = rng.choice(OPERANDS)
        value = wide_expression(rng, operands, rng.choice([1, 2, 3]))
        test = f"{value} {rng.choice(['<', '>=', '==', '&&'])} {wide_expression(rng, operands, 1)}"
        line = rng.choice([f"y[{len(lines)}] = (int)({value});", f"y[{len(lines)}] = {test};"])
        try:
            wgsl.translate(head + line + "}")
        except TextError:
            continue
        lines.append(line)
    text, y = head + "\n".join(lines) + "}", np.zeros(128, np.int32)
    given = {"n": 2147480001, "m": -77, "u": 3000000019}
    expected = clscope.run(text, "k", (8,), None, [y.copy(), *given.values()]).arrays["y"]
    got = naga.run(wgsl.translate(text), {"y": y}, given, (1, 1, 1))["y"]
    assert not [(lines[i], got[i], expected[i]) for i in np.flatnonzero(got != expected)]


@pytest.mark.parametrize(
    "head",
    [
        "if (n > 3)",
        "for (int t = 0; t < n; t++)",
        "for (int t = 0; t < y[0]; t++)",
        "if (get_group_id(0) < n)",
        "while (y[n] > 3)",
    ],
)
def test_tint_accepts_a_barrier_that_all_visibly_reach(tint, head):
    text = HEADER + (
        "void k(__global float* x, const __global int* y, const int n)"
        f"{{ {head} {{ barrier(1); x[get_local_id(0)] = 1.0f; }} }}"
    )
    tint.device.create_shader_module(code=wgsl.translate(text).code)


ENDINGS = """
    if (a > 3) return 1; else return 2;
    if (a > 3) { return 1; } else { a++; return a; }
    if (a > 3) return 1;
    if (1) return a;
    if (0) a++; else return a;
    while (1) { if (a > 3) return a; a++; }
    for (;;) { a++; if (a > 3) return a; }
    do { a++; if (a > 3) return a; } while (1);
    for (int i = 0; i < a; i++) return i;
    { { return a; } }
    a++;
"""


@pytest.mark.parametrize("compiler", ["naga", "tint"])
def test_a_function_may_end_as_in_c(request, compiler):
    gpu = request.getfixturevalue(compiler)
    for body in ENDINGS.strip().splitlines():
        text = (
            f"int f(int a) {{ {body} }}\n{HEADER}"
            "void k(__global int* y) { const int g = get_global_id(0); y[g] = f(y[g]); }"
        )
        for style in STYLES.values():
            gpu.device.create_shader_module(code=wgsl.translate(text, style=style).code)


def test_tint_refuses_a_barrier_that_not_all_reach(tint):
    """naga lets it pass, and computes something."""
    text = (
        "__kernel __attribute__((reqd_work_group_size(8, 1, 1)))\n"
        "void k(__global float* x) { if (get_local_id(0) < 4) barrier(1); x[0] = 1.0f; }"
    )
    with pytest.raises(Exception, match="uniform"):
        tint.device.create_shader_module(code=wgsl.translate(text).code)
