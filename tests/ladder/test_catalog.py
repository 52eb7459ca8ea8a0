"""The catalog reads the kernels' files, and refuses what a kernel or a device cannot run."""

import itertools
import math
import random
import re
import warnings

import numpy as np
import pyopencl as cl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import clscope
from clscope.text import Preprocessor
from gemmlab import ParameterError, catalog
from gemmlab.ladder import Limits, Param, find, header, sources
from gemmlab.opencl import build

KERNELS = pytest.mark.parametrize("number", catalog)
EVERY_KERNEL = pytest.mark.parametrize("number", [*catalog, "narrow"])
SMALL = Limits("a small device", 256, (256, 256, 64), 8192)
#: Kernels with so few settings that a test can look at all of them.
LISTED = [n for n, s in catalog.items() if math.prod(len(p.choices) for p in s.params) <= 10_000]


def text_of(number: int | str) -> str:
    return sources.read(find(number).file)


def contains(message: str, *parts) -> bool:
    """Whether a message is a sentence that contains all parts."""
    return len(message.split()) >= 4 and all(str(part) in message for part in parts)


# What is read from the files

HEADER = """// 99 example: nothing.
//
// Before:   03_work_per_thread. All.
//
// Compile:  -DTS=32  side of a tile: in elements [8, 16, 32]
//           -DPAD=2  floats [0, 2]

#if !(TS % (PAD + 1) == 0)
#error TS is not a multiple of PAD plus 1
#endif
"""


def test_a_header_is_read():
    """Names of parameters may have digits and small letters, as for devices and the simulator."""
    text = HEADER.replace("TS", "TS_2x")
    side, pad = header.parameters(text)
    assert side == Param("TS_2x", 32, "side of a tile: in elements", (8, 16, 32))
    assert pad == Param("PAD", 2, "floats", (0, 2)) and (side.least, pad.least) == (1, 0)
    (rule,) = header.rules(text)
    assert rule.names == {"TS_2x", "PAD"}
    assert rule.holds({"TS_2x": 9, "PAD": 2}) and not rule.holds({"TS_2x": 8, "PAD": 2})
    assert rule.broken == "TS_2x={TS_2x} is not a multiple of PAD={PAD} plus 1"
    assert header.predecessor(text) == "03_work_per_thread" and header.idea(text) == "Nothing."
    assert header.names_in("min(RX4, 8) * RX4 // _K") == {"RX4", "_K"}
    source = "#define AT2x(a1) a1\n__kernel void f(__global int* x) { x[0] = AT2x(N1_) + N1; }"
    run = clscope.run(source, None, (1,), (1,), [np.zeros(1, "i4")], {"N1_": 4, "N1": 3})
    assert run.arrays["x"][0] == 7
    with pytest.raises(ValueError, match="the option -DPAD must be in a line like"):
        header.parameters(text.replace("[0, 2]", ""))
    with pytest.raises(ValueError, match="each #error must follow"):
        header.rules(HEADER.replace("#if !(TS % (PAD + 1) == 0)", "#if TS % (PAD + 1)"))


@EVERY_KERNEL
def test_every_parameter_and_every_rule_of_a_file_is_read(number):
    spec, text = find(number), text_of(number)
    assert spec.number == number
    assert len(spec.defaults) == len(spec.params) == len(re.findall(r"^//.* -D\w+=", text, re.M))
    assert len(spec.rules) == text.count("#error")
    for rule in spec.rules:
        names = rule.names & set(spec.defaults)
        assert names and all(f"{name}={{{name}}}" in rule.broken for name in names)


@KERNELS
def test_work_group_and_local_memory_are_those_of_the_file(number):
    spec = catalog[number]
    for params in spec.sample(None, 60):
        text = " ".join(token.text for token in Preprocessor(params).run(text_of(number)))
        text = text.replace("/", "//")
        (required,) = re.findall(r"reqd_work_group_size (\(.+?, 1 \))", text)
        assert eval(required) == (*spec.local_size(params), 1)
        floats = 0
        for width, shape in re.findall(r"__local float(\d*) \w+ ((?:\[ [^\]]+ \] )+)", text):
            floats += int(width or 1) * math.prod(map(eval, re.findall(r"\[([^\]]+)\]", shape)))
        assert spec.local_memory(params) == 4 * floats


