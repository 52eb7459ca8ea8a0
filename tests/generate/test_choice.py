"""kernel="auto" on a device with constants: a legal kernel at any shape, the quickest by the model,
in words.
"""

import dataclasses
import json

import numpy as np
import pytest
from calls import random_shapes

import gemmlab
from gemmlab import check
from gemmlab.blas import routes, trials
from gemmlab.blas.problem import Problem
from gemmlab.blas.request import Request
from gemmlab.caches import Notes
from gemmlab.catalog import NARROW, Limits, find
from gemmlab.generate import choice, ranking, selection
from gemmlab.generate.candidates import KERNELS, candidates
from gemmlab.measurement import tuned

LIMITS = Limits("a GPU", 1024, (1024, 1024, 64), 48 * 1024)
SHAPES = [
    (1, 1, 1),
    (1, 5000, 700),
    (5000, 1, 700),
    (10, 246, 10685),
    (64, 64, 64),
    (1000, 1000, 1000),
    (4097,) * 3,
]


@pytest.fixture
def gpu(any_device):
    """A device as the constants know it."""
    features = frozenset({"nvidia", "tensor", "warpgroups"})
    facts = {
        "name": "NVIDIA H200",
        "platform": "NVIDIA CUDA",
        "kind": "GPU",
        "units": 132,
        "limits": LIMITS,
    }
    return dataclasses.replace(any_device, features=features, **facts)


@pytest.fixture(autouse=True)
def own_notes(tmp_path, monkeypatch):
    monkeypatch.setattr(choice, "winners", Notes(str(tmp_path / "choices.json")))
    choice._winners.cache_clear()
    choice.choose.cache_clear()
    yield
    choice._winners.cache_clear()
    choice.choose.cache_clear()


@pytest.mark.parametrize("precision", selection.PRECISIONS)
@pytest.mark.parametrize("sizes", [*SHAPES, *random_shapes(20, 5, 2e12)], ids=str)
def test_every_shape_has_a_legal_kernel(gpu, sizes, precision):
    offered = candidates(gpu, sizes, precision)
    for kernel, params in offered:
        assert find(kernel).problems(dict(params), LIMITS) == [] and kernel in KERNELS.values()
        assert ranking.work((kernel, params), sizes).groups >= 1
    assert len(set(offered)) == len(offered)
    order = choice.ranked(gpu, sizes, precision)
    assert order and all(one.seconds > 0 for one in order)
    assert [one.seconds for one in order] == sorted(one.seconds for one in order)
    best = choice._best(order).choice
    plain = best if find(best[0]).tensor else choice.known(gpu).timed.get(sizes, best)
    assert choice.choose(gpu, sizes, precision=precision) == plain
    assert {one.choice for one in order} <= {*offered, *candidates(gpu, sizes)}


def test_sizes_that_were_recorded_take_the_quickest_of_the_record(gpu):
    """On a device of the same name; the constants alone serve others."""
    facts = choice.known(gpu)
    assert facts.timed and (1024, 1024, 1024) in facts.timed
    for sizes, taken in facts.timed.items():
        assert (
            choice.choose(gpu, sizes) == taken
            and find(taken[0]).problems(dict(taken[1]), LIMITS) == []
        )
        assert "exactly these sizes" in choice.explain(gpu, sizes[1], sizes[0], sizes[2]).why
    other = dataclasses.replace(gpu, name="NVIDIA Another", units=66)
    for sizes in facts.timed:
        assert choice.choose(other, sizes) == choice.ranked(other, sizes)[0].choice


def test_the_model_knows_what_costs_time(gpu):
    """Twice the work takes about twice the time, and half the compute units take longer."""
    known = choice.known(gpu)
    taken = choice.choose(gpu, (4096, 4096, 4096))
    times = [
        ranking.seconds(
            ranking.work(taken, (4096, 4096, k)), known.texts[ranking.text_of(taken)], known.chip
        )
        for k in (4096, 8192)
    ]
    assert 1.8 < times[1] / times[0] < 2.2
    half = known.chip._replace(units=66)
    work = ranking.work(
        (taken[0], tuple((dict(taken[1]) | {"GROUPS": 0}).items())), (4096, 4096, 4096)
    )
    slow, fast = (
        ranking.seconds(work, known.texts[ranking.text_of(taken)], chip)
        for chip in (half, known.chip)
    )
    assert slow > 1.5 * fast


def test_narrow_results_and_large_ones_take_different_kernels(gpu):
    assert choice.choose(gpu, (1, 4000, 4000))[0] == NARROW.number
    assert choice.choose(gpu, (4000, 4000, 4000))[0] == KERNELS["warp_tiling"]


