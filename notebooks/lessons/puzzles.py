"""Ten puzzles of one to five lines, for the site and for the notebook of puzzles.

The notebook's text has the title, the task, the kernel with something missing, and a hint. Here is
what solves it, the arrays to run it on, and what it must compute.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clscope import Finding, Run, TextError

TEXT = Path(__file__).resolve().parents[1] / "text" / "puzzles.md"
WRITTEN = re.compile(
    r"## \d+\. (?P<title>.+?)\n\n(?P<task>.+?)\n\n```python\n%%puzzle \d+\n(?P<text>.*?)```\n\n"
    r"<details><summary>A hint</summary>\n\n(?P<hint>.+?)\n\n</details>",
    re.DOTALL,
)

#: Arrays of floats, by the names of arguments.
Arrays = dict[str, list[float]]


@dataclass(frozen=True)
class Puzzle:
    """How one puzzle is solved and checked.

    Attributes:
        gap, fill: what stands in its kernel's gap, and a solution.
        groups, arrays, values: work-groups, pointer arguments and other arguments of the launch.
        expected: what arrays must hold afterwards.
        needs: a pattern of the translation, and words for a text without it, which may be right.
    """

    gap: str
    fill: str
    groups: tuple[int, int, int]
    arrays: Arrays
    values: dict[str, int]
    expected: Arrays
    needs: tuple[str, str] | None = None


def written() -> list[dict[str, str]]:
    """The "title", "task", "text" and "hint" of each puzzle, and its "solution"."""
    matches = [match.groupdict() for match in WRITTEN.finditer(TEXT.read_text(encoding="utf-8"))]
    return [
        {**words, "solution": words["text"].replace(puzzle.gap, puzzle.fill)}
        for words, puzzle in zip(matches, PUZZLES, strict=True)
    ]


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
        "    // your line: double element i\n",
        "    y[i] = 2.0f * x[i];\n",
        (4, 1, 1),
        {"x": numbers(64), "y": [0.0] * 64},
        {},
        {"y": [2 * v for v in numbers(64)]},
    ),
    Puzzle(
        "    y[i] = x[i] + 1.0f;\n",
        "    if (i < n) {\n        y[i] = x[i] + 1.0f;\n    }\n",
        (4, 1, 1),
        {"x": numbers(50, 2), "y": [0.0] * 50},
        {"n": 50},
        {"y": [v + 1 for v in numbers(50, 2)]},
    ),
    Puzzle(
        "    const int at = 0;   // fix this line\n",
        "    const int at = n*M + m;\n",
        (2, 1, 1),
        {"A": numbers(128, 3), "C": [0.0] * 128},
        {"M": 16},
        {"C": [-v for v in numbers(128, 3)]},
    ),
    Puzzle(
        "    // your lines: add up row m of A times column n of B\n",
        "    for (int k = 0; k < K; k++) {\n        sum += A[k*M + m] * B[n*K + k];\n    }\n",
        (2, 2, 1),
        *product(16, 16, 12, 4),
    ),
    Puzzle(
        "        const int i = l*4 + step;   // fix this line\n",
        "        const int i = step*16 + l;\n",
        (1, 1, 1),
        {"x": numbers(64, 6), "y": [0.0] * 64, "who": [-1.0] * 64},
        {},
        {"y": numbers(64, 6), "who": [float(i % 16) for i in range(64)]},
    ),
    Puzzle(
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
        "        // your lines: fill At[tn][tm] and Bt[tn][tm]\n",
        "        At[tn][tm] = A[(k0 + tn)*M + m];\n        Bt[tn][tm] = B[n*K + k0 + tm];\n",
        (2, 2, 1),
        *product(16, 16, 16, 9),
    ),
    Puzzle(
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
    return run(number, text)[0]


def run(number: int, text: str) -> tuple[str, Run | None]:
    """What `check` says of a text, and the run, if it is a kernel that can be launched."""
    import numpy as np

    import clscope
    from clscope import wgsl

    puzzle = PUZZLES[number - 1]
    arrays = {name: np.array(v, np.float32) for name, v in puzzle.arrays.items()}
    given = {**arrays, **puzzle.values}
    try:
        program = wgsl.translate(text)
        names = [b.name for b in program.buffers] + [name for name, _ in program.scalars]
        if set(names) != set(given):
            return f"the kernel's arguments must stay {', '.join(given)}", None
        found = {name: re.search(rf"\b{name}\b\s*[,)]", text) for name in given}
        order = sorted(given, key=lambda name: found[name].start())  # type: ignore[union-attr]
        sizes = tuple(g * i for g, i in zip(puzzle.groups, program.size, strict=True))
        seen = clscope.run(text, None, sizes, program.size, [given[name] for name in order])
    except clscope.TextError as error:
        return _with_line(error), None
    return _judge(puzzle, seen, program.code), seen


def _judge(puzzle: Puzzle, seen: Run, code: str) -> str:
    """What is wrong with a run, or "solved"; `code` is the translation."""
    if seen.findings:
        return "; ".join(map(_with_line, seen.findings[:2]))
    for name, want in puzzle.expected.items():
        for i, (x, y) in enumerate(zip(seen.arrays[name], want, strict=True)):
            if x != y:  # NaN, too
                return f"{name}[{i}] is {x:g}; it should be {y:g}"
    if puzzle.needs and not re.search(puzzle.needs[0], code):
        return puzzle.needs[1]
    return "solved"


def _with_line(mistake: TextError | Finding) -> str:
    """A mistake, which begins with its line."""
    return re.sub(r"^(\d+):\d+ ", r"line \1: ", str(mistake))
