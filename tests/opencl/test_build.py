"""Compiling: errors that show the line, and kernels that refuse what they would misread."""

import pickle
import tempfile

import pytest

import gemmlab
from gemmlab import BuildError
from gemmlab.ladder import sources

NAIVE = sources.read("01_naive.cl")


def test_an_error_travels_to_another_process_and_its_lines_are_cut(any_device):
    """Compilers repeat the source, of which a panel shows everything."""
    text = "#error " + "a" * 2_000_000 + "\n__kernel void gemm(int M) { wrong }"
    with pytest.raises(BuildError) as raised:
        gemmlab.measure(1, 32, source=text, device=any_device)
    # Dask's workers send that, too, and PyOpenCL's errors cannot be sent
    assert raised.value.__context__ is None
    copy = pickle.loads(pickle.dumps(raised.value))
    assert (str(copy), copy.log) == (str(raised.value), raised.value.log)
    assert 0 < len(str(copy)) < 5000
    with pytest.raises(ValueError, match="source has a character"):
        gemmlab.measure(1, 32, source="// \ud800\n" + NAIVE, device=any_device)


MISTAKES = {
    "undeclared": ("acc += A", "acc += oops + A", "oops"),
    "semicolon": ("float acc = 0.0f;", "float acc = 0.0f", "expected"),
    "#error": ("__kernel __attr", "#error on purpose\n__kernel __attr", "on purpose"),
    "macro": ("acc += A", "acc += SQ(2) + A", "yy"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_build_error_shows_the_line(mistake, device):
    old, new, word = MISTAKES[mistake]
    assert NAIVE.count(old) == 1
    text = "#define SQ(x) ((x)*yy)\n" + NAIVE.replace(old, new)
    lines = text.splitlines()
    number = next(i for i, line in enumerate(lines, 1) if new.splitlines()[0] in line)
    for params in (None, {"TS": 4}):  # the numbers are those of the file, whatever the parameters
        with pytest.raises(BuildError) as error:
            gemmlab.measure(1, 8, source=text, params=params, device=device)
        message = str(error.value)
        for words in (
            f"line {number}: ",
            word,
            f"{number} | {lines[number - 1]}",
            f"{number - 1} | {lines[number - 2]}",
        ):
            assert words in message, message
        assert len(message.splitlines()) < 40 and len(error.value.log) > 20


@pytest.mark.parametrize("old, new, word", [
    ("void gemm(", "void other(", "gemm"),
    ("const int K,", "const int K, const int L,", "argument"),
])  # fmt: skip
def test_a_text_that_is_not_this_kernel(old, new, word, device, monkeypatch, tmp_path):
    """A learner's slip in the signature is said as such, and leaves no file."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    for text in (NAIVE.replace(old, new), NAIVE + f"#error {word}\n"):
        with pytest.raises((BuildError, ValueError), match=word):
            gemmlab.measure(1, 8, source=text, device=device)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(TypeError, match="source"):
        gemmlab.measure(1, 8, source=3, device=device)


@pytest.mark.parametrize("old, new", [
    ("const int M, const int N, const int K,", "const uint M, const uint N, const uint K,"),
    ("const int M,", "const idx M,"),
    ("void gemm(const int M,", "void gemm(/* rows, columns */ const int M,"),
    ("__kernel", "/* call: gemm(int a) { } */ __kernel"),
    ("__global float* restrict C)", "__global float C[])"),
])  # fmt: skip
def test_any_types_of_arguments(old, new, device):
    """The types are those of the compiled kernel."""
    assert NAIVE.count(old) == 1
    text = "typedef int idx;\n" + NAIVE.replace(old, new)
    outcome = gemmlab.trial(1, 24, params={"TS": 8}, source=text, device=device)
    assert outcome.ok, outcome.verdict


OWN = """
__kernel void gemm({0})
{{
    __local float tile[{1}];
    const int m = get_global_id(0), n = get_global_id(1);
    for (int k = m; k < {1}; k += 8) tile[k] = 1.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    C[m] = tile[n];
}}
"""
READ = "const __global float* A, const __global float* B"


@pytest.mark.parametrize("parameters, floats, name", [
    (f"int4 M, int N, int K, {READ}, __global float* C", 8, "int4 M"),
    (f"int M, int N, char K, {READ}, __global float* C", 8, "char K"),
    ("int M, int N, int K, __read_only image2d_t A, const __global float* B, __global float* C", 8,
     "image2d_t A"),
    ("int M, int N, int K, const __global float* A, __local float* B, __global float* C", 8,
     "__local float. B"),
    (f"int M, int N, int K, {READ}, __global double* C", 8, "double. C"),
    (f"int M, int N, int K, __global float* C, {READ}", 8, "C, A, B"),
    (f"{READ}, __global float* C, int M, int N, int K", 8, "A, B, C, M"),
    (f"int M, int N, int K, {READ}, __global float* C", 2**20, "bytes of local memory|shared data"),
])  # fmt: skip
def test_a_text_that_must_not_be_launched(parameters, floats, name, device):
    """On some runtimes the launch would end the process."""
    assert device.limits.local_memory < 4 * 2**20
    source = OWN.format(parameters, floats)
    with pytest.raises((ValueError, BuildError), match=name):
        gemmlab.measure(1, 128, params={"TS": 8}, source=source, device=device)


def test_a_work_group_that_the_text_changes(device):
    text = NAIVE.replace("__kernel __attr", "#undef TS\n#define TS 16\n__kernel __attr")
    outcome = gemmlab.trial(1, 32, params={"TS": 8}, source=text, device=device)
    assert not outcome.ok and "16 x 16" in outcome.verdict


def test_a_kernel_refuses_sizes_that_it_does_not_support(any_device):
    kernel = gemmlab.kernel(3, {"TS": 8, "WPT": 2}, any_device)
    for sizes, word in (((8, 8, 9), "K=9"), ((7, 8, 8), "M=7"), ((8, 0, 8), "N=0")):
        with pytest.raises(ValueError, match=word):
            kernel.global_size(*sizes)


def test_measure_wants_positive_numbers(any_device):
    for name, wrong in (("m", 1.0), ("repeats", 0), ("most_seconds", float("nan"))):
        with pytest.raises(ValueError, match=f"{name} must be"):
            gemmlab.measure(1, **{"m": 8, name: wrong})
