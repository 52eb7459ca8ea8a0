"""Ten puzzles of one to five lines, for the site and for the notebook of puzzles.

Each has a kernel with something missing, arrays to run it on, and what it must compute.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Arrays of floats, by the names of arguments.
Arrays = dict[str, list[float]]


@dataclass(frozen=True)
class Puzzle:
    """One puzzle.

    Attributes:
        task: what to write, in a sentence or two; hint: for those who are stuck.
        kernel: with a line "@" for the gap; gap: what is written there; fill: a solution.
        groups: work-groups to launch.
        arrays: the pointer arguments; values: the other arguments.
        expected: what arrays must hold afterwards.
        needs: a pattern that the translation must contain, and the words for a text that does not:
            what a result alone cannot show.
    """

    title: str
    task: str
    hint: str
    kernel: str
    gap: str
    fill: str
    groups: tuple[int, int, int]
    arrays: Arrays
    values: dict[str, int]
    expected: Arrays
    needs: tuple[str, str] | None = None

    @property
    def text(self) -> str:
        """The kernel as the reader gets it."""
        return self.kernel.replace("@\n", self.gap)

    @property
    def solution(self) -> str:
        return self.kernel.replace("@\n", self.fill)


def numbers(count: int, seed: int = 1) -> list[float]:
    """Small whole numbers without a pattern."""
    return [float((i * 37 * seed + i * i + seed) % 17 - 8) for i in range(count)]


def product(m: int, n: int, k: int, seed: int) -> tuple[Arrays, dict[str, int], Arrays]:
    """Arrays, values and what to expect of C = A B, all column-major."""
    a, b = numbers(m * k, seed), numbers(k * n, seed + 1)
    c = [sum(a[p * m + i] * b[j * k + p] for p in range(k)) for j in range(n) for i in range(m)]
    return {"A": a, "B": b, "C": [0.0] * (m * n)}, {"M": m, "N": n, "K": k}, {"C": c}


PUZZLES = [
    Puzzle(
        "One work-item, one element",
        "64 work-items run this kernel, and each has its number i. Let each of them store twice "
        "its element of x in y.",
        "An array is indexed as in C: y[i] = ...",
        """\
__kernel __attribute__((reqd_work_group_size(16, 1, 1)))
void twice(const __global float* x, __global float* y)
{
    const int i = get_global_id(0);   // 0, 1, 2 ... 63
@
}
""",
        "    // your line: double element i\n",
        "    y[i] = 2.0f * x[i];\n",
        (4, 1, 1),
        {"x": numbers(64), "y": [0.0] * 64},
        {},
        {"y": [2 * v for v in numbers(64)]},
    ),
    Puzzle(
        "More work-items than elements",
        "Work-groups have 16 work-items, so 64 of them run for only 50 elements. Keep those with "
        "nothing to do from reading and writing behind the end.",
        "n is the number of elements: compare i with it.",
        """\
__kernel __attribute__((reqd_work_group_size(16, 1, 1)))
void plus_one(const int n, const __global float* x, __global float* y)
{
    const int i = get_global_id(0);   // 0 ... 63, but n is 50
@
}
""",
        "    y[i] = x[i] + 1.0f;\n",
        "    if (i < n) {\n        y[i] = x[i] + 1.0f;\n    }\n",
        (4, 1, 1),
        {"x": numbers(50, 2), "y": [0.0] * 50},
        {"n": 50},
        {"y": [v + 1 for v in numbers(50, 2)]},
    ),
    Puzzle(
        "A matrix in memory",
        "A and C have M rows and are stored column by column: all of column 0, then all of column "
        "1. Say where element (m, n) is.",
        "n whole columns of M elements come before it, and m elements of its own column.",
        """\
__kernel __attribute__((reqd_work_group_size(8, 8, 1)))
void negate(const int M, const __global float* A, __global float* C)
{
    const int m = get_global_id(0);   // row
    const int n = get_global_id(1);   // column
@
    C[at] = -A[at];
}
""",
        "    const int at = 0;   // fix this line\n",
        "    const int at = n*M + m;\n",
        (2, 1, 1),
        {"A": numbers(128, 3), "C": [0.0] * 128},
        {"M": 16},
        {"C": [-v for v in numbers(128, 3)]},
    ),
    Puzzle(
        "One element of a product",
        "Element (m, n) of C = A B is row m of A times column n of B. A is M x K, B is K x N, all "
        "column-major. Write the loop.",
        "for (int k = 0; k < K; k++), and element (m, k) of A is A[k*M + m].",
        """\
