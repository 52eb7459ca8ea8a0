"""What pictures and chapters ask of a run: products, loads, races, touches, segments, transposes.
No device needed.
"""

import itertools
from functools import cache

import numpy as np
import pytest
from conftest import FULL
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from texts import without_barrier

from gemmlab import catalog, model, simulate
from gemmlab.catalog import sources
from gemmlab.draw import diagram
from gemmlab.simt import EVENT, views


def blocks(tsm, tsn, tsk, wptm, wptn, **more):
    """Parameters of kernels 6 to 10."""
    return {"TSM": tsm, "TSN": tsn, "TSK": tsk, "WPTM": wptm, "WPTN": wptn, "UNROLL": 1, **more}


def direct(rx, ry, rk, width, gx, gy):
    """Parameters of kernel 11."""
    return {"RX": rx, "RY": ry, "RK": rk, "WIDTH": width, "GX": gx, "GY": gy}


#: Kernel, parameters, and M, N, K in tiles, so that M, N and K differ: a mixed-up size cannot go
#: unseen.
CASES = [
    (1, {"TS": 1}, (3, 2, 5)),
    (1, {"TS": 4}, (2, 1, 3)),
    (2, {"TS": 2}, (1, 3, 2)),
    (2, {"TS": 8}, (1, 2, 3)),
    (3, {"TS": 4, "WPT": 1}, (1, 2, 3)),
    (3, {"TS": 6, "WPT": 3}, (3, 1, 2)),
    (3, {"TS": 8, "WPT": 8}, (2, 3, 1)),
    (4, {"TS": 4, "WIDTH": 4}, (1, 3, 2)),
    (4, {"TS": 8, "WIDTH": 4}, (2, 1, 3)),
    (5, {"TS": 6, "TSK": 4, "WPT": 3, "PAD": 2}, (1, 2, 2)),
    (5, {"TS": 8, "TSK": 3, "WPT": 8, "PAD": 1}, (1, 2, 2)),
    (6, blocks(6, 6, 4, 3, 2, PAD=1), (1, 2, 2)),
    (6, blocks(8, 8, 4, 2, 4, PAD=2), (2, 1, 3)),
    (7, blocks(6, 6, 4, 3, 2, WIDTH=1), (1, 2, 2)),
    (7, blocks(8, 8, 4, 4, 2, WIDTH=4), (2, 1, 3)),
    (8, blocks(8, 8, 4, 4, 2, WIDTH=4, READONLY=0, SHUFFLE=0), (1, 2, 3)),
    (9, blocks(4, 4, 2, 2, 2, WIDTH=2), (2, 1, 3)),
    (9, blocks(6, 6, 4, 3, 2, WIDTH=1), (1, 2, 1)),
    (10, blocks(8, 4, 4, 2, 2, WIDTH=2), (1, 1, 3)),
    (10, blocks(8, 16, 4, 4, 4, WIDTH=2), (3, 2, 1)),
    (11, direct(2, 3, 1, 2, 2, 1), (2, 1, 5)),
    (11, direct(16, 2, 1, 16, 1, 2), (1, 2, 7)),
]
#: As in CASES, and a barrier of the kernel; only where it protects something: several tiles,
#: several work-items.
BARRIERS = [
    (number, params, tiles, barrier)
    for number, params, tiles in CASES
    if 2 <= number <= 10
    and tiles[2] > 1
    and np.prod(catalog[number].local_size(catalog[number].complete(params))) > 1
    for barrier in ((1,) if number in (9, 10) else (1, 2))
]


def simulated(number, params, tiles, **options):
    multiples = catalog[number].tiles(catalog[number].complete(params))
    return simulate(
        number, *(t * m for t, m in zip(tiles, multiples, strict=True)), params, **options
    )


@cache
def done_with(case):
    return simulated(*CASES[case])


def loaded(run, *names):
    return sum(run.counts.loads.get(name, 0) for name in names)


def stored(run, *names):
    return sum(run.counts.stores.get(name, 0) for name in names)


# Counts


