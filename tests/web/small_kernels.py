"""Random small kernels in the ways learners write them."""

from __future__ import annotations

import random

ITEMS = 16
HEAD = """\
int twice(int a) { a += a; return a; }
float pick(const __global float* p, int i) { return p[i & 31]; }

__kernel __attribute__((reqd_work_group_size(16, 1, 1)))
void fuzz(const __global float* x, const __global int* y, __global float* out, __global int* whole)
{
    const int i = get_global_id(0), l = get_local_id(0);
    __local float tile[16];
    float f = x[i];
    int n = y[i];
    uint u = (uint)y[i & 7] + 3u;
    float4 v = (float4)(f, 1.0f, 2.0f, (float)l);
    float part[4] = {1.0f, 2.0f};
    int grid[2][3];
    for (int a = 0; a < 2; a++) for (int b = 0; b < 3; b++) grid[a][b] = a*3 + b - l;
"""
TAIL = """\
    if (n > 3 && y[n++ & 15] > 0) n &= 31;
    out[i] = f + v.x + v.y + v.z + v.w + part[0] + part[1] + part[2] + part[3];
    whole[i] = n + (int)(u & 1023u) + grid[0][1] + grid[1][2];
}
"""


class Random:
    """Writes statements; every number stays small, so that floats are exact."""

    def __init__(self, seed: int):
        self.rng = random.Random(seed)

    def number(self, depth: int = 2) -> str:
        """An int expression of a modest size."""
        rng = self.rng
        if depth == 0:
            return rng.choice(
                ["l", "i", "n", str(rng.randint(-9, 9)), "(int)(u & 15u)", "grid[1][0]"]
            )
        a, b = self.number(depth - 1), self.number(depth - 1)
        op = rng.choice(["+", "-", "*", "&", "|", "^", "<", "==", "&&", "? :", "%", ">>", "call"])
        if op == "? :":
            return f"({a} > {b} ? {a} : {b})"
        if op == "%":
            return f"({a} % {rng.randint(2, 9)})"
        if op == ">>":
            return f"({a} >> {rng.randint(0, 4)})"
        if op == "call":
            return rng.choice(
                [f"twice({a})", f"min({a}, {b})", f"(int)abs({a})", f"clamp({a}, -8, 8)"]
            )
        return f"({a} {op} {b})"

    def floating(self, depth: int = 2) -> str:
        rng = self.rng
        if depth == 0:
            return rng.choice(
                ["f", "v.x", "v.w", "part[l & 3]", f"{rng.randint(-4, 4)}.0f", "x[(l + 3) & 15]",
                 "(float)l", "pick(x, l)"]
            )  # fmt: skip
        a, b = self.floating(depth - 1), self.floating(depth - 1)
        return rng.choice(
            [f"({a} + {b})", f"({a} - {b})", f"({a} * {rng.randint(-2, 2)}.0f)", f"fmax({a}, {b})",
             f"({self.number(1)} & 1 ? {a} : {b})", f"-({a})", f"fabs({a})", f"fmin({a}, {b})"]
        )  # fmt: skip

    def statement(self) -> str:
        rng = self.rng
        small = f"(({self.number()}) & 15)"
        choices = [
            f"f = {self.floating()};",
            f"n = ({self.number()}) & 255;",
            f"u = (u << {rng.randint(0, 3)}) ^ (uint)({self.number(1)}); u &= 1023u;",
            f"v.{rng.choice('xyzw')} = {self.floating(1)};",
            "v.xy = v.zw; v = v.wzyx + (float4)(1.0f);",
            f"part[{small} & 3] += {self.floating(1)};",
            f"grid[l & 1][{rng.randint(0, 2)}] = ({self.number(1)}) & 63;",
            f"if ({self.number(1)} > 2) {{ f = {self.floating(1)}; }} else n++;",
            f"for (int j = 0; j < {rng.randint(2, 9)}; j += {rng.randint(1, 3)}) "
            f"{{ n = (n + j*{rng.randint(1, 5)}) & 127; if (n == 5) continue; "
            "part[j & 3] += 1.0f; }",
            f"{{ int j = {small}; while (j > 0) {{ j -= 2; n ^= j & 7; }} }}",
            f"{{ int j = 0; do {{ n = (n + 1) & 31; j++; }} while (j < {rng.randint(1, 4)}); }}",
            f"{{ const __global float* p = x + l; f = *p + p[{rng.randint(0, 8)}]; p += l & 3; "
            "f += *p++; f -= *p; float* q = part; q++; *q = f; }",
            f"tile[l] = {self.floating(1)}; barrier(CLK_LOCAL_MEM_FENCE); f = tile[15 - l]; "
            "barrier(CLK_LOCAL_MEM_FENCE);",
            "n = y[n++ & 15] + l;",
            "{ float4 w = vload4(l & 3, x); v += w; vstore4(w, 0, part); f = dot(w, v); }",
            f"f++; v.y--; v *= 2.0f; part[1]--; n <<= {rng.randint(0, 2)}; n &= 255; grid[1][1]++;",
            f"{{ int a, b; for (a = 0, b = {rng.randint(2, 5)}; a < b; a++, b--) "
            "n = (n ^ a) & 63; }",
            f"{{ uint w = (uint)n & 7u; w += {rng.randint(1, 9)}; "
            "n = as_int(w) ^ (int)max(w, u); }",
            "if (!(n > 2)) f += 1.0f; n += 2.5f; n &= 255; n = !n + l;",
            "{ int j = n & 3; f += part[++j & 3]; n = (j = l, j + 1); }",
            "{ float4 pair[2] = {v, v}; pair[l & 1].y = f; v = pair[0] + pair[1]; v *= 0.5f; }",
            "for (int j = 8; j >= 2; j -= 2) n = (n + j) & 63; "
            f"for (int j = 1; j < {rng.randint(5, 9)}; j += 2) part[j & 3] += 1.0f;",
        ]
        return "    " + rng.choice(choices)


def text(seed: int) -> str:
    found = Random(seed)
    body = "\n".join(found.statement() for _ in range(5))
    # keep floats small enough to be exact
    limits = "    f = clamp(f, -64.0f, 64.0f); v = clamp(v, -64.0f, 64.0f);\n"
    return HEAD + body + "\n" + limits + TAIL
