"""Ceilings: by hand for some kernels, over all records as bounds, and what is refused."""

import numpy as np
import pytest

from gemmlab import ParameterError, catalog, model
from gemmlab.ladder import sources
from gemmlab.measurement import landscape, records, rungs
from gemmlab.model.costs import line_turns, local_turns


def per_multiply_add(name: str, *args, **options) -> float:
    """A count of `Phase` per multiply-add of a warp, between the beginning and the end."""
    c = model.costs(*args, **options)
    cost, adds = (c.total(n, 2 * c.steps) - c.total(n, c.steps) for n in (name, "arithmetic"))
    return cost / adds


def ceiling(resource, *args, **options):
    return next(c for c in model.ceilings(*args, **options) if c.resource == resource)


# Counts per multiply-add of a warp, by hand from the kernels' texts


def test_kernel_1_by_hand():
    """Two loads, each one turn of the L1 cache; 4 sectors for a column of 32 floats of A, 1 for the
    float of B.
    """
    counts = {"arithmetic": 1, "loads": 2, "local_turns": 0, "global_turns": 2, "sectors": 5}
    assert {name: per_multiply_add(name, 1, {"TS": 32}) for name in counts} == counts
    assert model.ceilings(1)[0].resource == "L1 cache"
    assert model.ceilings(1)[0].share == pytest.approx(1 / (4 * 2), rel=1e-3)  # C is stored once
    assert ceiling("instruction issue", 1).share == pytest.approx(1 / 3, rel=1e-3)


@pytest.mark.parametrize("ts", (16, 32))
def test_kernel_2_by_hand(ts):
    """Two local loads, and per TS multiply-adds a load from A and B each, and a store to either
    tile.

    With TS = 16 a warp loads from two columns at a time, so from two lines of the L1 cache.
    """
    given, lines = (2, {"TS": ts}), 32 // ts
    assert per_multiply_add("local_turns", *given) == 2 + 2 / ts
    assert per_multiply_add("global_turns", *given) == 2 * lines / ts
    assert per_multiply_add("loads", *given) == 2 + 4 / ts
    by_hand = 1 / (4 * (2 + (2 + 2 * lines) / ts))
    assert ceiling("local memory", *given).share == pytest.approx(by_hand, rel=1e-3)
    # The K40m has 6 warps of multiply-adds per cycle, and another path for loads from global memory
    by_hand = 1 / (6 * (2 + 2 / ts))
    assert ceiling("local memory", *given, model.K40M).share == pytest.approx(by_hand, rel=1e-3)


