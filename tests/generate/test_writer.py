"""Texts are short, each line is traced to its function, and the microscope finds nothing."""

import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from configurations import (
    DIRECT,
    HALF_WARPS,
    SMALL,
    WARPGROUPS,
    WARPS,
    case,
    covering,
    every,
    shared,
    warped,
)
from conftest import in_part

import clscope
from gemmlab.generate import Schedule, write
from gemmlab.ladder.spec import tiles_over

#: Some of the kernels of warps, whose texts differ little from each other.
SOME = warped()[::7]


def test_a_text_contains_only_what_its_schedule_needs():
    for s in [*every(), *SOME, *shared()]:
        body = write(s).partition("\n\n")[2]
        words = {
            "C0": s.beta,
            "beta": s.beta,
            "__local": s.scheme != "direct",
            "product(": s.element.components == 2,
            "mma.sync": s.unit == "tensor",
            "wgmma": s.unit == "warpgroups",
            "atomic_inc": s.split_k > 1,
            "own_m" if s.scheme == "direct" else "m < M": s.a.guarded,
            "own_n" if s.scheme == "direct" else "n < N": s.b.guarded,
        }
        assert {word: word in body for word in words} == words, s.name
    assert len({write(s) for s in [*every(), *SOME]}) == len(every()) + len(SOME)


def test_every_line_has_a_function_that_wrote_it():
    for s in [*covering(), *SOME, *shared()]:
        lines, wrote = write(s).splitlines(), write(s).writers
        by = {name: [] for name in wrote}
        for name, line in zip(wrote, lines, strict=True):
            by[name].append(line)
        for name in by:
            module, _, function = name.partition(".")
            assert callable(getattr(import_module(f"gemmlab.generate.{module}"), function))
        assert any("#define TSM" in line for line in by["writer.parameters"])
        assert ("writer.arithmetic" in by) == (s.element.components == 2)
        assert any("C[" in line for line in by["epilogue.store"])


def test_a_part_of_ones_own():
    def mine(s):
        return ["// store", "C[0] = 1.0;"]

    s = Schedule()
    own = write(s, store=mine)
    assert "C[n*M + m]" in write(s) and "C[n*M + m]" not in own
    assert own.writers[own.splitlines().index("    C[0] = 1.0;")] == "test_writer.mine"
    with pytest.raises(TypeError, match="signature.*stores"):
        write(s, stores=mine)


def launch_arguments(s: Schedule, given):
    """The launch and arguments that `clscope.run` takes, complex numbers as pairs."""
    real = np.empty(0, s.element.result).real.dtype
    m, n, k = given.sizes

    def numbers(number):
        return [number.real, number.imag] if s.element.components == 2 else [number]

    def view(x):
        return x.memory.view(x.memory.real.dtype), x.offset, x.ld

    args = [m, n, k, *numbers(given.alpha), *view(given.a), *view(given.b)]
    if s.beta:
        memory, offset, ld = view(given.before)
        args += [*numbers(given.beta), memory, offset, 1, ld]
    axes = zip((m, n), s.tile, s.local_size, strict=True)
    items = [tiles_over(size, side) * count for size, side, count in axes]
    return items, [*args, clscope.Empty(m * n * s.element.components, real)]


def simulated(s: Schedule, text: str, seed: int = 0):
    """The run of a text in the microscope, and whether C is what it must be."""
    given = case(s, seed)
    items, args = launch_arguments(s, given)
    run = clscope.run(text, None, items, None, args)
    m, n, _ = given.sizes
    got = run.arrays["C"].view(given.expected.dtype).reshape(n, m).T
    return run, bool(np.array_equal(got, given.expected))


SIMULATED = [*covering(), *in_part(covering(warped()), 8)]


@pytest.mark.parametrize("s", SIMULATED, ids=lambda s: s.name)
def test_the_microscope_finds_nothing(s):
    """With ordinary arithmetic in place of the tensor cores' instructions."""
    run, right = simulated(s, write(s))
    assert run.ok and right, run.verdict


EDGES = {"edges": "both", "tail": True}
BOTH = {"beta": True, "edges": "both", "tail": True}
MISTAKES = [
    (
        Schedule("z", "C", "N", unit="tensor", stages=3, **BOTH, **WARPS),
        {
            "barrier": (
                r"(AWAIT\(STAGES - 2\);\n\s+)barrier\(CLK_LOCAL_MEM_FENCE\);",
                r"\1;",
            ),
            "index": (r"tile\[B_AT\(k, n\)\]", "tile[n*TSK + k]"),
            "tail": (r" && k0 \+ k < K", ""),
            "sign": (r"MMA\(im, i, j, -", "MMA(im, i, j, "),
        },
    ),
    (
        Schedule("h", "N", "N", unit="tensor", stages=2, store_width=8, **EDGES, **HALF_WARPS),
        {
            "pair": (r"\(k\) \+ 1, i", "k, i"),
            "complete": (
                r"(// barrier: these columns.*\n\s+)barrier\(CLK_LOCAL_MEM_FENCE\)",
                r"\1",
            ),
            "swizzle": (r"\(i \^ \(n1 \+ j\)", "(i ^ (j/4)"),
        },
    ),
    (
        Schedule("sh", "T", "N", unit="warpgroups", stages=3, **EDGES, **WARPGROUPS),
        {
            "barrier": (r"SHOW\(\);\n\s+barrier\(CLK_LOCAL_MEM_FENCE\);", "SHOW();"),
            "row": (r"A_AT\(l, wm \+ i\*8 \+ g\)", "A_AT(l, wm + i*8 + t)"),
        },
    ),
    (
        Schedule("c", "C", "N", **BOTH, **SMALL),
        {
            "barrier": (r"barrier\(CLK_LOCAL_MEM_FENCE\);", ";"),
            "store": (r"m < M && n < N", "n < N"),
            "conjugate": (r"a\[i\]\.y\*b\[j\]\.y", "-a[i].y*b[j].y"),
            "beta": (r"product\(beta, ", "product(alpha, "),
        },
    ),
    (
        Schedule("z", "C", "R", beta=True, edges="both", **DIRECT),
        {
            "position": (r"min\(own_m, M - WPTM\)", "own_m"),
            "imaginary": (r"im\[j\]\[i\]\.even", "0"),
            "sign": (r"re\[j\]\[i\]\.even", "-re[j][i].even"),
        },
    ),
]


@pytest.mark.parametrize(
    ("s", "pattern", "replacement"),
    [(s, *edit) for s, mistakes in MISTAKES for edit in mistakes.values()],
    ids=[f"{s.scheme}-{mistake}" for s, mistakes in MISTAKES for mistake in mistakes],
)
def test_the_microscope_finds_a_mistake(s, pattern, replacement):
    broken = re.sub(pattern, replacement, write(s))
    assert broken != write(s)
    run, right = simulated(s, broken)
    assert not (run.ok and right)


def test_the_examples_of_the_page_about_the_family_run(capsys):
    page = (Path(__file__).parents[2] / "docs" / "generate.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.S)
    blocks = [block for block in blocks if block.startswith("from gemmlab")]
    names: dict = {}
    for block in blocks:
        exec(block, names)
    printed = capsys.readouterr().out.splitlines()
    promised = re.findall(r"print\([^#\n]*# (\S+)\n", "".join(blocks))
    assert len(blocks) == 2 and len(promised) >= 2
    assert [printed[0], *printed[1 - len(promised) :]] == promised
