"""A look at a kernel keeps its limits of time and memory, whatever the kernel does."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import FULL
from texts import SMALL

from gemmlab import catalog
from gemmlab.ladder import sources
from gemmlab.sandbox import look

CHILD = Path(__file__).with_name("budget_child.py")
#: Times a look's limit: what it takes to stop, on a busy machine.
MARGIN = 3
SECONDS = look.SECONDS + look.SECONDS_SMALLER
#: Bytes by which the looks of a process may make it grow.
MOST = 10**9
MUTANTS, PER_PROCESS = (200 if FULL else 50), 25
KERNELS = range(1, 14)

TILES = ("small", "medium", "default")
BLOCKS = {"TSM": 64, "TSN": 64, "TSK": 16, "WPTM": 4, "WPTN": 4, "UNROLL": 1}
#: Tiles with which an endless loop reaches its limit just in time, and leaves a long log.
MEDIUM = {
    1: {"TS": 16},
    2: {"TS": 16},
    3: {"TS": 32, "WPT": 4},
    4: {"TS": 16, "WIDTH": 4},
    5: {"TS": 32, "TSK": 16, "WPT": 4, "PAD": 1},
    6: BLOCKS | {"PAD": 1},
    7: BLOCKS | {"WIDTH": 4},
    8: BLOCKS | {"WIDTH": 2},
    9: BLOCKS | {"WIDTH": 4},
    10: BLOCKS | {"WIDTH": 2},
    12: {"TS": 32, "WPT": 4},
    13: BLOCKS,
}

SKIPPED = r"(?P<skipped>//[^\n]*|/\*.*?\*/|#[^\n]*)"
#: Classes of tokens whose exchange mostly leaves a kernel that can be run.
CLASSES = {
    "number": r"\b\d[\w.]*",
    "index": r"(?<!int )\b(?:[ijkMNK]|[mnke][01]|t[mn]|tid|now|next|TSK|R?TS[MN]?|WPT[MN]?)\b",
    "comparison": r"[<>!=]=|[<>]",
    "assignment": r"[-+*/%]=|=(?!=)|\+\+|--",
    "operator": r"[-+*/%&|]",
    "any": r"\w+|[][(){};,.?:]",
}
TOKEN = re.compile(
    "|".join([SKIPPED, *(f"(?P<{name}>{part})" for name, part in CLASSES.items())]), re.DOTALL
)
WEIGHTS = (6, 6, 4, 4, 4, 1)
NUMBERS = ("0", "1", "3", "100000", "2147483647")


def mutant(source: str, rng: random.Random) -> str:
    """The source with one token of its kernel replaced, swapped with another, or deleted."""
    head, mark, body = source.partition("\n__kernel")
    tokens: dict[str, list[re.Match]] = {name: [] for name in (*CLASSES, "skipped")}
    for token in TOKEN.finditer(body, body.index("// ident")):
        tokens[token.lastgroup or ""].append(token)
    (group,) = rng.choices(list(CLASSES), WEIGHTS)
    one, other = rng.choice(tokens[group]), rng.choice(tokens[group])
    ways = ("number",) if group == "number" else ("replace", "replace", "swap", "delete")
    match rng.choice(ways):
        case "number":
            body = put(body, one, rng.choice(NUMBERS))
        case "swap" if one is not other:
            first, second = sorted((one, other), key=lambda token: token.start())
            body = put(put(body, second, first[0]), first, second[0])
        case "delete":
            body = put(body, one, "")
        case _:
            body = put(body, one, other[0])
    return head + mark + body


def put(body: str, token: re.Match, text: str) -> str:
    return body[: token.start()] + text + body[token.end() :]


def case(kernel: int, source: str, tiles: str) -> tuple:
    """What the child looks at: small tiles in a small product, or larger ones in a larger one."""
    params = {"small": SMALL, "medium": MEDIUM, "default": {}}[tiles].get(kernel)
    return kernel, [64 if tiles == "small" else 1024] * 3, params, source


def mutants() -> list[tuple]:
    rng = random.Random(49)
    found: list[tuple] = []
    while len(found) < MUTANTS:
        kernel = KERNELS[len(found) % len(KERNELS)]
        original = sources.read(catalog[kernel].file)
        source = mutant(original, rng)
        if source != original:
            found.append(case(kernel, source, TILES[len(found) // len(KERNELS) % len(TILES)]))
    return found


def costs(cases: list[tuple]) -> list[dict]:
    """What each look costs, in fresh processes where one had to be ended."""
    found: list[dict] = []
    while len(found) < len(cases):
        left = cases[len(found) :]
        child = subprocess.run(
            [sys.executable, str(CHILD)],
            input=json.dumps([left, 3 * MARGIN * SECONDS, 3 * MOST]),
            capture_output=True,
            text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
        lines = child.stdout.splitlines()
        assert lines, child.stderr
        found += map(json.loads, lines)
        assert len(lines) == len(left) or found[-1]["text"] == "ended", child.stderr
    return found


def excess(cases: list[tuple]) -> list[str]:
    """The looks that took too long, too much memory, or ended in an exception."""
    found, grown = [], 0
    for (kernel, sizes, _, source), cost in zip(cases, costs(cases), strict=True):
        too_much = cost["bytes"] > MOST and cost["bytes"] > grown
        grown = 0 if cost["text"] == "ended" else max(grown, cost["bytes"])
        if cost["seconds"] > MARGIN * SECONDS or too_much or "failed with" in cost["text"]:
            original = sources.read(catalog[kernel].file).split("\n")
            changed = [line for line in source.split("\n") if line not in original]
            found.append(
                f"kernel {kernel}, M = {sizes[0]}: {cost['seconds']:.1f} s, "
                f"{cost['bytes'] / 1e6:.0f} MB, {cost['text']!r}: {changed}"
            )
    return found


def changed(kernel: int, old: str, new: str) -> str:
    source = sources.read(catalog[kernel].file)
    assert old in source
    return source.replace(old, new, 1)


GOTO = """
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    int i = get_global_id(0), j = get_global_id(1), k = 0;
    float s = 0;
