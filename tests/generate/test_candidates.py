"""kernel="auto" for float32 and TF32: legal at any shape, the fastest by the model or on record."""

import dataclasses

import pytest
from compare import random_shapes
from texts import H200

import gemmlab
from gemmlab import catalog, check, matmul
from gemmlab.caches import Notes
from gemmlab.generate import candidates
from gemmlab.ladder import Limits, find
from gemmlab.measurement import tuned

ROOMY = Limits("a roomy device", 8192, (8192,) * 3, 2**20)
SHAPES = [(1, 1, 1), (1, 5000, 700), (5000, 1, 700), (10, 246, 10685), (64, 64, 64), (4097,) * 3]
SHAPES += [(40_000, 50_000, 99)]


@pytest.fixture
def gpu(any_device):
    """A device as the constants know it."""
    return dataclasses.replace(any_device, **H200)


@pytest.fixture
def cpu(any_device):
    """A device without a model."""
    return dataclasses.replace(any_device, kind="CPU", platform="Any", features=frozenset())


@pytest.fixture(autouse=True)
def own_notes(tmp_path, monkeypatch, fresh):
    monkeypatch.setattr(candidates, "winners", Notes(str(tmp_path / "choices.json")))


# By the model


@pytest.mark.parametrize("precision", candidates.IMPLIED)
@pytest.mark.parametrize("sizes", [*SHAPES, *random_shapes(20, 5, 2e12)], ids=str)
def test_every_shape_has_legal_candidates_and_the_best_is_chosen(gpu, sizes, precision):
    order = candidates.ranked(gpu, sizes, precision)
    assert order and len({one.setting for one in order}) == len(order)
    for (kernel, params), seconds, work in order:
        assert find(kernel).problems(dict(params), gpu.limits) == []
        assert seconds > 0 and work.groups >= 1
    if precision == "float32":
        assert [one.seconds for one in order] == sorted(one.seconds for one in order)
    assert candidates.kernel_for(gpu, sizes, precision=precision) == order[0].setting


def test_the_kernel_suits_the_result(gpu):
    assert candidates.kernel_for(gpu, (1, 4000, 4000))[0] == "narrow"
    for side in (4000, 20_000, 100_000):
        kernel, params = candidates.kernel_for(gpu, (side,) * 3)
        assert kernel == "warp_tiling" and dict(params)["TSM"] * dict(params)["TSN"] >= 8192
    assert candidates.kernel_for(gpu, (65_536,) * 3, precision="tf32x3")[0] == "warpgroups"


def test_tf32_has_to_be_clearly_faster_than_float32(gpu):
    """With the range check and the host's time between two checks."""
    start, element, host = candidates.model(gpu).check
    for precision in ("tf32", "tf32x3"):
        small, large = (300, 300, 300), (4096, 4096, 4096)
        assert candidates.kernel_for(gpu, small, precision=precision) == candidates.kernel_for(
            gpu, small
        )
        assert find(candidates.kernel_for(gpu, large, precision=precision)[0]).tensor
        for m, n, k in (small, large):
            chosen = gemmlab.auto(n, m, k, gpu, precision)
            times = [one.seconds for one in chosen.candidates]
            assert times == sorted(times) and "Request(" not in str(chosen)
            look = start + element * (m + n) * k
            order = candidates.ranked(gpu, (m, n, k), precision)
            assert all(x.seconds >= look + host for x in order if find(x.setting[0]).tensor)
    close = 0
    for k in range(300, 6000, 300):
        best = min(candidates.ranked(gpu, (528, 2088, k), "tf32"), key=lambda one: one.seconds)
        plain, *_ = candidates.ranked(gpu, (528, 2088, k))
        if find(best.setting[0]).tensor and candidates.CLEARLY * best.seconds > plain.seconds:
            assert candidates.kernel_for(gpu, (528, 2088, k), precision="tf32") == plain.setting
            told = gemmlab.auto(2088, 528, k, gpu, "tf32")
            (running,) = [line for line in str(told).splitlines() if line.startswith("*")]
            assert told.candidates[0] == best != plain and plain.setting[0] in running
            assert "TF32" in told.why, "why it is not the first that runs"
            close += 1
    assert close, "no product shows it"


def test_a_batch_takes_tiles_that_fill_the_units(gpu, cpu):
    """64 products of 256 x 256 are 128 tiles of 256 x 128, for 132 units."""
    order = candidates.ranked(gpu, (256, 256, 256), number=64)
    tile, *others = (dict(one.setting[1]) for one in order)
    assert (tile["TSM"], tile["TSN"]) == (256, 128) and len(others) > 3
    assert all(one["GROUPS"] == 0 for one in (tile, *others))
    assert [one.seconds for one in order] == sorted(one.seconds for one in order)
    tile = dict(candidates.ranked(gpu, (32, 32, 32), number=1000)[0].setting[1])
    assert tile["TSM"] * tile["TSN"] <= 32 * 32
    assert candidates.ranked(cpu, (30, 40, 50), number=9) == []