def test_small_products_in_tf32_are_multiplied_in_float32(gpu):
    """Tensor cores save less there than a look at the operands takes; large products keep them."""
    for precision in ("tf32", "tf32x3"):
        assert choice.choose(gpu, (300, 300, 300), precision=precision) == choice.choose(
            gpu, (300, 300, 300)
        )
        assert find(choice.choose(gpu, (4096, 4096, 4096), precision=precision)[0]).tensor
        assert "float32" in str(choice.explain(gpu, 300, 300, 300, precision))


def test_no_product_in_tf32_takes_less_than_the_look_and_the_host(gpu):
    start, element, host = choice.known(gpu).check
    for m, n, k in ((300, 300, 300), (4096, 4096, 4096)):
        look = start + element * (m + n) * k
        order = choice.ranked(gpu, (m, n, k), "tf32x3")
        assert all(one.seconds >= look + host for one in order if find(one.choice[0]).tensor)
        assert order[0].seconds > 2 * look or not find(order[0].choice[0]).tensor


def test_tf32_has_to_be_clearly_quicker(gpu):
    """At these sizes the model says by how much, and a call on an H200 was slower."""
    order = choice.ranked(gpu, (4939, 627, 760), "tf32")
    plain = choice.ranked(gpu, (4939, 627, 760))[0]
    assert find(order[0].choice[0]).tensor and order[0].seconds < plain.seconds
    assert choice.choose(gpu, (4939, 627, 760), precision="tf32") == plain.choice
    assert "too close" in choice.explain(gpu, 627, 4939, 760, "tf32").why


def test_work_is_shared_as_the_menu_has_it_unless_that_is_clearly_slower(gpu):
    known = choice.known(gpu)

    def on_the_menu(one):
        return ranking.sharing(one.choice, gpu.units) in known.ways[ranking.text_of(one.choice)]

    few, long = choice.ranked(gpu, (1000, 1000, 1001)), choice.ranked(gpu, (27, 1, 1742))
    assert all(map(on_the_menu, few)) and not on_the_menu(long[0])
    assert long[0].seconds < 0.5 * min(one.seconds for one in long if on_the_menu(one))


def test_where_float32_is_quicker_a_precision_changes_nothing(gpu, monkeypatch):
    """Trials and records of float32 count there, too."""
    sizes = (512, 512, 512)
    assert (
        choice.known(gpu).timed[sizes]
        == choice.choose(gpu, sizes, precision="tf32x3")
        == choice.choose(gpu, sizes)
    )
    winner = choice.ranked(gpu, sizes)[1].choice
    choice.record_winner(gpu, sizes, "float32", winner)
    assert choice.choose(gpu, sizes, precision="tf32x3") == choice.choose(gpu, sizes) == winner


def test_a_batch_takes_tiles_that_fill_the_units(gpu, any_device):
    """64 products of 256 x 256 are 128 tiles of 256 x 128: one for nearly each of 132 units, with
    none left over.
    """
    (_, params), *others = choice.ranked_for_batch(gpu, (256, 256, 256), 64)
    tile = dict(params)
    assert (tile["TSM"], tile["TSN"], tile["GROUPS"]) == (256, 128, 0) and len(others) > 3
    (_, params), *_ = choice.ranked_for_batch(gpu, (32, 32, 32), 1000)
    assert dict(params)["TSM"] * dict(params)["TSN"] <= 32 * 32
    assert choice.ranked_for_batch(any_device, (30, 40, 50), 9) == [
        choice.choose(any_device, (90, 120, 50))
    ]


def test_devices_without_constants_take_the_table(any_device):
    for sizes in SHAPES:
        assert choice.ranked(any_device, sizes) == []
        assert choice.choose(any_device, sizes) == selection.choose(any_device, sizes)
    told = choice.explain(any_device, 100, 200, 300)
    assert (told.kernel, tuple(told.params.items())) == selection.choose(
        any_device, (200, 100, 300)
    )
    assert "100 x 200 x 300" in str(told) and str(any_device) in told.why
    with pytest.raises(ValueError, match="no constants"):
        gemmlab.tune([(8, 8, 8)], device=any_device)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((8, 8, 0), "k must be a positive whole number, not 0"),
        ((8, 8.5, 8), "n must be a positive whole number, not 8.5"),
        (("8", 8, 8), "m must be a positive whole number, not '8'"),
        ((8, 8, 8, None, "tf16"), "precision must be one of"),
        ((8, 8, 8, None, "tf32"), "tensor cores"),
    ],
)
def test_what_cannot_be_chosen_or_tuned(arguments, said, any_device):
    m, n, k, device, precision = (*arguments, None, "float32")[:5]
    if precision == "tf32":
        any_device = dataclasses.replace(any_device, features=any_device.features - {"tensor"})
    with pytest.raises(ValueError, match=said):
        gemmlab.auto(m, n, k, any_device, precision)
    with pytest.raises(ValueError, match=said):
        gemmlab.tune([(m, n, k)], any_device, precision)


