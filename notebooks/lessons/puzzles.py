"""Ten puzzles of one to five lines, for the site and for the notebook of puzzles.

Each has a kernel with something missing, arrays to run it on, and what it must compute. `needs` are
patterns that the translation must contain, with the words for a text that does not: what a result
alone cannot show.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

ITEMS = "__kernel __attribute__((reqd_work_group_size({}, 1, 1)))\n"
SQUARE = "__kernel __attribute__((reqd_work_group_size({0}, {0}, 1)))\n"


@dataclass(frozen=True)
class Puzzle:
    """One puzzle.

    Attributes:
        task: what to write, in a sentence or two; hint: for those who are stuck.
        text: the kernel with a gap; gap: what stands there; fill: a solution.
        arrays: the pointer arguments, as lists of floats; values: the other arguments.
        groups: work-groups to launch; items: work-items of each.
        expected: what arrays must hold afterwards.
    """

    title: str
    task: str
    hint: str
    text: str
    gap: str
    fill: str
    arrays: dict[str, list[float]]
    values: dict[str, int]
    groups: tuple[int, int, int]
    items: tuple[int, int, int]
    expected: dict[str, list[float]]
    needs: list[tuple[str, str]] = field(default_factory=list)

    @property
    def solution(self) -> str:
        return self.text.replace(self.gap, self.fill)


def numbers(count: int, seed: int = 1) -> list[float]:
    """Small whole numbers without a pattern."""
    return [float((i * 37 * seed + i * i + seed) % 17 - 8) for i in range(count)]


def product(a: list[float], b: list[float], m: int, n: int, k: int) -> list[float]:
    """C = A B, all column-major."""
    return [sum(a[p * m + i] * b[j * k + p] for p in range(k)) for j in range(n) for i in range(m)]


def _map() -> Puzzle:
    x = numbers(64)
    gap = "    // your line: double element i\n"
    return Puzzle(
        "One work-item, one element",
        "64 work-items run this kernel, and each has its number i. Let each of them store twice "
        "its element of x in y.",
        "An array is indexed as in C: y[i] = ...",
        ITEMS.format(16) + "void twice(const __global float* x, __global float* y)\n{\n"
        "    const int i = get_global_id(0);   // 0, 1, 2 ... 63\n" + gap + "}\n",
        gap,
        "    y[i] = 2.0f * x[i];\n",
        {"x": x, "y": [0.0] * 64},
        {},
        (4, 1, 1),
        (16, 1, 1),
        {"y": [2 * v for v in x]},
    )


def _guard() -> Puzzle:
    x = numbers(50, 2)
    gap = "    y[i] = x[i] + 1.0f;\n"
    return Puzzle(
        "More work-items than elements",
        "Work-groups have 16 work-items, so 64 of them run for only 50 elements. Keep those with "
        "nothing to do from reading and writing behind the end.",
        "n is the number of elements: compare i with it.",
        ITEMS.format(16)
        + "void plus_one(const int n, const __global float* x, __global float* y)\n"
        "{\n    const int i = get_global_id(0);   // 0 ... 63, but n is 50\n" + gap + "}\n",
        gap,
        "    if (i < n) {\n        y[i] = x[i] + 1.0f;\n    }\n",
        {"x": x, "y": [0.0] * 50},
        {"n": 50},
        (4, 1, 1),
        (16, 1, 1),
        {"y": [v + 1 for v in x]},
    )


def _column_major() -> Puzzle:
    rows, cols = 16, 8
    a = numbers(rows * cols, 3)
    gap = "    const int at = 0;   // fix this line\n"
    return Puzzle(
        "A matrix in memory",
        "A and C have M rows and are stored column by column: all of column 0, then all of "
        "column 1. Say where element (m, n) is.",
        "n whole columns of M elements come before it, and m elements of its own column.",
        SQUARE.format(8)
        + "void negate(const int M, const __global float* A, __global float* C)\n{\n"
        "    const int m = get_global_id(0);   // row\n"
        "    const int n = get_global_id(1);   // column\n" + gap + "    C[at] = -A[at];\n}\n",
        gap,
        "    const int at = n*M + m;\n",
        {"A": a, "C": [0.0] * (rows * cols)},
        {"M": rows},
        (2, 1, 1),
        (8, 8, 1),
        {"C": [-v for v in a]},
    )


def _dot() -> Puzzle:
    m, n, k = 16, 16, 12
    a, b = numbers(m * k, 4), numbers(k * n, 5)
    gap = "    // your lines: add up row m of A times column n of B\n"
    return Puzzle(
        "One element of a product",
        "Element (m, n) of C = A B is row m of A times column n of B. A is M x K, B is K x N, all "
        "column-major. Write the loop.",
        "for (int k = 0; k < K; k++), and element (m, k) of A is A[k*M + m].",
        SQUARE.format(8) + "void gemm(const int M, const int N, const int K,\n"
        "          const __global float* A, const __global float* B, __global float* C)\n{\n"
        "    const int m = get_global_id(0), n = get_global_id(1);\n    float sum = 0.0f;\n"
        + gap
        + "    C[n*M + m] = sum;\n}\n",
        gap,
        "    for (int k = 0; k < K; k++) {\n        sum += A[k*M + m] * B[n*K + k];\n    }\n",
        {"A": a, "B": b, "C": [0.0] * (m * n)},
        {"M": m, "N": n, "K": k},
        (2, 2, 1),
        (8, 8, 1),
        {"C": product(a, b, m, n, k)},
    )


def _coalesce() -> Puzzle:
    x = numbers(64, 6)
    gap = "        const int i = l*4 + step;   // fix this line\n"
    return Puzzle(
        "Neighbours read neighbours",
        "One work-group of 16 copies 64 elements in 4 steps, and signs each with its number. Here "
        "a work-item takes 4 in a row, so neighbours are 4 apart: four times the memory traffic. "
        "In every step, let work-items 0, 1, 2 ... touch elements that are neighbours.",
        "In step 0 they copy elements 0 to 15, in step 1 elements 16 to 31.",
        ITEMS.format(16) + "void copy(const __global float* x, __global float* y,\n"
        "          __global float* who)\n{\n    const int l = get_local_id(0);\n"
        "    for (int step = 0; step < 4; step++) {\n"
        + gap
        + "        y[i] = x[i];\n        who[i] = l;\n    }\n}\n",
        gap,
        "        const int i = step*16 + l;\n",
        {"x": x, "y": [0.0] * 64, "who": [-1.0] * 64},
        {},
        (1, 1, 1),
        (16, 1, 1),
        {"y": x, "who": [float(i % 16) for i in range(64)]},
    )


def _barrier() -> Puzzle:
    x = numbers(64, 7)
    gap = "    // your line: wait for the others\n"
    return Puzzle(
        "Wait for the others",
        "Each work-group of 32 reverses its 32 elements through local memory, which its work-items "
        "share. Nobody may read before everybody has written.",
        "barrier(CLK_LOCAL_MEM_FENCE) lets no work-item pass before all of its group have come.",
        ITEMS.format(32) + "void reverse(const __global float* x, __global float* y)\n{\n"
        "    __local float tile[32];\n    const int l = get_local_id(0);\n"
        "    const int first = get_group_id(0)*32;\n    tile[l] = x[first + l];\n"
        + gap
        + "    y[first + l] = tile[31 - l];\n}\n",
        gap,
        "    barrier(CLK_LOCAL_MEM_FENCE);\n",
        {"x": x, "y": [0.0] * 64},
        {},
        (2, 1, 1),
        (32, 1, 1),
        {"y": x[31::-1] + x[:31:-1]},
        [
            (
                r"tile\[.*?\] = [\s\S]*workgroupBarrier\(\);[\s\S]*tile\[31",
                "there is no barrier between the stores to tile and the loads: on another GPU, or "
                "tomorrow, a work-item reads what has not been written",
            )
        ],
    )


def _pad() -> Puzzle:
    a = numbers(256, 8)
    gap = "    __local float tile[16][16];   // fix this line\n"
    return Puzzle(
        "A pad against bank conflicts",
        "This transposes a 16 x 16 tile, correctly. But where a column of the tile is read, its "
        "elements are 16 apart: they come from the same few banks of local memory, one after the "
        "other. Change one number, and they are in different banks.",
        "Make each row one element longer than needed; nobody uses the last one.",
        SQUARE.format(16)
        + "void transpose(const __global float* in, __global float* out)\n{\n"
        + gap
        + "    const int x = get_local_id(0), y = get_local_id(1);\n"
        "    tile[y][x] = in[y*16 + x];\n    barrier(CLK_LOCAL_MEM_FENCE);\n"
        "    out[y*16 + x] = tile[x][y];\n}\n",
        gap,
        "    __local float tile[16][17];\n",
        {"in": a, "out": [0.0] * 256},
        {},
        (1, 1, 1),
        (16, 16, 1),
        {"out": [a[x * 16 + y] for y in range(16) for x in range(16)]},
        [
            (
                r"array<array<f32, \d*[13579]>, 1\d>",
                "right, but still with conflicts: rows of tile have an even number of elements",
            )
        ],
    )


_TILED = (
    "void gemm(const int M, const int N, const int K,\n"
    "          const __global float* A, const __global float* B, __global float* C)\n{\n"
)


def _tile() -> Puzzle:
    m = n = k = 16
    a, b = numbers(m * k, 9), numbers(k * n, 10)
    gap = "        // your lines: fill At[tn][tm] and Bt[tn][tm]\n"
    return Puzzle(
        "Load a tile",
        "A work-group of 8 x 8 computes an 8 x 8 tile of C, 8 steps of k at a time. Let each "
        "work-item load one element of A and one of B: column k0 + tn of A, row m; and column n "
        "of B, row k0 + tm.",
        "Element (m, k0 + tn) of A is A[(k0 + tn)*M + m]; element (k0 + tm, n) of B is "
        "B[n*K + k0 + tm].",
        SQUARE.format(8) + _TILED + "    __local float At[8][8], Bt[8][8];   // [k][m] and [n][k]\n"
        "    const int tm = get_local_id(0), tn = get_local_id(1);\n"
        "    const int m = get_global_id(0), n = get_global_id(1);\n    float sum = 0.0f;\n"
        "    for (int k0 = 0; k0 < K; k0 += 8) {\n"
        + gap
        + "        barrier(CLK_LOCAL_MEM_FENCE);\n"
        "        for (int k = 0; k < 8; k++) {\n"
        "            sum += At[k][tm] * Bt[tn][k];\n        }\n"
        "        barrier(CLK_LOCAL_MEM_FENCE);\n    }\n    C[n*M + m] = sum;\n}\n",
        gap,
        "        At[tn][tm] = A[(k0 + tn)*M + m];\n        Bt[tn][tm] = B[n*K + k0 + tm];\n",
        {"A": a, "B": b, "C": [0.0] * (m * n)},
        {"M": m, "N": n, "K": k},
        (2, 2, 1),
        (8, 8, 1),
        {"C": product(a, b, m, n, k)},
    )


def _second_barrier() -> Puzzle:
    x = numbers(128, 11)
    gap = "        // your line: nobody may overwrite what others still read\n"
    sums = [sum(x[step * 32 + (i + 1) % 32] for step in range(4)) for i in range(32)]
    return Puzzle(
        "The second barrier",
        "In each of four rounds a work-item reads what its neighbour has stored. One barrier keeps "
        "it from reading too early. What keeps a fast work-item from storing the next round's "
        "element while a slow one still reads?",
        "The same line as before, in another place.",
        ITEMS.format(32) + "void neighbours(const __global float* x, __global float* y)\n{\n"
        "    __local float tile[32];\n    const int l = get_local_id(0);\n    float sum = 0.0f;\n"
        "    for (int step = 0; step < 4; step++) {\n        tile[l] = x[step*32 + l];\n"
        "        barrier(CLK_LOCAL_MEM_FENCE);\n        sum += tile[(l + 1) % 32];\n"
        + gap
        + "    }\n    y[l] = sum;\n}\n",
        gap,
        "        barrier(CLK_LOCAL_MEM_FENCE);\n",
        {"x": x, "y": [0.0] * 32},
        {},
        (1, 1, 1),
        (32, 1, 1),
        {"y": sums},
        [
            (
                r"workgroupBarrier\(\);[\s\S]*sum \+= [\s\S]*workgroupBarrier\(\);",
                "there is no barrier between reading tile and storing the next round: the result "
                "depends on who is faster",
            )
        ],
    )


def _block() -> Puzzle:
    m, n, k = 16, 16, 8
    a, b = numbers(m * k, 12), numbers(k * n, 13)
    gap = "        // your lines: one element of A, used for all 4 columns\n"
    return Puzzle(
        "Four columns per work-item",
        "Memory is slow, registers are fast. This work-item computes 4 elements of row m, in "
        "columns n0 to n0 + 3. In each step of k, load one element of A, once, and use it 4 times.",
        "const float a = A[k*M + m]; then a loop over j: acc[j] += a * B[(n0 + j)*K + k];",
        "__kernel __attribute__((reqd_work_group_size(8, 2, 1)))\n"
        + _TILED
        + "    const int m = get_global_id(0), n0 = get_global_id(1)*4;\n"
        "    float acc[4] = {0.0f, 0.0f, 0.0f, 0.0f};\n    for (int k = 0; k < K; k++) {\n"
        + gap
        + "    }\n    for (int j = 0; j < 4; j++) {\n"
        "        C[(n0 + j)*M + m] = acc[j];\n    }\n}\n",
        gap,
        "        const float a = A[k*M + m];\n        for (int j = 0; j < 4; j++) {\n"
        "            acc[j] += a * B[(n0 + j)*K + k];\n        }\n",
        {"A": a, "B": b, "C": [0.0] * (m * n)},
        {"M": m, "N": n, "K": k},
        (2, 2, 1),
        (8, 2, 1),
        {"C": product(a, b, m, n, k)},
        [
            (
                r"let \w+: f32 = A\[",
                "right, but A is loaded for every column; keep its element in a variable",
            )
        ],
    )


PUZZLES = [
    make()
    for make in (
        _map, _guard, _column_major, _dot, _coalesce, _barrier, _second_barrier, _pad, _tile,
        _block,
    )
]  # fmt: skip


def check(number: int, text: str) -> str:
    """What a text does, run in the simulator: "solved", or what is wrong, in words."""
    import numpy as np

    from gemmlab import simt, web

    puzzle, text = PUZZLES[number - 1], text.removeprefix("\n")
    arrays = {name: np.array(v, np.float32) for name, v in puzzle.arrays.items()}
    sizes = tuple(g * i for g, i in zip(puzzle.groups, puzzle.items, strict=True))
    given = {**arrays, **puzzle.values}
    try:
        program = web.translate(text)
        names = [b.name for b in program.buffers] + [name for name, _ in program.scalars]
        if set(names) != set(given):
            return f"the kernel's arguments must stay {', '.join(given)}"
        order = sorted(given, key=lambda name: re.search(rf"\b{name}\b\s*[,)]", text).start())  # type: ignore[union-attr]
        run = simt.run(text, None, sizes, puzzle.items, [given[name] for name in order])
    except simt.TextError as error:
        return str(error)
    if run.findings:
        return "; ".join(str(finding) for finding in run.findings[:2])
    for name, want in puzzle.expected.items():
        got = run.arrays[name]
        for i, (x, y) in enumerate(zip(got, want, strict=True)):
            if x != y:  # NaN, too
                return f"{name}[{i}] is {x:g}; it should be {y:g}"
    for pattern, words in puzzle.needs:
        if not re.search(pattern, program.code):
            return words
    return "solved"
