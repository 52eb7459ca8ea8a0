"""The texts: short, holding only what they need, traced to the functions that wrote them, right in the microscope."""

import inspect
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from configurations import DIRECT, SMALL, WARPS, case, covering, every, loaded, shared, warped
from conftest import in_part

from gemmlab import simt
from gemmlab.catalog.spec import tiles_over
from gemmlab.family import (
    Configuration,
    direct,
    dots,
    in_place,
    matrix_vector,
    origins,
    packed,
    shares,
    strided,
    warps,
    write,
    writer,
)
from gemmlab.family import shared as shared_parts
from gemmlab.family.configuration import PRECISIONS

#: Of the kernels of warps: for texts differ little from one to the next.
SOME = warped()[::7]


def test_a_text_is_short_and_not_wide():
    for c in [*every(), *SOME, *loaded()]:
        lines = write(c).splitlines()
        assert len(lines) < 200 and max(map(len, lines)) <= 120, c.name
        assert not any(line != line.rstrip() for line in lines), c.name


def test_a_text_holds_only_what_its_configuration_needs():
    for c in every():
        body = write(c).partition("\n\n")[2]
        assert ("C0" in body) == ("beta" in body) == c.beta, c.name
        asks = ("m < M", "n < N") if c.stages else ("own_m", "own_n")
        assert [word in body for word in asks] == [c.guards("a"), c.guards("b")], c.name
        assert ("j < K" in body) == c.tail and ("__local" in body) == (c.stages > 0), c.name
        assert ("product(" in body) == (c.parts == 2), c.name
        assert ("next" in body) == (c.stages == 2), c.name
        assert "$" not in body and "#if" not in body, c.name
    for c in SOME:
        body = write(c).partition("\n\n")[2]
        assert ("C0" in body) == ("beta" in body) == c.beta and ("product(" in body) == (c.parts == 2), c.name
        assert [word in body for word in ("m < M", "n < N")] == [c.guards("a"), c.guards("b")], c.name
        assert ("k < K" in body) == c.tail and "$" not in body, c.name
        assert ("mma.sync" in body) == (c.unit == "tensor") and "multiply_add(" not in body, c.name


def test_only_texts_of_shared_tiles_have_a_workspace():
    for c in [*SOME, *shared()]:
        body = write(c).partition("\n\n")[2]
        assert [word in body for word in ("arrived", "SHARES", "IN_ORDER")] == [c.shares > 1] * 3, c.name
        assert ("shares.fix_up" in origins(c)) == (c.shares > 1), c.name


def test_equal_configurations_have_equal_texts_and_others_do_not():
    known = [*every(), *SOME]
    texts = [write(c) for c in known]
    assert len(set(texts)) == len(texts)
    assert [write(c) for c in known] == texts


def test_every_line_has_a_function_that_wrote_it():
    for c in covering():
        text, wrote = write(c).splitlines(), origins(c)
        assert len(wrote) == len(text)
        for name in set(wrote):
            module, _, function = name.partition(".")
            assert callable(getattr(import_module(f"gemmlab.family.{module}"), function))
        by = {name: "\n".join(line for line, n in zip(text, wrote, strict=True) if n == name) for name in set(wrote)}
        room = "writer" if c.stages else "direct"
        assert "acc" in by[f"{room}.begin"] and "// store" in by[f"{room}.store"] and "C[" in by["shared.stored"]
        assert ("writer.product" in by) == (c.parts == 2) and "#define TSM" in by["writer.parameters"]
        if c.stages:
            assert "barrier(" in by["writer.steps" if c.stages == 1 else "writer.steps_ahead"]
            assert "Atile" in by["writer.keep"] and "// step of k" in by["writer.load"]
            assert "#pragma unroll" in by["writer.compute"]
    for c in SOME:
        text, wrote = write(c).splitlines(), origins(c)
        by = {name: "\n".join(line for line, n in zip(text, wrote, strict=True) if n == name) for name in set(wrote)}
        assert "cp.async" in by["warps.copies"] and "_AT(" in by["warps.places"] and "barrier(" in by["warps.steps"]
        assert "COPY_" in by["warps.load"] and "volatile" in by["warps.fragments"]
        assert "C[" in by["shared.stored_together" if c.stored > 1 else "shared.stored"]
        assert ("warps.instruction" in by) == (c.unit == "tensor")


def test_every_function_that_returns_lines_signs_them():
    for module in (direct, dots, in_place, matrix_vector, packed, shared_parts, shares, strided, warps, writer):
        for name, function in vars(module).items():
            here = inspect.isfunction(function) and function.__module__ == module.__name__
            if here and function.__annotations__.get("return") == "Lines":
                assert inspect.unwrap(function) is not function, f"{module.__name__}.{name} has no @writes"


def test_a_text_remembers_its_writers():
    c = Configuration("d", a="T", beta=True, tile=(64, 32), micro_tile=(4, 4), depth=8, edges="rows", tail=True)
    assert write(c).writers == origins(c)
    own = write(c, store=lambda c: ["// store", "C[0] = 1.0;"])
    number = own.splitlines().index("    C[0] = 1.0;")
    assert len(own.writers) == own.count("\n") and own.writers[number] == "writer._kernel"


def test_texts_for_packed_operands_remember_their_writers():
    text, packing = packed.write(packed.Packed(beta=True)), packed.write_packing(packed.Packed())
    by = dict(zip(text.splitlines(), text.writers, strict=True))
    assert {by[line] for line in by if "C0[" in line} == {"packed.store"}
    assert {by[line] for line in by if "const float beta" in line} == {"packed._beta"}
    assert len(packing.writers) == packing.count("\n") and "packed.panel" in packing.writers