@pytest.mark.parametrize("shape", [(4, 5), 4, "abc", (4, 5, 6, 7)])
def test_what_is_no_shape(shape, any_device):
    with pytest.raises(ValueError, match="shapes must hold m, n and k"):
        gemmlab.tune([shape], any_device)


def test_the_winner_of_a_trial_is_remembered(gpu, monkeypatch):
    """For shapes of its class, in later sessions too, and until the caches are cleared."""
    sizes, asked = (1000, 1004, 1008), []

    def seconds(device, sizes, taken):
        asked.append(taken)
        return -len(asked)  # the last one wins

    monkeypatch.setattr(trials, "seconds", seconds)
    before = choice.choose(gpu, sizes)
    winner = trials.try_out(gpu, sizes)
    assert 1 < len(asked) <= trials.BEST and asked[0] == before and asked[-1] == winner != before
    assert trials.try_out(gpu, sizes) == winner and len(asked) <= trials.BEST, (
        "it was not tried again"
    )
    choice._winners.cache_clear()  # the next session
    assert choice.choose(gpu, sizes) == choice.choose(gpu, (1004, 1000, 1012)) == winner
    assert (
        choice.choose(gpu, (500, 1000, 1000)) != winner
        and choice.choose(gpu, (1001, 1004, 1008)) != winner
    )
    assert "timed" in choice.explain(gpu, 1004, 1000, 1008).why
    choice.winners.write(next(iter(choice.winners.read())), ["warp_tiling", {"TSM": 7}])
    choice._winners.cache_clear()
    choice.choose.cache_clear()
    assert choice.choose(gpu, sizes) == before, "what is not legal is no winner"
    choice.winners.forget()
    assert choice.winners.read() == {}


def test_tuning_ahead_tries_each_class_once(gpu, monkeypatch):
    asked = []
    monkeypatch.setattr(trials, "seconds", lambda device, sizes, taken: asked.append(sizes) or 1.0)
    monkeypatch.setattr(tuned, "compile_ahead", lambda device, choices: asked.append(len(choices)))
    monkeypatch.setattr(tuned, "find_device", lambda device: gpu)
    told = gemmlab.tune([(100, 200, 300), (101, 201, 301), (1000, 1000, 1000)], device=gpu)
    assert asked[0] > 1 and {*asked[1:]} == {(200, 100, 300), (201, 101, 301), (1000, 1000, 1000)}
    assert [(one.m, one.n, one.k) for one in told] == [
        (100, 200, 300),
        (101, 201, 301),
        (1000, 1000, 1000),
    ]


def test_matmul_tries_only_if_it_is_asked_to(any_device, monkeypatch):
    tried = []
    monkeypatch.setattr(trials, "try_out", lambda *arguments: tried.append(arguments))
    gpu = dataclasses.replace(any_device, kind="GPU")  # CPUs have one packed kernel
    for value, count in (("", 0), ("0", 0), ("1", 1)):
        monkeypatch.setenv("GEMMLAB_TUNE", value)
        routes.choose(
            Request(), np.dtype("f4"), Problem.compact(64, 64, 64), None, gpu, any_device.context
        )
        assert len(tried) == count


def test_a_trial_times_a_candidate(any_device):
    params = find(1).validate({"TS": 4})
    assert 0 < trials.seconds(any_device, (16, 12, 8), (1, tuple(params.items()))) < 60


@pytest.mark.parametrize("text", ["", "[]", "{", "null"])
def test_notes_that_cannot_be_read_are_none(text):
    choice.winners.file.write_text(text)
    assert choice.winners.read() == {}
    choice.winners.write("a", 1)
    assert json.loads(choice.winners.file.read_text()) == {"a": 1}


@pytest.mark.parametrize("rows", [0, 1])
def test_a_narrow_product_is_exact(first_device, rows):
    """With tiles shared by work-groups, and at sizes that fill none."""
    params = {"ROWS": rows, "LINES": 2, "TSK": 32, "WIDTH": 1, "WPT": 1, "GROUPS": 5}
    for few, side, k in ((1, 1, 1), (2, 33, 100), (3, 70, 65)):
        m, n = (side, few) if rows else (few, side)
        a, b = check.exact_inputs(m, n, k)
        c = gemmlab.matmul(a, b, kernel="narrow", params=params, device=first_device)
        assert check.exact(c, a, b).ok, (m, n, k)


def test_what_narrow_refuses_it_refuses_in_words():
    for params, words in (
        ({"WIDTH": 2}, "WIDTH"),
        ({"TSK": 100, "ROWS": 1}, "TSK"),
        ({"LINES": 33}, "LINES"),
    ):
        with pytest.raises(gemmlab.ParameterError, match=words):
            NARROW.validate(params)