__kernel __attribute__((reqd_work_group_size(8, 8, 1)))
void gemm(const int M, const int N, const int K,
          const __global float* A, const __global float* B, __global float* C)
{
    const int m = get_global_id(0), n = get_global_id(1);
    float sum = 0.0f;
@
    C[n*M + m] = sum;
}
""",
        "    // your lines: add up row m of A times column n of B\n",
        "    for (int k = 0; k < K; k++) {\n        sum += A[k*M + m] * B[n*K + k];\n    }\n",
        (2, 2, 1),
        *product(16, 16, 12, 4),
    ),
    Puzzle(
        "Neighbours read neighbours",
        "One work-group of 16 copies 64 elements in 4 steps, and signs each with its number. Here "
        "a work-item takes 4 in a row, so neighbours are 4 apart: four times the memory traffic. "
        "In every step, let work-items 0, 1, 2 ... touch elements that are neighbours.",
        "In step 0 they copy elements 0 to 15, in step 1 elements 16 to 31.",
        """\
__kernel __attribute__((reqd_work_group_size(16, 1, 1)))
void copy(const __global float* x, __global float* y,
          __global float* who)
{
    const int l = get_local_id(0);
    for (int step = 0; step < 4; step++) {
@
        y[i] = x[i];
        who[i] = l;
    }
}
""",
        "        const int i = l*4 + step;   // fix this line\n",
        "        const int i = step*16 + l;\n",
        (1, 1, 1),
        {"x": numbers(64, 6), "y": [0.0] * 64, "who": [-1.0] * 64},
        {},
        {"y": numbers(64, 6), "who": [float(i % 16) for i in range(64)]},
    ),
    Puzzle(
        "Wait for the others",
        "Each work-group of 32 reverses its 32 elements through local memory, which its "
        "work-items share. Nobody may read before everybody has written.",
        "barrier(CLK_LOCAL_MEM_FENCE) lets no work-item pass before all of its group have come.",
        """\
__kernel __attribute__((reqd_work_group_size(32, 1, 1)))
void reverse(const __global float* x, __global float* y)
{
    __local float tile[32];
    const int l = get_local_id(0);
    const int first = get_group_id(0)*32;
    tile[l] = x[first + l];
@
    y[first + l] = tile[31 - l];
}
""",
        "    // your line: wait for the others\n",
        "    barrier(CLK_LOCAL_MEM_FENCE);\n",
        (2, 1, 1),
        {"x": numbers(64, 7), "y": [0.0] * 64},
        {},
        {"y": numbers(64, 7)[31::-1] + numbers(64, 7)[:31:-1]},
        needs=(
            r"tile\[.*?\] = [\s\S]*workgroupBarrier\(\);[\s\S]*tile\[31",
            "there is no barrier between the stores to tile and the loads: on another GPU, or "
            "tomorrow, a work-item reads what has not been written",
        ),
    ),
    Puzzle(
        "The second barrier",
        "In each of four rounds a work-item reads what its neighbour has stored. One barrier "
        "keeps it from reading too early. What keeps a fast work-item from storing the next "
        "round's element while a slow one still reads?",
        "The same line as before, in another place.",
        """\
__kernel __attribute__((reqd_work_group_size(32, 1, 1)))
void neighbours(const __global float* x, __global float* y)
{
    __local float tile[32];
    const int l = get_local_id(0);
    float sum = 0.0f;
    for (int step = 0; step < 4; step++) {
        tile[l] = x[step*32 + l];
        barrier(CLK_LOCAL_MEM_FENCE);
        sum += tile[(l + 1) % 32];
@
    }
    y[l] = sum;
}
""",
        "        // your line: nobody may overwrite what others still read\n",
        "        barrier(CLK_LOCAL_MEM_FENCE);\n",
        (1, 1, 1),
        {"x": numbers(128, 11), "y": [0.0] * 32},
        {},
        {"y": [sum(numbers(128, 11)[32 * s + (i + 1) % 32] for s in range(4)) for i in range(32)]},
        needs=(
            r"workgroupBarrier\(\);[\s\S]*sum \+= [\s\S]*workgroupBarrier\(\);",
            "there is no barrier between reading tile and storing the next round: the result "
            "depends on who is faster",
        ),
    ),
    Puzzle(
        "A pad against bank conflicts",
        "This transposes a 16 x 16 tile, correctly. But where a column of the tile is read, its "
        "elements are 16 apart: they come from the same few banks of local memory, one after the "
        "other. Change one number, and they are in different banks.",
        "Make each row one element longer than needed; nobody uses the last one.",
        """\