def launch_arguments(c: Configuration, given):
    """What `simt.run` takes: the size of the launch and the arguments, complex numbers as pairs."""
    real = np.empty(0, PRECISIONS[c.precision].dtype).real.dtype
    m, n, k = given.sizes

    def numbers(number):
        return [number.real, number.imag] if c.parts == 2 else [number]

    def view(x):
        return x.memory.view(real), x.offset, x.ld

    args = [m, n, k, *numbers(given.alpha), *view(given.a), *view(given.b)]
    if c.beta:
        memory, offset, ld = view(given.before)
        args += [*numbers(given.beta), memory, offset, 1, ld]
    items = [tiles_over(size, side) * count for size, side, count in zip((m, n), c.tile, c.local_size, strict=True)]
    return items, [*args, simt.Empty(m * n * c.parts, real)]


def simulated(c: Configuration, text: str, seed: int = 0):
    """The run of a text in the microscope, and whether C is what it must be."""
    given = case(c, seed)
    items, args = launch_arguments(c, given)
    run = simt.run(text, None, items, None, args)
    m, n, _ = given.sizes
    got = run.arrays["C"].view(given.expected.dtype).reshape(n, m).T
    return run, bool(np.array_equal(got, given.expected))


@pytest.mark.parametrize("c", covering(), ids=lambda c: c.name)
def test_the_microscope_finds_nothing(c):
    run, right = simulated(c, write(c))
    assert run.ok and right, run.verdict


@pytest.mark.parametrize("c", in_part(covering(warped()), 8), ids=lambda c: c.name)
def test_the_microscope_finds_nothing_in_kernels_of_warps(c):
    """In ordinary arithmetic: instructions of tensor cores are replaced by what they compute."""
    run, right = simulated(c, write(c))
    assert run.ok and right, run.verdict


def assert_seen(c: Configuration, mistakes: dict[str, tuple[str, str]]) -> None:
    """The microscope sees each mistake: a pattern in the text, and what replaces it."""
    text = write(c)
    for mistake, (old, new) in mistakes.items():
        broken = re.sub(old, new, text)
        assert broken != text, mistake
        run, right = simulated(c, broken)
        assert not (run.ok and right), mistake


def test_the_microscope_finds_what_is_wrong_with_warps():
    """A missing barrier, a copy to a wrong place, another work-item's element, and a wrong sign are each seen."""
    c = Configuration("z", "C", "N", True, edges="both", tail=True, unit="tensor", stages=3, **WARPS)
    mistakes = {
        "barrier": (r"(AWAIT\(STAGES - 2\);\n\s+)barrier\(CLK_LOCAL_MEM_FENCE\);", r"\1;"),
        "stage": (r"now > 0 \? now - 1 : STAGES - 1", "now"),
        "place": (r"tile\[B_AT\(k, n\)\]", "tile[n*TSK + k]"),
        "rows": (r"m0 \+ m < M && ", ""),
        "tail": (r" && k0 \+ k < K", ""),
        "fragment": (r"wn \+ j\*8 \+ g", "wn + j*8 + t"),
        "column": (r"t\*2 \+ j%2", "t + j%2*4"),
        "sign": (r"MMA\(im, i, j, -", "MMA(im, i, j, "),
    }
    assert_seen(c, mistakes)


def test_the_microscope_finds_what_is_wrong_on_purpose():
    """A missing barrier, guard, tail, conjugation and beta are each seen, in a text with all of them."""
    c = Configuration("c", "C", "N", beta=True, edges="both", tail=True, **SMALL)
    mistakes = {
        "barrier": (r"barrier\(CLK_LOCAL_MEM_FENCE\);", ";"),
        "rows": (r"m0 \+ i < M && ", ""),
        "store": (r"m < M && n < N", "n < N"),
        "tail": (r" && k[01] \+ j < K| && j < K", ""),
        "conjugate": (r"a\.y\*b\.y", "-a.y*b.y"),
        "beta": (r"product\(beta, ", "product(alpha, "),
        "offset": (r"A \+= offset_a;", ""),
    }
    assert_seen(c, mistakes)
    c = Configuration("z", "C", "R", beta=True, edges="both", **DIRECT)
    mistakes = {
        "place": (r"min\(own_m, M - WPTM\)", "own_m"),
        "imaginary": (r"im\[2\*i\]", "0"),
        "sign": (r"re\[2\*i\]", "-re[2*i]"),
    }
    assert_seen(c, mistakes)


def test_vectors_are_taken_as_wide_as_asked():
    for precision, width, vector in (("s", 4, "float4"), ("d", 2, "double2"), ("c", 2, "float4"), ("z", 2, "double4")):
        text = write(Configuration(precision, widths=(width, width), tile=(32, 32), micro_tile=(4, 4)))
        assert text.count(f"(const __global {vector}*)") == 2


def test_the_examples_of_the_page_about_the_family_run(capsys):
    page = (Path(__file__).parents[2] / "docs" / "family.md").read_text(encoding="utf-8")
    blocks = [block for block in re.findall(r"```python\n(.*?)```", page, re.S) if block.startswith("from gemmlab")]
    names: dict = {}
    for block in blocks:
        exec(block, names)
    printed = capsys.readouterr().out.splitlines()
    promised = re.findall(r"print\([^#\n]*# (\S+)\n", "".join(blocks))
    assert len(blocks) == 2 and len(promised) == 3
    assert [printed[0], *printed[-2:]] == promised


def test_a_part_of_ones_own():
    def mine(c):
        return ["// nothing is stored"]

    c = Configuration()
    text = write(c, store=mine)
    assert "// nothing is stored" in text and "C[n*M + m]" not in text and "C[n*M + m]" in write(c)
    with pytest.raises(TypeError, match="signature.*but not stores"):
        write(c, stores=mine)
