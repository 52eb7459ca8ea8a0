"""The catalog: it says what the kernel files say, and it refuses what a kernel or a device cannot take."""

import itertools
import math
import random
import re
import time
import warnings
from fractions import Fraction

import numpy as np
import pyopencl as cl
import pytest
from conftest import FULL, NO_SKIP
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gemmlab import ParameterError, catalog, check, matmul
from gemmlab.catalog import Limits, Param, find, header, sources
from gemmlab.opencl import build, launch

KERNELS = pytest.mark.parametrize("number", catalog)
FILES = sorted(spec.file for spec in catalog.values())
ENTRIES = {"pad.cl": ("pad",), "peaks.cl": ("fma_loop", "copy", "local_loop", "cache_loop"),
           "axpby.cl": ("axpby",), "transpose.cl": ("transpose",), "transpose_naive.cl": ("transpose_naive",),
           "join.cl": ("join",), "range.cl": ("range",)}  # fmt: skip


def text_of(number: int) -> str:
    return sources.read(catalog[number].file)


def says(message: str, *parts) -> bool:
    """Whether a message is a sentence that holds all parts."""
    return len(message.split()) >= 4 and all(str(part) in message for part in parts)


# What is read from the files in kernels/


@KERNELS
def test_every_parameter_and_every_rule_of_a_file_is_read(number):
    spec, text = catalog[number], text_of(number)
    assert spec.defaults == {p.name: p.default for p in spec.params}
    assert list(spec.defaults) == re.findall(r"^ *#ifndef (\w+)", text, re.M)
    assert len(spec.rules) == text.count("#error")
    assert find(spec.number) is spec and isinstance(spec.number, type(number))


HEADER = """// 99 example: nothing.
//
// Before:   03_work_per_thread. All.

#ifndef TS
#define TS 32 // side of a tile: in elements [8, 16, 32]
#endif
#ifndef PAD
#define PAD 2 // floats [0, 2]
#endif

#if !(TS % (PAD + 1) == 0)
#error TS is not a multiple of PAD plus 1
#endif
"""


def test_a_header_is_read():
    side, pad = header.parameters(HEADER)
    assert side == Param("TS", 32, "side of a tile: in elements", (8, 16, 32)) and side.least == 1
    assert pad == Param("PAD", 2, "floats", (0, 2)) and pad.least == 0
    (rule,) = header.rules(HEADER)
    assert rule.names == {"TS", "PAD"} and rule.holds({"TS": 9, "PAD": 2})
    assert not rule.holds({"TS": 8, "PAD": 2})
    assert rule.sentence({"TS": 8, "PAD": 2}) == "TS=8 is not a multiple of PAD=2 plus 1"
    assert header.predecessor(HEADER) == "03_work_per_thread"


@KERNELS
def test_every_rule_has_a_sentence_with_its_values(number):
    spec = catalog[number]
    for rule in spec.rules:
        names = [name for name in spec.defaults if name in rule.names]
        assert names and all(f"{name}={{{name}}}" in rule.broken for name in names)


def with_macros(params: dict[str, int], text: str) -> dict[str, int]:
    """The parameters, and what the file makes of them: macros of the form NAME (expression) or NAME number."""
    names = dict(params)
    for name, body in re.findall(r"^#define (\w+) (\(.+\)|\d+)(?: *//.*)?$", text, re.M):
        names[name] = params[name] if name in params else eval(body.replace("/", "//"), {}, dict(names))
    return names


@KERNELS
def test_the_work_group_is_that_of_the_file(number):
    spec, text = catalog[number], text_of(number)
    required = re.search(r"reqd_work_group_size\(([^,]+),([^,]+),\s*1\)", text)
    for params in spec.sample(None, 200):
        names = with_macros(params, text)
        assert spec.local_size(params) == tuple(eval(size, {}, names) for size in required.groups())


@KERNELS
def test_the_local_memory_is_that_of_the_file(number):
    spec = catalog[number]
    arrays = re.findall(r"__local (floatX?) \w+((?:\[[^\]]+\])+)(?: __attribute__.+)?;", text_of(number))
    for params in spec.sample(None, 200):
        names = with_macros(params, text_of(number)) | {
            "TSV": params["TS"] // params.get("WIDTH", 1) if "TS" in params else 0
        }
        floats = 0
        for kind, shape in arrays:
            sides = [eval(side.replace("/", "//"), {}, names) for side in re.findall(r"\[([^\]]+)\]", shape)]
            floats += math.prod(sides) * (params["WIDTH"] if kind == "floatX" else 1)
        assert spec.local_memory(params) == 4 * floats