#: Turns per access that were measured on an H200, for vectors of 1, 2 and 4 floats, by which vector
#: each lane reads.
MEASURED = {
    "different": (lambda lane: lane, (1, 2, 4)),
    "same": (lambda lane: 0 * lane, (1, 1, 1)),
    "pairs share": (lambda lane: lane // 2, (1, 1, 2)),
    "fours share": (lambda lane: lane // 4, (1, 1, 1)),
    "eights share": (lambda lane: lane // 8, (1, 1, 1)),
    "8 in turn": (lambda lane: lane % 8, (1, 2, 2)),
    "16 in turn": (lambda lane: lane % 16, (1, 2, 4)),
    "stride 2": (lambda lane: lane * 2 % 32, (1, 4, 8)),
}


@pytest.mark.parametrize("pattern", MEASURED)
def test_turns_are_those_that_were_measured(pattern):
    which, turns = MEASURED[pattern]
    lanes = which(np.arange(32))
    counted = tuple(local_turns(lanes[None] * 4 * width, 4 * width) for width in (1, 2, 4))
    assert counted == turns


#: Lines, floats from one to the next, whether they are aligned, and turns.
LINES = [(1, 32, True, 1), (8, 32, True, 8), (8, 36, True, 2), (8, 48, True, 4)]
LINES += [(16, 12, True, 2), (4, 36, False, 1), (32, 36, False, 8)]


@pytest.mark.parametrize(("lines", "apart", "aligned", "turns"), LINES)
def test_turns_of_the_l1_cache(lines, apart, aligned, turns):
    """A warp wants a float of each of some lines. On an H200 lines of one bank took as many turns
    as there are lines; 2, 4, 8 and 32 in different banks took 1.1, 1.4, 2.4 and 8.2 times as long
    as one. Within a column, too, words that lie some lines apart may be of different banks.
    """
    lanes = np.arange(32) // (32 // lines) * apart * 4
    assert line_turns(lanes[None], 4, 1, aligned) == turns


@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", catalog)
def test_every_kernel_of_the_ladder_has_ceilings(number):
    if catalog[number].tensor:
        with pytest.raises(ValueError, match=f"kernel {number} multiplies on tensor cores"):
            model.ceilings(number)
        return
    ceilings = model.ceilings(number)
    assert all(0 < c.low <= c.share <= 1 for c in ceilings)
    assert [c.share for c in ceilings] == sorted(c.share for c in ceilings)
    assert all(c.sentence.endswith(".") and str(c) == c.sentence for c in ceilings)
    assert model.ceilings(number, fewest=True)[0].share >= ceilings[0].share


def test_formulas_of_the_chip():
    """Bytes, latency and work-groups by hand, for kernel 2 on 4 multiprocessors."""
    sizes = {"groups": 2, "local_memory": 65536, "units": 4, "lanes": 32, "work_items": 1024}
    rates = {"ghz": 1.0, "issued": 1, "l2_bytes": 64, "bandwidth": 16, "latency": 400}
    chip = model.Chip("toy", **sizes, **rates)
    assert chip.gflops == 2 * 4 * 32
    ceilings = {c.resource: c for c in model.ceilings(2, {"TS": 32}, chip, 160)}
    assert ceilings["work-groups"].share == 25 / (7 * 4)
    ideal = 160**3 / (4 * 32)
    sectors = 25 * (160 * 2 * 32 // 8 + 32 * 4)  # two tiles of 32 floats per step, and C once
    assert ceilings["global memory"].low == pytest.approx(ideal / (sectors * 32 / 16))
    assert ceilings["global memory"].share == pytest.approx(
        min(1, ideal / (3 * 4 * 160 * 160 / 16))
    )
    # One work-group at a time: per tile a wait with its 4 accesses per warp, and 32 x 2 turns per
    # warp.
    warps = 32
    loading = 4 * warps + 2 * warps / 2  # instructions: 2 loads, 2 stores; the barrier
    assert ceilings["latency"].share == pytest.approx(
        32 * warps / (400 + loading + warps * 32 * 3 + warps / 2), rel=0.02
    )


# Records


def recorded_rates():
    """Every recorded rate of a known chip: chip, kernel, params, size, GFLOPS, where from."""
    for series in ("ladder", "auto"):
        for row in records.rows(series=series, metric="GFLOPS"):
            chip, spec = landscape.chip_of(row.device), catalog[row.kernel]
            if chip and not spec.tensor and spec.defaults.keys() >= row.params.keys():
                sizes = row.m, row.n, row.k
                yield chip, row.kernel, row.params, sizes, row.gflops, chip.name
    for row in records.rows(series="OpenCL and CUDA", variant="CUDA"):
        yield model.H200, row.kernel, row.params, row.size, row.gflops, "CUDA"


@pytest.mark.system
def test_no_recorded_rate_is_above_its_ceiling():
    """Without merged loads some are, where a compiler is known to merge them."""
    above, compared = set(), 0
    for chip, kernel, params, sizes, rate, where in recorded_rates():
        explained = model.explain(kernel, params, chip, rate, sizes)
        assert explained.share <= explained.roof.share, (where, str(explained))
        compared += 1
        if explained.fewest:
            above.add((where, kernel))
    assert compared > 70
    # CUDA's compiler merges them by itself, OpenCL's where the text aligns the tiles
    assert {kernel for _, kernel in above} == {2, 3, 4, 5, 12}


# Bad input


def test_bad_input_is_refused_in_words():
    for recorded in (rungs.rungs, rungs.rates):
        with pytest.raises(ValueError, match="chip must be one of H200, K40m, not 'H300'"):
            recorded("H300")
    with pytest.raises(ValueError, match="k must be a positive whole number, not 2.5"):
        model.ceilings(2, size=(8, 8, 2.5))
    with pytest.raises(TypeError, match="chip must be a gemmlab.model.Chip"):
        model.ceilings(2, chip="H200")
    with pytest.raises(ParameterError):
        model.ceilings(2, {"TS": 0})
    with pytest.raises(ValueError, match="measured must be a rate in GFLOPS above 0, not 0"):
        model.explain(2, measured=0)
    impossible = model.explain(2, {"TS": 32}, model.H200, 60_000)
    assert impossible.gap < 0 and "wrong" in impossible.why[0]
    with pytest.raises(ValueError):  # a text that is no kernel
        model.ceilings(2, source="__kernel void gemm(")


def test_an_edited_text_has_its_own_ceilings():
    """Reading B's tile once more costs turns."""
    text = sources.read(catalog[2].file)
    greedy = text.replace("* Btile[tn][k];", "* Btile[tn][k] + 0*Btile[tn][k];")
    assert per_multiply_add("local_turns", 2, {"TS": 16}, greedy) > 2.5
    own, edited = (rungs.allowed(2, {"TS": 16}, source=x).gflops for x in (text, greedy))
    assert edited < own == rungs.allowed(2, {"TS": 16}).gflops
    stopped = text.replace("Atile[tn][tm] = A", "Atile[tn + 32][tm] = A")
    with pytest.raises(ValueError, match="cannot be counted, because it stopped"):
        model.costs(2, {"TS": 16}, stopped)