def test_a_kernel_comes_first_and_its_lines_are_short():
    for path in sources.folder().glob("*.cl"):
        lines = path.read_text(encoding="utf-8").splitlines()
        first = next(i for i, line in enumerate(lines, 1) if line.startswith("__kernel"))
        assert first <= 30 and max(map(len, lines)) <= 100, path.name


@EVERY_KERNEL
def test_a_source_compiles_without_options_to_a_kernel_of_its_size(number, device):
    spec, info = find(number), cl.kernel_work_group_info
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cl.CompilerWarning)
        program = cl.Program(device.context, spec.text(spec.defaults, device.features))
        program = program.build(list(build.OPTIONS), devices=[device.cl])
    assert program.num_kernels == (2 if number == 17 else 1)  # and its fix-up
    size = cl.Kernel(program, "gemm").get_work_group_info(info.COMPILE_WORK_GROUP_SIZE, device.cl)
    assert tuple(size) == (*spec.local_size(spec.defaults), 1)


@pytest.mark.sampled(3)
@EVERY_KERNEL
def test_a_file_refuses_what_breaks_a_rule(number, some_device):
    """The #error of each rule fires where the catalog refuses the setting."""
    spec, text = find(number), text_of(number)
    rng = random.Random(str(number))
    good = spec.sample(None, 500)
    errors = re.findall(r"^#error (.+)$", text, re.MULTILINE)
    for rule, error in zip(spec.rules, errors, strict=True):
        draws = []  # legal settings with one or two values changed
        for _ in range(2000):
            changed = rng.sample(spec.params, min(2, len(spec.params)))
            draws.append(rng.choice(good) | {p.name: rng.randint(-2, 40) for p in changed})
        draws += [{**good[0], p.name: 100_000} for p in spec.params]
        draws = [d for d in draws if not holds(rule, d)]
        broken = min(draws, key=lambda d: sum(not holds(r, d) for r in spec.rules))
        with pytest.raises(build.BuildError) as refused:
            build.build(some_device, some_device.context, spec.file, text, broken)
        assert error in refused.value.log
        with pytest.raises(ParameterError):
            spec.validate(broken)


def holds(rule, params) -> bool:
    try:
        return rule.holds(params)
    except ZeroDivisionError:
        return True  # another rule refuses 0


# Settings


def brute_force(spec, limits=None):
    """All legal combinations of offered values."""
    names = [p.name for p in spec.params]
    every = itertools.product(*(p.choices for p in spec.params))
    combinations = (dict(zip(names, values, strict=True)) for values in every)
    return [setting for setting in combinations if not spec.problems(setting, limits)]


@EVERY_KERNEL
def test_every_choice_is_legal_in_some_setting(number):
    spec = find(number)
    assert spec.validate() == spec.defaults
    for param in spec.params:
        assert param.default in param.choices
        assert list(param.choices) == sorted(set(param.choices))
        for value in param.choices:
            new, _ = spec.nearest_legal({param.name: value}, param.name)
            assert new[param.name] == value and spec.problems(new) == []
            assert spec.nearest_legal(new, param.name) == (new, [])


@EVERY_KERNEL
def test_a_sample_is_legal_seeded_and_without_repetition(number):
    spec = find(number)
    some = spec.sample(SMALL, 20, seed=1)
    assert some == spec.sample(SMALL, 20, seed=1)
    assert all(spec.problems(setting, SMALL) == [] for setting in some)
    assert len({tuple(setting.values()) for setting in some}) == len(some)
    assert len(some) == 20 or number not in LISTED or len(some) == len(brute_force(spec, SMALL))


@pytest.mark.parametrize("number", LISTED)
@pytest.mark.parametrize("limits", [None, SMALL], ids=["no limits", "small"])
def test_nearest_legal_changes_as_little_as_possible(number, limits):
    """Compared with the whole space: fewest parameters, then fewest steps."""
    spec = catalog[number]
    space = brute_force(spec, limits)
    for start in random.Random(number).sample(space, min(4, len(space))):
        for param in spec.params:
            for value in param.choices:
                check_nearest(spec, start | {param.name: value}, param.name, space, limits)