@KERNELS
def test_the_compiled_kernel_agrees_with_the_record(number, device):
    spec = catalog[number]
    built = launch.kernel(number, device=device)._built.kernel
    ask, info = built.get_work_group_info, cl.kernel_work_group_info
    assert tuple(ask(info.COMPILE_WORK_GROUP_SIZE, device.cl)) == (*spec.local_size(spec.fit(device.limits)), 1)
    assert ask(info.LOCAL_MEM_SIZE, device.cl) >= spec.local_memory(spec.fit(device.limits))


@pytest.mark.parametrize("file", FILES)
def test_a_file_compiles_on_its_own(file, device):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cl.CompilerWarning)  # some compilers talk even when all is well
        program = cl.Program(device.context, sources.read(file)).build(list(build.OPTIONS), devices=[device.cl])
    for name in ENTRIES.get(file, ("gemm",)):
        assert cl.Kernel(program, name).function_name == name
    assert program.num_kernels == len(ENTRIES.get(file, ("gemm",)))


@KERNELS
def test_a_file_refuses_what_breaks_a_rule(number, some_device):
    """The #error of each rule fires where the catalog says that the rule is broken."""
    spec = catalog[number]
    rng = random.Random(number)
    for rule in spec.rules:
        legal = random.Random(0).choices(spec.sample(None, 500), k=2000)
        draws = [  # a legal set with one or two values changed
            {
                **good,
                **{p.name: rng.randint(-2, 40) for p in rng.sample(spec.params, min(2, len(good)))},
            }
            for good in legal
        ]
        draws += [{**legal[0], p.name: 100_000} for p in spec.params]
        draws = [d for d in draws if not _holds(rule, d)]
        broken = min(draws, key=lambda d: sum(not _holds(r, d) for r in spec.rules))  # the fewest others
        said = re.search(rf"^#if !\({re.escape(rule.test.text)}\)\n#error (.+)$", text_of(number), re.M)[1]
        with pytest.raises(build.BuildError, match=re.escape(said)):
            build.build(some_device, some_device.context, spec.file, text_of(number), broken)
        with pytest.raises(ParameterError):
            spec.validate(broken)


def _holds(rule, params) -> bool:
    try:
        return rule.holds(params)
    except ZeroDivisionError:
        return True  # the rule about 0 itself speaks


def test_no_file_includes_another():
    assert FILES and not [file for file in FILES if "#include" in sources.read(file)]


# Choices, settle, fit


@KERNELS
def test_every_choice_is_legal_in_some_setting(number):
    spec = catalog[number]
    for param in spec.params:
        assert param.default in param.choices
        assert list(param.choices) == sorted(set(param.choices))
        for value in param.choices:
            new, _ = spec.nearest_legal({param.name: value}, param.name)
            assert new[param.name] == value and spec.problems(new) == []
    assert spec.validate() == spec.defaults


def brute_force(spec, limits=None):
    """All legal combinations of offered values, by asking every one."""
    names = [p.name for p in spec.params]
    every = (dict(zip(names, values, strict=True)) for values in itertools.product(*(p.choices for p in spec.params)))
    return [setting for setting in every if not spec.problems(setting, limits)]


#: Kernels whose whole space can be asked in no time.
LISTED = [n for n, spec in catalog.items() if math.prod(len(p.choices) for p in spec.params) <= 10_000]


@pytest.mark.parametrize("number", LISTED)
def test_the_search_space_is_every_legal_combination(number):
    spec, small = catalog[number], Limits("a small device", 256, (256, 256, 64), 8192)
    for limits in (None, small):
        assert list(spec.search_space(limits)) == brute_force(spec, limits)


@KERNELS
def test_a_sample_is_legal_seeded_and_without_repetition(number):
    spec, small = catalog[number], Limits("a small device", 256, (256, 256, 64), 8192)
    some = spec.sample(small, 20, seed=1)
    assert some == spec.sample(small, 20, seed=1) and all(spec.problems(s, small) == [] for s in some)
    assert len({tuple(s.values()) for s in some}) == len(some)
    assert len(some) in (20, len(list(itertools.islice(spec.search_space(small), 21))))


@pytest.mark.parametrize("number", LISTED)
def test_a_covering_sample_has_every_pair_of_values(number):
    spec = catalog[number]

    def pairs(settings):
        return {pair for s in settings for pair in itertools.combinations(s.items(), 2)}

    assert pairs(spec.sample()) == pairs(spec.search_space())