__kernel __attribute__((reqd_work_group_size(16, 16, 1)))
void transpose(const __global float* in, __global float* out)
{
@
    const int x = get_local_id(0), y = get_local_id(1);
    tile[y][x] = in[y*16 + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    out[y*16 + x] = tile[x][y];
}
""",
        "    __local float tile[16][16];   // fix this line\n",
        "    __local float tile[16][17];\n",
        (1, 1, 1),
        {"in": numbers(256, 8), "out": [0.0] * 256},
        {},
        {"out": [numbers(256, 8)[x * 16 + y] for y in range(16) for x in range(16)]},
        needs=(
            r"array<array<f32, \d*[13579]>, 1\d>",
            "right, but still with conflicts: rows of tile have an even number of elements",
        ),
    ),
    Puzzle(
        "Load a tile",
        "A work-group of 8 x 8 computes an 8 x 8 tile of C, 8 steps of k at a time. Let each "
        "work-item load one element of A and one of B: column k0 + tn of A, row m; and column n "
        "of B, row k0 + tm.",
        "Element (m, k0 + tn) of A is A[(k0 + tn)*M + m]; element (k0 + tm, n) of B is B[n*K + k0 "
        "+ tm].",
        """\
__kernel __attribute__((reqd_work_group_size(8, 8, 1)))
void gemm(const int M, const int N, const int K,
          const __global float* A, const __global float* B, __global float* C)
{
    __local float At[8][8], Bt[8][8];   // [k][m] and [n][k]
    const int tm = get_local_id(0), tn = get_local_id(1);
    const int m = get_global_id(0), n = get_global_id(1);
    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += 8) {
@
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < 8; k++) {
            sum += At[k][tm] * Bt[tn][k];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    C[n*M + m] = sum;
}
""",
        "        // your lines: fill At[tn][tm] and Bt[tn][tm]\n",
        "        At[tn][tm] = A[(k0 + tn)*M + m];\n        Bt[tn][tm] = B[n*K + k0 + tm];\n",
        (2, 2, 1),
        *product(16, 16, 16, 9),
    ),
    Puzzle(
        "Four columns per work-item",
        "Memory is slow, registers are fast. This work-item computes 4 elements of row m, in "
        "columns n0 to n0 + 3. In each step of k, load one element of A, once, and use it 4 "
        "times.",
        "const float a = A[k*M + m]; then a loop over j: acc[j] += a * B[(n0 + j)*K + k];",
        """\
__kernel __attribute__((reqd_work_group_size(8, 2, 1)))
void gemm(const int M, const int N, const int K,
          const __global float* A, const __global float* B, __global float* C)
{
    const int m = get_global_id(0), n0 = get_global_id(1)*4;
    float acc[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int k = 0; k < K; k++) {
@
    }
    for (int j = 0; j < 4; j++) {
        C[(n0 + j)*M + m] = acc[j];
    }
}
""",
        "        // your lines: one element of A, used for all 4 columns\n",
        "        const float a = A[k*M + m];\n"
        "        for (int j = 0; j < 4; j++) {\n"
        "            acc[j] += a * B[(n0 + j)*K + k];\n"
        "        }\n",
        (2, 2, 1),
        *product(16, 16, 8, 12),
        needs=(
            r"let \w+: f32 = A\[",
            "right, but A is loaded for every column; keep its element in a variable",
        ),
    ),
]


def check(number: int, text: str) -> str:
    """What a text does, run in the simulator: "solved", or what is wrong, in words."""
    import numpy as np

    from gemmlab import simt, web

    puzzle, text = PUZZLES[number - 1], text.removeprefix("\n")
    arrays = {name: np.array(v, np.float32) for name, v in puzzle.arrays.items()}
    given = {**arrays, **puzzle.values}
    try:
        program = web.translate(text)
        names = [b.name for b in program.buffers] + [name for name, _ in program.scalars]
        if set(names) != set(given):
            return f"the kernel's arguments must stay {', '.join(given)}"
        order = sorted(given, key=lambda name: re.search(rf"\b{name}\b\s*[,)]", text).start())  # type: ignore[union-attr]
        sizes = tuple(g * i for g, i in zip(puzzle.groups, program.size, strict=True))
        run = simt.run(text, None, sizes, program.size, [given[name] for name in order])
    except simt.TextError as error:
        return str(error)
    if run.findings:
        return "; ".join(str(finding) for finding in run.findings[:2])
    for name, want in puzzle.expected.items():
        got = run.arrays[name]
        for i, (x, y) in enumerate(zip(got, want, strict=True)):
            if x != y:  # NaN, too
                return f"{name}[{i}] is {x:g}; it should be {y:g}"
    if puzzle.needs and not re.search(puzzle.needs[0], program.code):
        return puzzle.needs[1]
    return "solved"
