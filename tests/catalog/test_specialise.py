"""What is left of a text compiles to what the whole text compiles to, and says where it came from."""

import pytest

import gemmlab
from gemmlab.catalog import NARROW, find, sources
from gemmlab.catalog.specialise import specialise
from gemmlab.simt.text import Preprocessor

NVIDIA = "__NV_CL_C_VERSION"
PRODUCTION = [find("warp_tiling"), find("tensor_cores"), find("warpgroups"), NARROW]


def words(text, values):
    """What a compiler sees of a text: its tokens, with macros replaced."""
    return [token.text for token in Preprocessor(values).run(text)]


@pytest.mark.parametrize("spec", PRODUCTION, ids=lambda spec: spec.number)
def test_the_compiler_sees_the_same(spec):
    whole = sources.read(spec.file)
    for params in [spec.defaults, *spec.sample(count=3, seed=3)]:
        for features in (frozenset(), frozenset({"nvidia"})):
            text, lines = spec.text(params, features)
            for more in ({}, {"COUNT": 1}) if params.get("SPLIT") else ({},):  # a launch may set it
                values = {**params, **more, **({NVIDIA: 1} if features else {})}
                assert words(text, values) == words(whole, values), params
            assert len(lines) == text.count("\n") and sources.code_lines(text) < sources.code_lines(whole)


def test_each_line_is_one_of_the_whole_text_but_for_values():
    spec = find("warp_tiling")
    whole = sources.read(spec.file).split("\n")
    text, lines = spec.text(spec.complete({"GROUPS": 7, "SPLIT": 8}))
    for line, number in zip(text.split("\n"), lines, strict=False):
        assert line == whole[number - 1] or line.startswith(("#define GROUPS 7", "#define SPLIT 8")), line
    assert list(lines) == sorted(set(lines))


def test_a_kernel_of_the_ladder_is_its_file():
    text, lines = find(6).text(find(6).defaults)
    assert text == sources.read(find(6).file) and lines == tuple(range(1, len(lines) + 1))


TEXT = """#ifndef N
#define N 2 // how many
#endif
#ifndef SET_LATER
#define SET_LATER 3
#endif
#if !(N % 2 == 0)
#error N must be even
#endif
#define HALF (N/2)
#define LONG(x) \\
    (x + \\
     ONLY_HERE)
#if HALF == 1
one
#elif HALF == 2 && !defined(LONG)
two
#elif defined(LONG) || N > 100
many
#else
none
#endif
#ifdef COMPILER
    #if N > 2
inner
    #endif
#endif
SET_LATER
"""


@pytest.mark.parametrize(
    ("n", "compiler", "want"),
    [
        (2, True, ["one"]),
        (4, True, ["many", "inner"]),
        (6, False, ["many"]),
        (8, None, ["many", "#ifdef COMPILER", "inner", "#endif"]),  # nobody knows, so that the compiler is asked
    ],
)
def test_what_is_decided_and_what_stays(n, compiler, want):
    text = specialise(TEXT, {"N": n}, {} if compiler is None else {"COMPILER": compiler}).text
    default = ["#ifndef SET_LATER", "#define SET_LATER 3", "#endif"]
    assert text.split("\n")[:-1] == [*default, *want, "SET_LATER"]  # N, HALF and LONG are used no more


def test_what_is_used_stays_with_its_value():
    assert specialise(TEXT + "HALF", {"N": 4}).text.startswith("#define N 4 // how many\n")


def test_a_device_is_given_the_short_text(some_device):
    kernel = gemmlab.kernel("warp_tiling", {"GROUPS": 3}, some_device)
    assert (kernel.source, kernel.lines) == kernel.spec.text(kernel.params, some_device.features)
    assert "#if" not in kernel.source and "#if" in sources.read(kernel.spec.file)