@pytest.mark.parametrize("number", LISTED)
def test_nearest_legal_changes_as_little_as_any_setting_that_keeps_the_value(number):
    """Compared with the whole space: fewest parameters, then fewest steps."""
    spec = catalog[number]
    rng, small = random.Random(number), Limits("a small device", 256, (256, 256, 64), 8192)
    places = {p.name: p.choices.index for p in spec.params}
    for limits in (None, small):
        space = brute_force(spec, limits)
        for start in rng.sample(space, min(4, len(space))):
            for param in spec.params:
                for value in param.choices:
                    given = {**start, param.name: value}

                    def distance(other, given=given):
                        steps = [abs(places[n](other[n]) - places[n](given[n])) for n in given]
                        return sum(step > 0 for step in steps), sum(steps)

                    new, sentences = spec.nearest_legal(given, param.name, limits)
                    able = [s for s in space if s[param.name] == value]
                    problems = spec.problems(given, limits)
                    assert new[param.name] == value
                    if not able:
                        assert (new, sentences) == (given, problems)
                        continue
                    assert spec.problems(new, limits) == [] and distance(new) == min(map(distance, able))
                    changed = [name for name in new if new[name] != given[name]]
                    assert len(sentences) == len(changed)
                    for name, sentence in zip(changed, sentences, strict=True):
                        assert says(sentence, name, given[name], new[name], "because")
                        left = spec.problems({**new, name: given[name]}, limits)  # if this one had not moved
                        assert any(problem in sentence for problem in left)


@KERNELS
def test_nearest_legal_is_quick(number):
    """It runs while a slider is dragged, in the notebook's own process: aim 50 ms, the guard is generous."""
    spec, small = catalog[number], Limits("a small device", 256, (256, 256, 64), 8192)
    for start in spec.sample(small, 5):
        for param in spec.params:
            for value in param.choices:
                begin = time.perf_counter()
                spec.nearest_legal({**start, param.name: value}, param.name, small)
                assert time.perf_counter() - begin < 60


def test_settle_moves_to_the_nearest():
    new, sentences = catalog[3].nearest_legal({"TS": 20, "WPT": 8}, "TS")
    assert new == {"TS": 20, "WPT": 4}
    assert sentences == ["WPT moved from 8 to 4, because TS=20 is not a multiple of WPT=8"]
    assert catalog[3].nearest_legal({"TS": 20, "WPT": 8}, "WPT")[0] in ({"TS": 16, "WPT": 8}, {"TS": 24, "WPT": 8})


@KERNELS
def test_fit_adapts_the_defaults_to_a_small_device(number):
    spec = catalog[number]
    roomy = Limits("roomy", 8192, (8192,) * 3, 2**20)
    assert spec.fit(roomy) == spec.defaults
    for limits in (
        Limits("a small device", 64, (64,) * 3, 2**15),
        Limits("a narrow device", 1024, (8, 1024, 64), 2**15),
        Limits("a flat device", 1024, (1024, 4, 64), 2**15),
        Limits("a forgetful device", 1024, (1024,) * 3, 1000),
    ):
        if spec.sample(limits, 1):
            assert spec.problems(spec.fit(limits), limits) == []
        else:  # nothing fits: the defaults come back, and `validate` will say what is wrong
            assert spec.fit(limits) == spec.defaults
    # where nothing fits, the defaults come back, and validation says why they cannot run
    nothing = Limits("nothing", 0, (0, 0, 0), 0)
    assert spec.fit(nothing) == spec.defaults
    with pytest.raises(ParameterError, match="of nothing"):
        spec.validate(spec.fit(nothing), nothing)


def test_where_nothing_can_be_copied_without_waiting_async_is_refused(any_device):
    """As on NVIDIA's older devices; the nearest offer is the same kernel that waits."""
    old = Limits("an old GPU", 1024, (1024, 1024, 64), 49152, asynchronous=False)
    said = (
        "kernel warp_tiling: ASYNC=1: an old GPU cannot copy to local memory without waiting (compute capability 8.0)"
    )
    with pytest.raises(ParameterError) as error:
        catalog["warp_tiling"].validate({"ASYNC": 1}, old)
    assert str(error.value) == said
    assert catalog["warp_tiling"].fit(old) == catalog["warp_tiling"].defaults | {"ASYNC": 0}
    assert {p["ASYNC"] for p in catalog["warp_tiling"].sample(old, 100)} == {0}
    new, sentences = catalog["warp_tiling"].nearest_legal(catalog["warp_tiling"].defaults, "TSM", old)
    assert new["ASYNC"] == 0 and says(sentences[0], "ASYNC moved from 1 to 0", "an old GPU")
    young = Limits("a new GPU", 1024, (1024, 1024, 64), 49152)
    assert catalog["warp_tiling"].fit(young) == catalog["warp_tiling"].defaults and young.asynchronous
    assert all(spec.problems(spec.fit(old), old) == [] for spec in catalog.values())
    assert any_device.limits.asynchronous  # it is not NVIDIA's, or new enough: where nobody asks, nothing is refused


