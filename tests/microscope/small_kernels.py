"""Random small kernels in the ways learners write them.

The grammar is a table. In a template {int} and {float} stand for an expression, {int1} for one that
is at most so deep, {2..9} for a number, and {x|y} for one of two words. Every number stays small,
so that floats are exact.
"""

from __future__ import annotations

import random
import re

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
LEAVES = {
    "int": "l; i; n; {-9..9}; (int)(u & 15u); grid[1][0]",
    "float": "f; v.x; v.w; part[l & 3]; {-4..4}.0f; x[(l + 3) & 15]; (float)l; pick(x, l)",
}
EXPRESSIONS = {
    "int": "({int} + {int}); ({int} - {int}); ({int} * {int}); ({int} & {int}); ({int} | {int}); "
    "({int} ^ {int}); ({int} < {int}); ({int} == {int}); ({int} && {int}); "
    "({int} > {int} ? {int} : {int}); ({int} % {2..9}); ({int} >> {0..4}); twice({int}); "
    "min({int}, {int}); (int)abs({int}); clamp({int}, -8, 8)",
    "float": "({float} + {float}); ({float} - {float}); ({float} * {-2..2}.0f); "
    "fmax({float}, {float}); ({int1} & 1 ? {float} : {float}); -({float}); fabs({float}); "
    "fmin({float}, {float})",
}
STATEMENTS = """\
f = {float};
n = ({int}) & 255;
u = (u << {0..3}) ^ (uint)({int1}); u &= 1023u;
v.{x|y|z|w} = {float1};
v.xy = v.zw; v = v.wzyx + (float4)(1.0f);
part[({int}) & 3] += {float1};
grid[l & 1][{0..2}] = ({int1}) & 63;
if ({int1} > 2) { f = {float1}; } else n++;
for (int j = 0; j < {2..9}; j += {1..3}) { n = (n + j*{1..5}) & 127; if (n == 5) continue; \
part[j & 3] += 1.0f; }
{ int j = ({int}) & 15; while (j > 0) { j -= 2; n ^= j & 7; } }
{ int j = 0; do { n = (n + 1) & 31; j++; } while (j < {1..4}); }
{ const __global float* p = x + l; f = *p + p[{0..8}]; p += l & 3; f += *p++; f -= *p; \
float* q = part; q++; *q = f; }
tile[l] = {float1}; barrier(CLK_LOCAL_MEM_FENCE); f = tile[15 - l]; barrier(CLK_LOCAL_MEM_FENCE);
n = y[n++ & 15] + l;
{ float4 w = vload4(l & 3, x); v += w; vstore4(w, 0, part); f = dot(w, v); }
f++; v.y--; v *= 2.0f; part[1]--; n <<= {0..2}; n &= 255; grid[1][1]++;
{ int a, b; for (a = 0, b = {2..5}; a < b; a++, b--) n = (n ^ a) & 63; }
{ uint w = (uint)n & 7u; w += {1..9}; n = as_int(w) ^ (int)max(w, u); }
if (!(n > 2)) f += 1.0f; n += 2.5f; n &= 255; n = !n + l;
{ int j = n & 3; f += part[++j & 3]; n = (j = l, j + 1); }
{ float4 pair[2] = {v, v}; pair[l & 1].y = f; v = pair[0] + pair[1]; v *= 0.5f; }
for (int j = 8; j >= 2; j -= 2) n = (n + j) & 63; \
for (int j = 1; j < {5..9}; j += 2) part[j & 3] += 1.0f;
""".splitlines()


def filled(template: str, rng: random.Random, depth: int = 3) -> str:
    """A template with something in place of what stands in { }."""

    def part(match: re.Match) -> str:
        kind, level, first, last, words = match.groups()
        if words:
            return rng.choice(words.split("|"))
        if first:
            return str(rng.randint(int(first), int(last)))
        below = int(level or depth - 1)
        choices = (EXPRESSIONS if below else LEAVES)[kind].split("; ")
        return filled(rng.choice(choices), rng, below)

    pattern = r"\{(?:(int|float)(\d?)|(-?\d+)\.\.(\d+)|(\w(?:\|\w)+))\}"
    return re.sub(pattern, part, template)


def text(seed: int) -> str:
    rng = random.Random(seed)
    body = "\n".join(f"    {filled(rng.choice(STATEMENTS), rng)}" for _ in range(5))
    # keep floats small enough to be exact
    limits = "    f = clamp(f, -64.0f, 64.0f); v = clamp(v, -64.0f, 64.0f);\n"
    return HEAD + body + "\n" + limits + TAIL