next:
    s += A[k*M + i]*B[j*K + k];
    if (k < K) goto next;
    C[j*M + i] = s;
}
"""
#: Loops that do not end, most of them with many accesses per iteration.
ENDLESS = {
    "kernel 6, filling a tile": (6, changed(6, "e0 += ITEMS", "e0 += 0")),
    "kernel 6, along k": (6, changed(6, "k0 += TSK", "k0 += 0")),
    "kernel 10, along k": (10, changed(10, "k0 < K", "now < K")),
    "kernel 10, multiplying": (10, changed(10, "k < TSK; k++", "k < TSK; now++")),
    "kernel 13, filling a tile": (13, changed(13, "e0 += ITEMS", "e0 += 0")),
    "kernel 2, along k": (2, changed(2, "k0 += TS", "k0 += 0")),
    "kernel 2, in a tile": (2, changed(2, "k < TS; k++", "k < TS; k--")),
    "kernel 3, two columns": (3, changed(3, "j0 += RTS", "j0 %= TS")),
    "goto to itself": (1, GOTO.replace("next:", "again: goto again;\nnext:")),
    "goto around a sum": (1, GOTO),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ENDLESS)
def test_an_endless_loop_is_stopped_within_the_limits(name):
    assert excess([case(*ENDLESS[name], tiles) for tiles in TILES]) == []


@pytest.mark.system
@pytest.mark.parametrize("part", range(MUTANTS // PER_PROCESS))
def test_a_look_at_any_mutant_keeps_its_limits(part):
    """Mutants: kernels of the ladder with a token replaced, swapped or deleted, seeded."""
    assert excess(mutants()[part * PER_PROCESS : (part + 1) * PER_PROCESS]) == []