def test_what_a_kernel_wants_of_b_may_hang_on_its_parameters():
    wants = {number: spec.wants_transposed(spec.defaults) for number, spec in catalog.items()}
    assert set(catalog) - {number for number, transposed in wants.items() if transposed} == {
        1,
        2,
        3,
        4,
        12,
        19,
        "warpgroups",
    }
    assert not catalog[11].wants_transposed(catalog[11].complete({"TRANSPOSED": 0}))


def test_a_kernel_that_shares_tiles_has_as_many_work_groups_as_asked_for():
    spec = catalog["warp_tiling"]
    for groups, expected in ((0, 3 * 4), (1, 1), (264, 264)):
        params = spec.complete({"TSM": 64, "TSN": 32, "GROUPS": groups})
        items = spec.local_size(params)[0]
        assert spec.global_size(150, 128, params) == (expected * items, 1)
        assert spec.workspace(params) == groups * (2 * 64 * 32 + 1)
    assert [number for number, spec in catalog.items() if spec.wide] == ["warp_tiling", "tensor_cores", "warpgroups"]


def test_columns_begin_where_a_kernel_can_load_vectors():
    spec = catalog["warp_tiling"]
    for params, strides in (
        ({"WIDTH": 4}, (20, 8)),
        ({"WIDTH": 1}, (17, 6)),
        ({"WIDTH": 4, "TRANSPOSED": 0}, (20, 9)),
    ):
        full = spec.complete(params)
        assert spec.multiples(full) == (1, 1, 1) and spec.leading_dimensions(17, 6, 9, full) == strides
        assert spec.runs_unpadded(20, 8, 9, full) and spec.runs_unpadded(17, 6, 9, full) == (params["WIDTH"] == 1)
    assert catalog["tensor_cores"].leading_dimensions(17, 6, 9, catalog["tensor_cores"].defaults) == (20, 8)
    assert catalog["warpgroups"].leading_dimensions(17, 6, 9, catalog["warpgroups"].defaults) == (20, 12), (
        "B as it lies, k by k"
    )
    assert not catalog[9].runs_unpadded(17, 128, 16, catalog[9].defaults)
    assert catalog[9].leading_dimensions(128, 256, 16, catalog[9].defaults) == (128, 256)


# Refusals


def test_broken_rules_are_said_with_their_values():
    with pytest.raises(ParameterError) as error:
        catalog[3].validate({"TS": 20})
    assert str(error.value) == "kernel 3: TS=20 is not a multiple of WPT=8"
    with pytest.raises(ParameterError, match="TS=0 is out of range: it must be from 1 to 65536"):
        catalog[1].validate({"TS": 0})


@pytest.mark.parametrize(
    ("limits", "parts"),
    [
        (Limits("Toy", 64, (64, 64, 64), 65536), ("32 x 4 = 128 work-items", "limit of 64 of Toy")),
        (Limits("Toy", 256, (16, 64, 64), 65536), ("32 x 4", "32 in dimension 0", "limit of 16 of Toy")),
        (Limits("Toy", 256, (64, 2, 64), 65536), ("32 x 4", "4 in dimension 1", "limit of 2 of Toy")),
        (Limits("Toy", 256, (64, 64, 64), 4096), ("8,192 bytes of local memory", "limit of 4,096 of Toy")),
    ],
)
def test_the_limits_of_a_device_are_said_with_their_values(limits, parts):
    with pytest.raises(ParameterError) as error:
        catalog[3].validate({"TS": 32, "WPT": 8}, limits)
    assert says(str(error.value), "kernel 3", *parts)
    assert len(catalog[3].problems({"TS": 32, "WPT": 8}, limits)) == 1


def test_every_broken_limit_is_said():
    assert len(catalog[3].problems({"TS": 32, "WPT": 8}, Limits("Tiny", 1, (1, 1, 1), 1))) == 4


def test_a_real_device_refuses_what_is_over_its_limits(device):
    """Before anything is built: even a text that does not compile is not reached."""
    spec, side = catalog[2], 1
    while not spec.problems({"TS": side}, device.limits):
        side *= 2
    with pytest.raises(ParameterError) as error:
        launch.Kernel(spec, {"TS": side}, device, device.context, text="no OpenCL C")
    assert says(str(error.value), "kernel 2", device.limits.name)