# By trials


def test_the_winner_of_a_trial_is_remembered(gpu, monkeypatch):
    """For shapes of its class, in later sessions."""
    sizes, apart, timed = (1000, 1004, 1008), (4000, 4000, 4000), []

    def seconds(device, sizes, one):
        timed.append(one)
        return 1 / len(timed)  # the last one wins

    monkeypatch.setattr(tuned, "seconds", seconds)
    before = candidates.kernel_for(gpu, sizes)
    (told,) = gemmlab.tune([(1004, 1000, 1008)], gpu)
    winner = timed[-1]
    assert 1 < len(timed) <= tuned.BEST and timed[0] == before != winner
    assert (told.kernel, told.params) == (winner[0], dict(winner[1])) and "timed" in told.why
    candidates.model.cache_clear()  # the next session
    assert (
        candidates.kernel_for(gpu, sizes)
        == candidates.kernel_for(gpu, (1004, 1000, 1012))
        == winner
    )
    assert candidates.kernel_for(gpu, apart) != winner
    (key,) = candidates.winners.read()
    candidates.winners.write(key, ["warp_tiling", {"TSM": 7}])
    candidates.model.cache_clear()
    assert candidates.kernel_for(gpu, sizes) == before, "what is not legal is no winner"


def test_a_trial_times_a_candidate(any_device):
    params = find(1).validate({"TS": 4})
    assert 0 < tuned.seconds(any_device, (16, 12, 8), (1, tuple(params.items()))) < 60
    assert tuned.seconds(any_device, (16, 12, 8), (1, (("TS", 10**6),))) == float("inf")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((8, 8, 0), "k must be a positive whole number, not 0"),
        (("8", 8, 8), "m must be a positive whole number, not '8'"),
        ((8, 8, 8, "tf16"), "precision must be one of"),
        ((8, 8, 8, "tf32"), "tensor cores"),
    ],
)
def test_what_cannot_be_chosen_or_tuned(arguments, words, any_device):
    m, n, k, precision = (*arguments, "float32")[:4]
    device = dataclasses.replace(any_device, features=any_device.features - {"tensor"})
    with pytest.raises(ValueError, match=words):
        gemmlab.auto(m, n, k, device, precision)
    with pytest.raises(ValueError, match=words):
        gemmlab.tune([(m, n, k)], device, precision)
    with pytest.raises(ValueError, match="shapes must hold"):
        gemmlab.tune([(4, 5)], device)
    with pytest.raises(ValueError, match="dtype must be one of float32, .*, not int32"):
        gemmlab.auto(8, 8, 8, device, dtype="int32")


# By the nearest row


@pytest.mark.parametrize(
    "kind", [k for k, entry in candidates.table().items() if "kernels" in entry]
)
@pytest.mark.parametrize("edges", candidates.EDGE_KERNELS)
def test_rows_of_the_table_are_legal_and_the_nearest_is_taken(kind, edges, any_device):
    kinds = {"nvidia": ("GPU", "NVIDIA CUDA"), "intel": ("CPU", "Intel"), "pocl": ("CPU", "Any")}
    facts = dict(zip(("kind", "platform"), kinds[kind], strict=True))
    device = dataclasses.replace(any_device, limits=ROOMY, **facts)
    assert candidates.kind_of(device.platform, device.kind) == kind and candidates.kernel_rows(
        kind, edges
    )
    for row in candidates.kernel_rows(kind, edges):
        spec = find(row["kernel"])
        assert spec.problems(row["params"], ROOMY) == [] and row["gflops"] > 0
        assert spec.edges == edges
        found = candidates.nearest(device, candidates.dimensions(row["size"]), edges)
        assert found == (row["kernel"], tuple(row["params"].items()))


def test_devices_without_a_model_take_the_table(any_device, cpu):
    for sizes in SHAPES:
        assert candidates.ranked(cpu, sizes) == []
        assert candidates.kernel_for(cpu, sizes) == candidates.nearest(cpu, sizes, "pad")
    with pytest.raises(ValueError, match="no constants"):
        gemmlab.tune([(8, 8, 8)], device=cpu)
    tiny = Limits("a tiny device", 16, (16, 16, 16), 1024, 1, asynchronous=False)
    tiny = dataclasses.replace(any_device, kind="GPU", platform="AMD", limits=tiny)
    assert candidates.kind_of(tiny.platform) == "gpu"
    for edges, expected in (("pad", 3), ("guard", 12), ("auto", 3)):
        number, params = candidates.kernel_for(tiny, (512, 512, 512), edges)
        assert number == expected and catalog[number].problems(dict(params), tiny.limits) == []


def test_a_strategy_that_does_not_support_a_size_names_one_that_does(device):
    a, b = check.exact_inputs(3, 200, 50)
    with pytest.raises(ValueError, match="3 rows of a and 200 columns.*edges='pad'"):
        matmul(a, b, edges="shift", device=device)
    with pytest.raises(ValueError, match="m=3 is less"):
        matmul(a, b, kernel=13, device=device)