@pytest.mark.parametrize("case", range(len(CASES)))
def test_a_run_is_the_product_with_the_loads_of_the_formulas(case):
    run, number = done_with(case), CASES[case][0]
    assert run.ok, run.verdict
    multiply_adds = run.m * run.n * run.k
    per = model.loads(number, run.params)
    assert loaded(run, "A", "B") == round(per["global"] * multiply_adds)
    assert loaded(run, "Atile", "Btile") == round(per["local"] * multiply_adds)
    assert stored(run, "C") == run.m * run.n
    assert stored(run, "Atile", "Btile") == (0 if number in (1, 11) else loaded(run, "A", "B"))
    assert model.requested_bytes(number, run.m, run.n, run.k, run.params) == pytest.approx(
        4 * (loaded(run, "A", "B") + stored(run, "C"))
    )


@pytest.mark.parametrize("case", range(len(CASES)))
def test_local_memory_is_as_large_as_the_record_says_and_all_in_use(case):
    """All but the padding at the end of each row of Btile in kernels 5 and 6."""
    run, (number, _, tiles) = done_with(case), CASES[case]
    assert sum(4 * rows * row for rows, row in run.shapes.values()) == catalog[number].local_memory(
        run.params
    )
    for name, (rows, row) in run.shapes.items():
        padding = run.params.get("PAD", 0) if name == "Btile" else 0
        inside = [i for i in range(rows * row) if i % row < row - padding]
        if number in (9, 10) and tiles[2] == 1:  # the second buffer is for the second tile
            inside = inside[: len(inside) // 2]
        assert (
            views.elements(views.select(run, name, True))
            == views.elements(views.select(run, name))
            == inside
        )


@pytest.mark.parametrize("case", range(len(CASES)))
def test_every_element_of_c_is_stored_once(case):
    run = done_with(case)
    stores = views.select(run, "C", True)
    places = [i + j for i, width in stores[["index", "width"]].tolist() for j in range(width)]
    assert sorted(places) == list(range(run.m * run.n)) == views.elements(stores)


def origins(run, group):
    """Where the floats that the work-items of a group multiply come from, from the events alone.

    {(item, array): elements of A or B in the order of that item's loads}, for the local arrays, or
    for A and B themselves where a kernel has none. A work-item stores into local memory what it has
    loaded just before.
    """
    names = {"Atile": "A", "Btile": "B"} if run.shapes else {"A": "A", "B": "B"}
    fetched, lies, found = {}, {}, {}  # by item, by place in local memory, and the result
    events = run.events(group=group)[["item", "store", "array", "index", "width"]]
    for item, store, array, index, width in events.tolist():
        places = [(array, i) for i in range(index, index + width)]
        if array in run.shapes and store:
            lies.update(zip(places, fetched[item], strict=True))
        elif not store:
            fetched[item] = places
            if array in names:
                came = [lies[place] if run.shapes else place for place in places]
                assert {name for name, _ in came} == {names[array]}
                found.setdefault((item, array), []).extend(i for _, i in came)
    return {key: np.array(indices) for key, indices in found.items()}


@pytest.mark.parametrize("case", range(len(CASES)))
def test_what_a_work_item_multiplies_are_rows_of_a_and_columns_of_b(case):
    """The run's C is not used: NumPy multiplies what the accesses name, and that is A times B."""
    run = done_with(case)
    k, steps = run.k, np.arange(run.k)[:, None]
    a, b = run.a.T.ravel(), (run.b if run.transposed else run.b.T).ravel()  # as they lie in memory
    c = np.full(run.m * run.n, np.nan)
    for group in np.unique(run.events()["group"]).tolist():
        came = origins(run, group)
        for item in {item for item, _ in came}:
            mine = views.select(run, "C", True, group=group, item=item)
            places = np.array(views.elements(mine))
            rows, columns = np.unique(places % run.m), np.unique(places // run.m)
            from_a = came[item, "Atile" if run.shapes else "A"].reshape(k, -1)
            from_b = came[item, "Btile" if run.shapes else "B"].reshape(k, -1)
            # row m of A for every row of the block, k by k
            assert np.array_equal(from_a, steps * run.m + rows)
            assert np.array_equal(
                from_b, steps * run.n + columns if run.transposed else columns * k + steps
            )
            c[places] = (a[from_a].T @ b[from_b]).T.ravel()
    assert np.array_equal(c.reshape(run.n, run.m).T, run.a @ run.b)


# Barriers


def races(run):
    return [finding for finding in run.findings if finding.kind == "race"]


@pytest.mark.parametrize(("number", "params", "tiles", "barrier"), BARRIERS)
def test_a_missing_barrier_is_a_race_in_every_order(number, params, tiles, barrier):
    text = without_barrier(number, barrier)
    for order in ("lockstep", "warps"):
        run = simulated(number, params, tiles, source=text, order=order)
        assert races(run) and not run.ok


@pytest.mark.parametrize(
    ("number", "barrier"), [(2, 1), (2, 2), (3, 1), (5, 2), (6, 1), (7, 2), (9, 1), (10, 1)]
)
def test_and_a_wrong_product_in_some_order(number, barrier):
    """With the barrier each order is right, so nothing but the barrier is to blame. It takes two
    warps.
    """
    if number < 6:
        params = (
            {"TS": 16}
            | ({"WPT": 4} if number > 2 else {})
            | ({"TSK": 16, "PAD": 1} if number == 5 else {})
        )
    else:
        params = blocks(16, 16, 8, 2, 2, **({"PAD": 1} if number == 6 else {"WIDTH": 1}))
    for source, right in ((None, True), (without_barrier(number, barrier), False)):
        runs = [
            simulated(number, params, (1, 1, 3), source=source, order="warps", seed=seed)
            for seed in range(6)
        ]
        assert all(run.exact for run in runs) == right


@pytest.mark.parametrize("barrier", (1, 2))
@pytest.mark.parametrize(
    ("number", "params"),
    [(2, {"TS": 1}), (4, {"TS": 4, "WIDTH": 4}), (6, blocks(4, 4, 4, 4, 4, PAD=1))],
)
def test_a_work_item_alone_needs_no_barrier(number, params, barrier):
    run = simulated(number, params, (2, 1, 3), source=without_barrier(number, barrier))
    alone = np.prod(catalog[number].local_size(run.params)) == 1
    assert (not races(run)) == alone
    assert run.exact or not alone


def test_the_last_barrier_does_not_matter_with_one_tile_only():
    """Barrier 2 protects the tiles from the next ones; where there is one tile it protects
    nothing.
    """
    for order in ("lockstep", "warps"):
        assert simulated(2, {"TS": 4}, (1, 1, 1), source=without_barrier(2, 2), order=order).ok


def test_the_phase_counts_barriers():
    run = simulated(2, {"TS": 2}, (1, 1, 3))
    assert set(views.select(run, "Atile", True)["phase"]) == {0, 2, 4}
    assert set(views.select(run, "Atile")["phase"]) == {1, 3, 5}
    assert set(views.select(run, "C", True)["phase"]) == {6}


@cache
def small(number):
    """Legal small parameters of a kernel, without those that change nothing here."""
    names = {5: ("TS", "TSK", "WPT", "PAD"), 11: ("RX", "RY", "RK", "WIDTH", "GX", "GY")}
    names = names.get(
        number, ("TSM", "TSN", "TSK", "WPTM", "WPTN", "PAD" if number == 6 else "WIDTH")
    )
    values = {
        "PAD": (0, 1, 2),
        "WIDTH": (1, 2, 4, 8),
        "WPTM": (1, 2, 3, 4),
        "WPTN": (1, 2, 3, 4),
        "GX": (1, 2, 3),
    }
    values |= {
        "GY": (1, 2, 3),
        "RK": (1, 2),
        "RX": (1, 2, 4, 8),
        "RY": (1, 2, 3),
        "WPT": (1, 2, 3, 4, 6),
    }
    fixed = {"UNROLL": 1} if "TSM" in names else {}
    every = itertools.product(*(values.get(name, (1, 2, 3, 4, 6, 8)) for name in names))
    every = ({**fixed, **dict(zip(names, v, strict=True))} for v in every)
    return [p for p in every if not catalog[number].problems(catalog[number].complete(p))]


@pytest.mark.parametrize("number", (5, 6, 7, 10, 11))
@settings(
    max_examples=300 if FULL else 8,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_any_small_legal_parameters(number, data):
    """Right with its barriers; racing without one, unless there is nobody to race with."""
    params = data.draw(st.sampled_from(small(number)))
    tiles = data.draw(st.tuples(*[st.integers(1, 3)] * 3))
    order = data.draw(st.sampled_from(("lockstep", "warps")))
    run = simulated(number, params, tiles, order=order, seed=data.draw(st.integers(0, 99)))
    assert run.ok, run.verdict
    multiply_adds, per = run.m * run.n * run.k, model.loads(number, params)
    assert loaded(run, "A", "B") == round(per["global"] * multiply_adds)
    assert loaded(run, "Atile", "Btile") == round(per["local"] * multiply_adds)
    if number == 11:
        return
    several = np.prod(catalog[number].local_size(run.params)) > 1
    barrier = data.draw(st.sampled_from((1,) if number == 10 else (1, 2)))
    torn = simulated(number, params, tiles, order=order, source=without_barrier(number, barrier))
    # barrier 2 protects a tile from the next one
    assert bool(races(torn)) == (several and (barrier == 1 or tiles[2] > 1))


# Touches


def test_swapped_identifiers_still_multiply_right():
    """Exchanging the two dimensions costs speed, not correctness, where M = N: the lesson on
    coalescing needs both.
    """
    text = sources.read("01_naive.cl")
    exchanged = text.replace("m = get_global_id(0)", "m = get_global_id(1)")
    exchanged = exchanged.replace("n = get_global_id(1)", "n = get_global_id(0)")
    plain, swapped = (simulate(1, 32, 32, 4, {"TS": 32}, source) for source in (text, exchanged))
    assert plain.ok and swapped.ok

    def segments(run, name, store=False):
        return views.segments(views.touches(run, name, store=store)[0])

    assert segments(plain, "A") == 4  # 32 neighbouring floats
    assert segments(plain, "B") == 1  # all the same float
    assert segments(swapped, "A") == 1
    assert segments(swapped, "B") == 32 * 4 * 4 // 32  # 4 floats apart
    assert segments(plain, "C", store=True) == 4 and segments(swapped, "C", store=True) == 32


def test_touches_have_one_row_a_load_and_one_column_a_lane():
    run = simulate(1, 16, 8, 5, {"TS": 8})
    touched = views.touches(run, "A", group=0, warp=1)
    assert touched.shape == (5, 32)
    rows, ks = touched % 16, touched // 16
    assert np.array_equal(ks, np.repeat(np.arange(5)[:, None], 32, axis=1))
    assert np.array_equal(rows[0], np.tile(np.arange(8), 4))


def test_an_array_that_nobody_touches_has_no_events():
    run = simulate(1, 16, 8, 5, {"TS": 8})
    assert (
        len(views.select(run, "Atile"))
        == len(views.select(run, "C"))
        == len(views.touches(run, "D"))
        == 0
    )


@pytest.mark.parametrize(
    ("indices", "size", "count"),
    [
        (range(32), 32, 4),
        (range(32), 128, 1),
        (range(1, 33), 32, 5),
        (range(1, 33), 128, 2),
        ([7] * 32, 32, 1),
        (range(0, 64, 2), 32, 8),
        (range(0, 32 * 100, 100), 32, 32),
        ([], 32, 0),
        (np.arange(8, dtype=np.int32), 32, 1),
    ],
)
def test_segments(indices, size, count):
    assert views.segments(indices, size) == count


def test_vectors_touch_the_segments_of_all_their_floats():
    eights = range(6, 70, 8)  # from 6 on, the third float lies in the next segment of 8
    assert [views.segments(eights, width=width) for width in (1, 2, 3, 4)] == [8, 8, 9, 9]
    sixteens = range(6, 134, 16)
    assert [views.segments(sixteens, width=width) for width in (1, 2, 3, 4)] == [8, 8, 16, 16]
    assert views.segments([0, 100], size=4, width=8) == 16


def test_elements_are_named_once_and_in_order():
    events = np.zeros(3, EVENT)
    events["index"], events["width"] = (6, 1, 5), (2, 1, 3)
    assert views.elements(events) == [1, 5, 6, 7]
    assert views.elements(events[:0]) == []


@pytest.mark.parametrize(
    ("params", "tiles"),
    [(direct(4, 2, 2, 2, 2, 1), (1, 3, 4)), (direct(8, 3, 1, 4, 1, 2), (2, 1, 5))],
)
def test_kernel_11_reads_b_as_it_lies(params, tiles):
    ways = {}
    for transposed in (0, 1):
        run = simulated(11, params | {"TRANSPOSED": transposed}, tiles)
        assert run.ok and run.transposed == bool(transposed)
        assert run.b_shape == ((run.n, run.k) if transposed else (run.k, run.n))
        assert views.elements(views.select(run, "B")) == list(range(run.k * run.n))
        ways[transposed] = run
    steps = [views.select(run, "B", item=0, group=0)["index"] for run in ways.values()]
    ry, k, n = params["RY"], ways[0].k, ways[0].n
    assert np.diff(steps[0][:ry]).tolist() == [k] * (ry - 1)  # down RY columns of B
    assert np.diff(steps[1][:ry]).tolist() == [1] * (ry - 1) and steps[1][ry] == n


# Transposes


@pytest.mark.parametrize("coalesced", (True, False))
@pytest.mark.parametrize("tile", (1, 4, 16))
@pytest.mark.parametrize("sides", ((1, 3), (3, 2)))
def test_both_transposes_transpose(sides, tile, coalesced):
    rows, cols = (tile * side for side in sides)
    run = diagram.transposed(rows, cols, tile, coalesced)
    assert run.ok and run.shapes == ({"tile": (tile, tile + 1)} if coalesced else {})
    before, after = run.arrays["in"].reshape(cols, rows).T, run.arrays["out"].reshape(rows, cols).T
    assert len(np.unique(before)) == rows * cols and np.array_equal(after, before.T)
    assert views.elements(views.select(run, "in")) == views.elements(views.select(run, "out", True))
    assert loaded(run, "in") == stored(run, "out") == rows * cols
    assert loaded(run, "tile") == stored(run, "tile") == (rows * cols if coalesced else 0)


@pytest.mark.parametrize("tile", (16, 32))
def test_only_the_transpose_with_a_tile_stores_neighbours(tile):
    """32 neighbouring floats are 4 segments of 32 bytes; tile 16 makes a warp of two rows of 2
    segments each.
    """
    tiled, naive = (diagram.transposed(64, 96, tile, coalesced) for coalesced in (True, False))
    for group, warp in itertools.product((0, 5), (0, tile * tile // 32 - 1)):
        for run in (tiled, naive):
            (loads,) = views.touches(run, "in", group, warp)
            assert len(set(loads)) == 32 and views.segments(loads) == 4
        (together,), (apart,) = (
            views.touches(run, "out", group, warp, store=True) for run in (tiled, naive)
        )
        assert len(set(together)) == len(set(apart)) == 32
        assert views.segments(together) == 4
        # the 16 or 32 rows of a warp; two neighbours each with tile 16
        assert views.segments(apart) == tile


def test_the_extra_column_of_the_tile_keeps_its_columns_out_of_one_bank():
    run = diagram.transposed(32, 32, 32)
    for warp in (0, 7, 31):
        (down,), (along,) = (
            views.touches(run, "tile", warp=warp),
            views.touches(run, "tile", warp=warp, store=True),
        )
        assert model.turns(down) == model.turns(along) == 1
        # the same column of a tile without it
        assert model.turns(down // 33 * 32 + down % 33) == 32


@pytest.mark.parametrize(("rows", "cols"), [(24, 16), (16, 24)])
def test_a_transpose_takes_whole_tiles(rows, cols):
    with pytest.raises(ValueError, match=f"{rows} x {cols} are not multiples of tile=16"):
        diagram.transposed(rows, cols)


# Warp tiling


def warps(tsm, tsn, tsk, wptm, wptn, warpm, width, stages=2, order=8):  # noqa: PLR0913
    names = ("TSM", "TSN", "TSK", "WPTM", "WPTN", "WARPM", "WIDTH", "STAGES", "ORDER")
    return dict(zip(names, (tsm, tsn, tsk, wptm, wptn, warpm, width, stages, order), strict=True))


#: One warp, two side by side, blocks of 8; several tiles in flight; whole tiles of M, N, K.
WARPS = [
    (warps(32, 16, 8, 4, 4, 8, 1), (2, 3, 2)),
    (warps(32, 32, 8, 4, 4, 8, 4, 3), (1, 2, 3)),
    (warps(64, 32, 4, 8, 8, 8, 4, 4, 2), (1, 2, 1)),
]


@pytest.mark.parametrize(("params", "tiles"), WARPS)
def test_the_loads_of_warps_are_those_of_the_formulas(params, tiles):
    run = simulated("warp_tiling", params, tiles)
    assert run.ok, run.verdict
    multiply_adds, per = run.m * run.n * run.k, model.loads("warp_tiling", params)
    assert per == {
        "global": pytest.approx(1 / params["TSM"] + 1 / params["TSN"]),
        "local": pytest.approx(1 / params["WPTM"] + 1 / params["WPTN"]),
    }
    assert loaded(run, "A", "B") == round(per["global"] * multiply_adds)
    for name in "AB":
        assert set(views.select(run, name)["width"]) == {params["WIDTH"]}
    assert sum(4 * rows * row for rows, row in run.shapes.values()) == catalog[
        "warp_tiling"
    ].local_memory(run.params)


def test_the_lanes_of_a_warp_read_neighbours():
    """The picture in the kernel's header: 8 x 4 work-items, and of each 16 floats in four
    vectors.
    """
    run = simulated("warp_tiling", warps(64, 32, 4, 8, 8, 8, 4), (1, 1, 1))
    first, second = views.touches(run, "Atile")[:2]
    assert first.tolist() == [lane % 8 * 4 for lane in range(32)]
    assert second.tolist() == [32 + lane % 8 * 4 for lane in range(32)]
    first, second = views.touches(run, "Btile")[:2]
    assert first.tolist() == [lane // 8 * 4 for lane in range(32)]
    assert second.tolist() == [16 + lane // 8 * 4 for lane in range(32)]
    held = views.select(run, "C", True, item=9)
    block = {(m, n) for m in (4, 36) for n in range(32) if n % 16 // 4 == 1}
    assert {(i % 64, i // 64) for i in held["index"].tolist()} == block and set(held["width"]) == {
        4
    }


# Tiles and banks


@pytest.mark.parametrize("number", (6, 7, 10))
def test_tiles_load_what_the_formula_says(number):
    """Counted: all loads, and operations a load."""
    params = blocks(
        8, 8 if number < 10 else 4, 4, 2, 2, **({"PAD": 1} if number == 6 else {"WIDTH": 2})
    )
    run = simulated(number, params, (2, 3, 2))
    g, h = params["TSM"], params["TSN"]
    counted = loaded(run, "A", "B")
    assert counted == (run.m / g) * (run.n / h) * (g + h) * run.k
    assert model.flops(run.m, run.n, run.k) / counted == pytest.approx(model.tile_intensity(g, h))
    local = loaded(run, "Atile", "Btile")  # and the blocks in registers, from local memory
    assert local == (run.m / 2) * (run.n / 2) * (2 + 2) * run.k
    assert model.flops(run.m, run.n, run.k) / local == model.tile_intensity(2, 2) == 2


@pytest.mark.parametrize(("pad", "narrow", "wide"), [(0, 16, 8), (1, 1, 2), (2, 2, 1)])
def test_what_padding_does_for_kernel_5(pad, narrow, wide):
    """Turns of a warp that stores B's tile, with banks of 4 and of 8 bytes: by formula, and from a
    run.
    """
    assert model.stride_turns(16 + pad, 4) == narrow and model.stride_turns(16 + pad, 8) == wide
    run = simulate(5, 32, 32, 16, {"TS": 32, "TSK": 16, "WPT": 8, "PAD": pad})
    stores = views.touches(run, "Btile", warp=0, store=True)
    assert stores.shape == (16 // (32 // 8), 32)
    assert [model.turns(row, 4) for row in stores] == [narrow] * 4
    assert [model.turns(row, 8) for row in stores] == [wide] * 4
    # nothing else conflicts: the stores and loads of A's tile lie side by side, all lanes load the
    # same float of B's
    for others in (
        views.touches(run, "Atile", store=True),
        views.touches(run, "Atile"),
        views.touches(run, "Btile"),
    ):
        assert {model.turns(row, size) for row in others for size in (4, 8)} == {1}