@pytest.mark.parametrize(
    ("name", "meant"), [("ts", "TS"), ("wpt", "WPT"), ("WTP", "WPT"), ("T", "TS"), ("WPT2", "WPT")]
)
def test_an_unknown_parameter_names_the_nearest(name, meant):
    with pytest.raises(ParameterError) as error:
        catalog[3].validate({name: 4})
    assert says(str(error.value), repr(name), f"did you mean {meant}?", "TS, WPT")


def test_an_unknown_parameter_like_nothing_names_all():
    with pytest.raises(ParameterError, match=r"kernel 1 has no parameter 'colour' \(it has TS\)$"):
        catalog[1].validate({"colour": 4})


@pytest.mark.parametrize("wrong", [[("TS", 4)], "TS=4", 4, ("TS",)])
def test_params_must_be_a_dict(wrong):
    with pytest.raises(TypeError) as error:
        catalog[1].validate(wrong)
    assert says(str(error.value), "params must be a dict", repr(wrong), type(wrong).__name__)


VALUES = st.one_of(
    st.integers(1, 70),
    st.integers(1, 70),
    st.sampled_from((1, 2, 4, 8, 16, 32, 64)),
    st.integers(),
    st.integers(1, 70).map(np.int64),
    st.integers(60_000, 70_000),
    st.booleans(),
    st.booleans().map(np.bool_),
    st.floats(),
    st.floats(width=32).map(np.float32),
    st.fractions(),
    st.text(max_size=5),
    st.none(),
    st.lists(st.integers(), max_size=2),
    st.just(10**300),
)
NAMES = st.sampled_from(("TS", "TS", "TS", "WPT", "WPT", "ts", "TSM", "WIDTH", "", "acc", 7, None))
SMALL = Limits("Toy", 256, (128, 64, 64), 16384)


@settings(
    max_examples=10_000 if FULL else 1000, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
@given(st.sampled_from((1, 2, 3)), st.dictionaries(NAMES, VALUES, max_size=3), st.sampled_from((None, SMALL)))
def test_random_parameters_are_legal_or_refused_with_a_sentence(number, given, limits):
    spec = catalog[number]
    try:
        full = spec.validate(given, limits)
    except ParameterError as error:
        unknown = [name for name in given if name not in spec.defaults]
        if unknown:
            assert any(says(str(error), f"no parameter {name!r}") for name in unknown)
        else:
            full = spec.complete(given)
            assert says(str(error), f"kernel {number}")
            assert any(f"{n}={v}" in str(error) for n, v in full.items()) or SMALL.name in str(error)
            assert _breaks(number, full, limits)
    except TypeError as error:
        wrong = [n for n, v in given.items() if isinstance(v, bool) or not isinstance(v, (int, np.integer))]
        assert any(says(str(error), f"{n} must be a whole number", repr(given[n])) for n in wrong)
    else:
        assert list(full) == list(spec.defaults) and all(type(value) is int for value in full.values())
        assert all(full[name] == value for name, value in given.items())
        assert not _breaks(number, full, limits)


def _breaks(number: int, p: dict, limits) -> bool:
    """Legality once more, in words of this test's own."""
    ts, wpt = p["TS"], p.get("WPT", 1)
    if not (1 <= ts <= 65536 and 1 <= wpt <= 65536) or ts % wpt:
        return True
    items, memory = (ts, ts // wpt), 0 if number == 1 else 8 * ts * ts
    if limits is None:
        return False
    over = any(size > most for size, most in zip(items, limits.per_dimension, strict=False))
    return over or items[0] * items[1] > limits.work_group or memory > limits.local_memory


def test_random_values_really_are_of_every_kind():
    """The strategy above would prove little if it drew only whole numbers."""
    kinds = set()

    @settings(max_examples=500, database=None, derandomize=True)
    @given(VALUES)
    def draw(value):
        kinds.add(type(value))

    draw()
    assert {int, bool, float, str, Fraction, list, type(None), np.int64, np.bool_, np.float32} <= kinds


def test_random_legal_sets_compute_right(device):
    rng = random.Random(device.index)
    legal = []
    while len(legal) < (100 if FULL else 12 if NO_SKIP else 6):
        number = rng.choice((1, 2, 2, 3, 3, 3, 3))
        params = {name: rng.randint(1, 40) for name in catalog[number].defaults}
        if not catalog[number].problems(params, device.limits) and (number, params) not in legal:
            legal.append((number, params))
    for seed, (number, params) in enumerate(legal):
        a, b = check.exact_inputs(*(rng.randint(1, 60) for _ in range(3)), seed=seed)
        verdict = check.exact(matmul(a, b, kernel=number, params=params, device=device), a, b)
        assert verdict.ok, f"kernel {number} {params} {a.shape} x {b.shape}: {verdict}"