def check_nearest(spec, given, moved, space, limits):
    positions = {p.name: p.choices.index for p in spec.params}

    def distance(other):
        steps = [abs(positions[n](other[n]) - positions[n](given[n])) for n in given]
        return sum(step > 0 for step in steps), sum(steps)

    new, sentences = spec.nearest_legal(given, moved, limits)
    feasible = [setting for setting in space if setting[moved] == given[moved]]
    if not feasible:
        assert (new, sentences) == (given, spec.problems(given, limits))
        return
    assert new[moved] == given[moved] and spec.problems(new, limits) == []
    assert distance(new) == min(map(distance, feasible))
    changed = [name for name in new if new[name] != given[name]]
    for name, sentence in zip(changed, sentences, strict=True):
        assert contains(sentence, name, given[name], new[name], "because")
        left = spec.problems({**new, name: given[name]}, limits)  # if this one had not moved
        assert any(problem in sentence for problem in left)


@EVERY_KERNEL
def test_fit_adapts_the_defaults_to_a_device(number):
    spec = find(number)
    assert spec.fit(Limits("large", 8192, (8192,) * 3, 2**20)) == spec.defaults
    for limits in (
        Limits("a narrow device", 1024, (8, 1024, 64), 2**15),
        Limits("a flat device", 256, (1024, 4, 64), 2**15),
        Limits("nothing", 0, (0, 0, 0), 0),
    ):
        if spec.sample(limits, 1):
            assert spec.problems(spec.fit(limits), limits) == []
        else:
            assert spec.fit(limits) == spec.defaults
            with pytest.raises(ParameterError, match=f"of {limits.name}"):
                spec.validate(spec.defaults, limits)


def test_a_device_without_the_instructions_refuses_them(any_device):
    """As NVIDIA's older devices do; the nearest setting is the same kernel without them."""
    ampere = Limits("an A100", 1024, (1024, 1024, 64), 49152, warpgroups=False)
    for kernel, has in (("tensor_cores", True), ("warpgroups", False)):
        assert (catalog[kernel].problems(catalog[kernel].defaults, ampere) == []) == has
        assert catalog[kernel].fit(ampere)["TENSOR"] == has
    spec = catalog["warp_tiling"]
    old = Limits("an old GPU", 1024, (1024, 1024, 64), 49152, asynchronous=False)
    with pytest.raises(ParameterError, match="ASYNC=1: an old GPU cannot copy to local memory"):
        spec.validate({"ASYNC": 1}, old)
    new, sentences = spec.nearest_legal(spec.defaults, "TSM", old)
    assert new == spec.fit(old) == spec.defaults | {"ASYNC": 0}
    assert contains(sentences[0], "ASYNC moved from 1 to 0", "an old GPU")
    assert all(kernel.problems(kernel.fit(old), old) == [] for kernel in catalog.values())
    assert any_device.limits.asynchronous


# Refusals


VALUES = st.integers(1, 70) | st.sampled_from((0, -1, 64, np.int64(8), 65536, 65537))
VALUES |= st.sampled_from((None, True, 4.0, "4", np.float32(4)))
NAMES = st.sampled_from(("TS",) * 4 + ("WPT",) * 3 + ("ts", "WIDTH", 7))
TOY = Limits("Toy", 256, (128, 64, 64), 16384)


@settings(
    max_examples=1000,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(
    st.sampled_from((1, 2, 3)),
    st.dictionaries(NAMES, VALUES, max_size=3),
    st.sampled_from((None, TOY)),
)
def test_random_parameters_are_legal_or_refused_with_a_sentence(number, given, limits):
    spec = catalog[number]
    for name, value in given.items():
        if name not in spec.defaults:
            with pytest.raises(ParameterError, match=f"no parameter {name!r}"):
                spec.validate({name: value}, limits)
            return
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            with pytest.raises(TypeError, match=f"{name} must be a whole number"):
                spec.validate({name: value}, limits)
            return
    full = spec.complete(given)
    assert list(full) == list(spec.defaults) and all(type(value) is int for value in full.values())
    problems = spec.problems(full, limits)
    assert bool(problems) == is_illegal(number, full, limits)
    for problem in problems:
        assert contains(problem) and ("=" in problem or TOY.name in problem)


def is_illegal(number: int, p: dict, limits) -> bool:
    """The rules of kernels 1 to 3, stated independently of the catalog."""
    ts, wpt = p["TS"], p.get("WPT", 1)
    if not (1 <= ts <= 65536 and 1 <= wpt <= 65536) or ts % wpt:
        return True
    if limits is None:
        return False
    items, memory = (ts, ts // wpt), 0 if number == 1 else 8 * ts * ts
    over = any(size > most for size, most in zip(items, limits.per_dimension, strict=False))
    return over or math.prod(items) > limits.work_group or memory > limits.local_memory
