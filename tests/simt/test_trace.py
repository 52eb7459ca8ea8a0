"""The replay of the kernels, the arithmetic on paper, texts and records, the order of the modules. No device needed."""

import itertools
import random
import re
from functools import cache

import numpy as np
import pytest
from conftest import FULL
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gemmlab import ParameterError, catalog, check, model
from gemmlab.bench import cuda, sweeps
from gemmlab.catalog import sources
from gemmlab.opencl import ptx
from gemmlab.simt import trace, walks, warpwalk, workitem

ORDERS = ("forward", "backward", "shuffled")


def blocks(tsm, tsn, tsk, wptm, wptn, **more):
    """Parameters of kernels 6 to 10."""
    return {"TSM": tsm, "TSN": tsn, "TSK": tsk, "WPTM": wptm, "WPTN": wptn, "UNROLL": 1, **more}


def direct(rx, ry, rk, width, gx, gy):
    """Parameters of kernel 11."""
    return {"RX": rx, "RY": ry, "RK": rk, "WIDTH": width, "GX": gx, "GY": gy}


#: Kernel, parameters, and M, N, K in tiles, so that M, N and K differ: a mixed-up size cannot go unseen.
CASES = [
    (1, {"TS": 1}, (3, 2, 5)),
    (1, {"TS": 2}, (1, 3, 7)),
    (1, {"TS": 4}, (2, 1, 3)),
    (1, {"TS": 8}, (1, 2, 5)),
    (2, {"TS": 1}, (3, 2, 4)),
    (2, {"TS": 2}, (1, 3, 2)),
    (2, {"TS": 4}, (2, 1, 3)),
    (2, {"TS": 8}, (1, 2, 3)),
    (3, {"TS": 2, "WPT": 2}, (2, 1, 3)),
    (3, {"TS": 4, "WPT": 1}, (1, 2, 3)),
    (3, {"TS": 4, "WPT": 2}, (3, 2, 1)),
    (3, {"TS": 6, "WPT": 3}, (3, 1, 2)),
    (3, {"TS": 8, "WPT": 4}, (1, 2, 3)),
    (3, {"TS": 8, "WPT": 8}, (2, 3, 1)),
    (4, {"TS": 2, "WIDTH": 1}, (3, 1, 2)),
    (4, {"TS": 4, "WIDTH": 2}, (2, 1, 3)),
    (4, {"TS": 4, "WIDTH": 4}, (1, 3, 2)),
    (4, {"TS": 8, "WIDTH": 4}, (2, 1, 3)),
    (4, {"TS": 8, "WIDTH": 8}, (1, 2, 3)),
    (5, {"TS": 4, "TSK": 2, "WPT": 2, "PAD": 0}, (2, 1, 3)),
    (5, {"TS": 6, "TSK": 4, "WPT": 3, "PAD": 2}, (1, 2, 2)),
    (5, {"TS": 8, "TSK": 4, "WPT": 4, "PAD": 1}, (2, 1, 3)),
    (5, {"TS": 4, "TSK": 8, "WPT": 1, "PAD": 2}, (1, 3, 2)),
    (5, {"TS": 8, "TSK": 3, "WPT": 8, "PAD": 1}, (1, 2, 2)),
    (6, blocks(4, 4, 2, 2, 2, PAD=0), (2, 1, 3)),
    (6, blocks(6, 6, 4, 3, 2, PAD=1), (1, 2, 2)),
    (6, blocks(8, 8, 4, 2, 4, PAD=2), (2, 1, 3)),
    (6, blocks(8, 8, 2, 8, 1, PAD=1), (1, 2, 3)),
    (7, blocks(4, 4, 2, 2, 2, WIDTH=2), (2, 1, 3)),
    (7, blocks(6, 6, 4, 3, 2, WIDTH=1), (1, 2, 2)),
    (7, blocks(8, 8, 4, 4, 2, WIDTH=4), (2, 1, 3)),
    (7, blocks(8, 8, 12, 4, 4, WIDTH=8), (1, 2, 2)),
    (8, blocks(4, 4, 6, 2, 2, WIDTH=2, READONLY=0, SHUFFLE=0), (1, 2, 2)),
    (8, blocks(8, 8, 4, 4, 2, WIDTH=4, READONLY=0, SHUFFLE=0), (1, 2, 3)),
    (8, blocks(8, 8, 8, 2, 4, WIDTH=8, READONLY=0, SHUFFLE=0), (2, 1, 3)),
    (9, blocks(4, 4, 2, 2, 2, WIDTH=2), (2, 1, 3)),
    (9, blocks(6, 6, 4, 3, 2, WIDTH=1), (1, 2, 1)),
    (9, blocks(8, 8, 4, 4, 2, WIDTH=4), (1, 2, 5)),
    (9, blocks(8, 8, 12, 4, 4, WIDTH=8), (2, 1, 2)),
    (10, blocks(8, 4, 4, 2, 2, WIDTH=2), (1, 1, 3)),
    (10, blocks(4, 12, 6, 2, 3, WIDTH=1), (2, 1, 3)),
    (10, blocks(4, 8, 8, 2, 4, WIDTH=4), (1, 3, 2)),
    (10, blocks(8, 16, 4, 4, 4, WIDTH=2), (3, 2, 1)),
    (11, direct(2, 3, 1, 2, 2, 1), (2, 1, 5)),
    (11, direct(4, 2, 2, 1, 1, 3), (1, 2, 3)),
    (11, direct(8, 1, 4, 4, 1, 2), (2, 3, 1)),
    (11, direct(16, 2, 1, 16, 1, 2), (1, 2, 7)),
]
if FULL:  # as many of the offered parameters as Python can walk in good time
    for number, spec in catalog.items():
        offered = [
            p
            for p in spec.sample(None, 1000)
            if p.get("UNROLL", 1) == 1 and not p.get("READONLY") and not p.get("SHUFFLE")
            if np.prod(spec.multiples(p)) <= 10_000 and not spec.takes_workspace  # kernel 15 has a section of its own
        ]
        CASES += [(number, p, (2, 1, 2)) for p in random.Random(0).sample(offered, min(12, len(offered)))]
#: As in CASES, and a barrier of the kernel; only where it protects something: several tiles, several work-items.
BARRIERS = [
    (number, params, tiles, barrier)
    for number, params, tiles in CASES
    if 2 <= number <= 10 and tiles[2] > 1 and np.prod(catalog[number].local_size(catalog[number].complete(params))) > 1
    for barrier in ((1,) if number in (9, 10) else (1, 2))
]


def replayed(number, params, tiles, **options):
    multiples = catalog[number].tiles(catalog[number].complete(params))
    return trace.replay(number, *(t * m for t, m in zip(tiles, multiples, strict=True)), params, **options)


# Replay


def test_the_cases_are_of_every_kernel_with_three_different_sizes():
    treated = {number for number, spec in catalog.items() if spec.edges != "pad"}  # tests/test_edges.py replays these
    assert {number for number, _, _ in CASES} | treated == set(catalog)
    assert set(walks.WALKS) == {number for number, spec in catalog.items() if not spec.tensor}
    with pytest.raises(ValueError, match="kernel 16 has no replay; there is one of 1, 2, 3"):
        trace.replay(16, 128, 128, 8)
    for number, params, tiles in CASES if not FULL else ():
        multiples = catalog[number].tiles(catalog[number].complete(params))
        assert len({t * m for t, m in zip(tiles, multiples, strict=True)}) == 3, (number, params, tiles)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("number", "params", "tiles"), CASES)
def test_a_replay_is_the_product(number, params, tiles, order):
    done = replayed(number, params, tiles, order=order, seed=3)
    verdict = check.exact(done.c, done.a, done.b)
    assert verdict.ok, verdict
    assert done.c.shape == (done.m, done.n)
    assert trace.races(done) == []


@pytest.mark.parametrize(("number", "params", "tiles"), CASES)
def test_the_order_of_the_work_items_changes_nothing_but_the_order(number, params, tiles):
    forward, backward, shuffled = (replayed(number, params, tiles, order=order).events for order in ORDERS)
    assert np.array_equal(np.sort(forward), np.sort(backward)) and np.array_equal(np.sort(forward), np.sort(shuffled))
    if np.prod(catalog[number].local_size(catalog[number].complete(params))) > 1:
        assert not np.array_equal(forward, backward)  # the orders are three indeed


@pytest.mark.parametrize(("number", "params", "tiles"), CASES)
def test_the_loads_are_those_of_the_formulas(number, params, tiles):
    done = replayed(number, params, tiles)
    multiply_adds = done.m * done.n * done.k
    per = model.loads(number, params)
    assert done.count("A", "B") == round(per["global"] * multiply_adds)
    assert done.count("Atile", "Btile") == round(per["local"] * multiply_adds)
    assert done.count("C", store=True) == done.m * done.n
    assert done.count("Atile", "Btile", store=True) == (0 if number in (1, 11) else done.count("A", "B"))
    assert model.requested_bytes(number, done.m, done.n, done.k, params) == pytest.approx(
        4 * (done.count("A", "B") + done.count("C", store=True))
    )


@pytest.mark.parametrize(("number", "params", "tiles"), CASES)
def test_local_memory_is_as_large_as_the_record_says_and_all_in_use(number, params, tiles):
    """All but the padding at the end of each row of Btile in kernels 5 and 6."""
    done = replayed(number, params, tiles)
    spec = catalog[number]
    assert sum(4 * rows * row for rows, row in done.shapes.values()) == spec.local_memory(done.params)
    for name, (rows, row) in done.shapes.items():
        padding = done.params.get("PAD", 0) if name == "Btile" else 0
        inside = [i for i in range(rows * row) if i % row < row - padding]
        if number in (9, 10) and tiles[2] == 1:  # the second buffer is for the second tile
            inside = inside[: len(inside) // 2]
        assert trace.elements(done.select(name, True)) == trace.elements(done.select(name)) == inside


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("number", "params", "tiles"), CASES)
def test_every_element_of_c_is_stored_once(number, params, tiles, order):
    done = replayed(number, params, tiles, order=order)
    stores = done.select("C", True)
    stored = [i + j for i, width in stores[["index", "width"]].tolist() for j in range(width)]
    assert sorted(stored) == list(range(done.m * done.n)) == trace.elements(stores)


def origins(done, group):
    """Where the floats that the work-items of a group multiply come from, from the events alone.

    {(item, array): elements of A or B in the order of that item's loads}, for the local arrays, or for A and B
    themselves where a kernel has none. A work-item stores into local memory what it has loaded just before.
    """
    names = {"Atile": "A", "Btile": "B"} if done.shapes else {"A": "A", "B": "B"}
    fetched, lies, found = {}, {}, {}  # by item, by place in local memory, and the result
    for _, item, _, _, store, array, index, width in done.events[done.events["group"] == group].tolist():
        places = [(array, i) for i in range(index, index + width)]
        if array in done.shapes and store:
            lies.update(zip(places, fetched[item], strict=True))
        elif not store:
            fetched[item] = places
            if array in names:
                came = [lies[place] if done.shapes else place for place in places]
                assert {name for name, _ in came} == {names[array]}
                found.setdefault((item, array), []).extend(i for _, i in came)
    return {key: np.array(indices) for key, indices in found.items()}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("number", "params", "tiles"), CASES)
def test_what_a_work_item_multiplies_are_rows_of_a_and_columns_of_b(number, params, tiles, order):
    """The replay's C is not used: NumPy multiplies what the accesses name, and that is A times B."""
    done = replayed(number, params, tiles, order=order)
    k, steps = done.k, np.arange(done.k)[:, None]
    a, b = done.a.T.ravel(), (done.b if done.transposed else done.b.T).ravel()  # as they lie in memory
    c = np.full(done.m * done.n, np.nan)
    for group in np.unique(done.events["group"]):
        came = origins(done, group)
        for item in {item for item, _ in came}:
            mine = done.select("C", True, group=group, item=item)
            stored = np.array([i + j for i, width in mine[["index", "width"]].tolist() for j in range(width)])
            rows, columns = np.unique(stored % done.m), np.unique(stored // done.m)
            from_a = came[item, "Atile" if done.shapes else "A"].reshape(k, -1)
            from_b = came[item, "Btile" if done.shapes else "B"].reshape(k, -1)
            assert np.array_equal(from_a, steps * done.m + rows)  # row m of A for every row of the block, k by k
            assert np.array_equal(from_b, steps * done.n + columns if done.transposed else columns * k + steps)
            c[stored] = (a[from_a].T @ b[from_b]).T.ravel()
    assert np.array_equal(c.reshape(done.n, done.m).T, done.a @ done.b)


def test_every_barrier_is_among_those_left_out():
    both = {(number, barrier) for number in range(2, 9) for barrier in (1, 2)}
    assert {(number, barrier) for number, _, _, barrier in BARRIERS} == both | {(9, 1), (10, 1)}


@pytest.mark.parametrize(("number", "params", "tiles", "barrier"), BARRIERS)
def test_a_missing_barrier_makes_races_and_a_wrong_product_in_some_order(number, params, tiles, barrier):
    """With the barrier each of these orders is right (see above), so nothing but the barrier is to blame."""
    verdicts, races = {}, []
    for order in ORDERS:
        done = replayed(number, params, tiles, order=order, without_barrier=barrier)
        verdicts[order] = check.exact(done.c, done.a, done.b).ok
        races.append(trace.races(done))
    assert not all(verdicts.values()), verdicts
    assert races[0] and races[0] == races[1] == races[2]  # a race is there, whether an order shows it or not
    sizes = {name: rows * row for name, (rows, row) in done.shapes.items()}
    assert all(0 <= i < sizes[name] for name, i in races[0])


def test_a_race_is_named_by_its_element():
    """Two work-items, one tile: each reads of A what it stored itself, and of B what the other one stored too."""
    done = trace.replay(5, 2, 2, 1, {"TS": 2, "TSK": 1, "WPT": 2, "PAD": 1}, without_barrier=1)
    assert done.shapes == {"Atile": (1, 2), "Btile": (2, 2)}
    assert trace.races(done) == [("Btile", 0), ("Btile", 2)]


@pytest.mark.parametrize("barrier", (1, 2))
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("number", "params"),
    [
        (2, {"TS": 1}),
        (4, {"TS": 4, "WIDTH": 4}),  # four work-items: the test can tell
        (6, blocks(4, 4, 4, 4, 4, PAD=1)),
        (9, blocks(2, 2, 2, 2, 2, WIDTH=2)),
    ],
)
def test_a_work_item_alone_needs_no_barrier(number, params, barrier, order):
    done = replayed(number, params, (2, 1, 3), order=order, without_barrier=barrier)
    alone = np.prod(catalog[number].local_size(done.params)) == 1
    assert (trace.races(done) == []) == alone
    assert check.exact(done.c, done.a, done.b).ok or not alone


@pytest.mark.parametrize("number", (9, 10))
def test_the_kernels_that_prefetch_have_no_second_barrier(number):
    params = blocks(4, 4, 2, 2, 2, WIDTH=2)
    done, other = (replayed(number, params, (1, 2, 3), without_barrier=barrier) for barrier in (None, 2))
    assert np.array_equal(done.events, other.events)


@cache
def small(number):
    """Legal small parameters of a kernel, without those that change nothing here."""
    names = {5: ("TS", "TSK", "WPT", "PAD"), 11: ("RX", "RY", "RK", "WIDTH", "GX", "GY")}
    names = names.get(number, ("TSM", "TSN", "TSK", "WPTM", "WPTN", "PAD" if number == 6 else "WIDTH"))
    values = {"PAD": (0, 1, 2), "WIDTH": (1, 2, 4, 8), "WPTM": (1, 2, 3, 4), "WPTN": (1, 2, 3, 4), "GX": (1, 2, 3)}
    values |= {"GY": (1, 2, 3), "RK": (1, 2), "RX": (1, 2, 3, 4, 8), "RY": (1, 2, 3), "WPT": (1, 2, 3, 4, 6)}
    fixed = {"UNROLL": 1} if "TSM" in names else {}
    every = itertools.product(*(values.get(name, (1, 2, 3, 4, 6, 8)) for name in names))
    every = ({**fixed, **dict(zip(names, v, strict=True))} for v in every)
    return [p for p in every if not catalog[number].problems(catalog[number].complete(p))]


@pytest.mark.parametrize("number", (5, 6, 7, 10, 11))
@settings(max_examples=1000 if FULL else 25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_small_legal_parameters(number, data):
    """Right with its barriers, whatever the order; racing without one, unless there is nobody to race with."""
    params = data.draw(st.sampled_from(small(number)))
    tiles = data.draw(st.tuples(*[st.integers(1, 3)] * 3))
    order = data.draw(st.sampled_from(ORDERS))
    done = replayed(number, params, tiles, order=order, seed=data.draw(st.integers(0, 99)))
    assert check.exact(done.c, done.a, done.b).ok and trace.races(done) == []
    multiply_adds, per = done.m * done.n * done.k, model.loads(number, params)
    assert done.count("A", "B") == round(per["global"] * multiply_adds)
    assert done.count("Atile", "Btile") == round(per["local"] * multiply_adds)
    if number == 11:
        return
    several = np.prod(catalog[number].local_size(done.params)) > 1
    barrier = data.draw(st.sampled_from((1,) if number == 10 else (1, 2)))
    torn = replayed(number, params, tiles, order=order, without_barrier=barrier)
    # barrier 2 protects a tile from the next one
    assert bool(trace.races(torn)) == (several and (barrier == 1 or tiles[2] > 1))
    if several and barrier == 1:  # the first to run reads what nobody has stored yet
        assert np.isnan(torn.c).any()


def test_the_last_barrier_does_not_matter_with_one_tile_only():
    """Barrier 2 protects the tiles from the next ones; where there is one tile it protects nothing."""
    for order in ORDERS:
        done = replayed(2, {"TS": 4}, (1, 1, 1), order=order, without_barrier=2)
        assert check.exact(done.c, done.a, done.b).ok and trace.races(done) == []


def test_the_phase_counts_barriers():
    done = replayed(2, {"TS": 2}, (1, 1, 3))
    e = done.events
    assert set(e["phase"][e["store"] & (e["array"] == "Atile")]) == {0, 2, 4}
    assert set(e["phase"][~e["store"] & (e["array"] == "Atile")]) == {1, 3, 5}
    assert set(e["phase"][e["array"] == "C"]) == {6}


def test_swapped_identifiers_still_multiply_right():
    """Exchanging the two dimensions costs speed, not correctness, where M = N: the lesson on coalescing needs both."""
    plain, swapped = (trace.replay(1, 32, 32, 4, {"TS": 32}, swapped=s) for s in (False, True))
    assert check.exact(plain.c, plain.a, plain.b).ok and check.exact(swapped.c, swapped.a, swapped.b).ok
    assert trace.segments(plain.touches("A")[0]) == 4  # 32 neighbouring floats
    assert trace.segments(plain.touches("B")[0]) == 1  # all the same float
    assert trace.segments(swapped.touches("A")[0]) == 1
    assert trace.segments(swapped.touches("B")[0]) == len(swapped.touches("B")[0]) * 4 * 4 // 32  # 4 floats apart
    assert trace.segments(plain.touches("C", store=True)[0]) == 4
    assert trace.segments(swapped.touches("C", store=True)[0]) == 32


def test_some_groups_only():
    done = trace.replay(2, 8, 8, 8, {"TS": 4}, groups=[(1, 0)])
    assert set(done.events["group"]) == {1}
    right = done.a @ done.b
    assert np.array_equal(done.c[4:, :4], right[4:, :4])
    assert np.isnan(done.c[:4]).all() and np.isnan(done.c[:, 4:]).all()


def test_touches_have_one_row_a_load_and_one_column_a_lane():
    done = trace.replay(1, 16, 8, 5, {"TS": 8})
    touched = done.touches("A", group=0, warp=1)
    assert touched.shape == (5, 32)
    rows, ks = touched % 16, touched // 16
    assert np.array_equal(ks, np.repeat(np.arange(5)[:, None], 32, axis=1))
    assert np.array_equal(rows[0], np.tile(np.arange(8), 4))
    assert done.touches("A", warp=0, width=4).shape == (5, 4)


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
    assert trace.segments(indices, size) == count


def test_a_touch_outside_an_array_is_an_error(monkeypatch):
    def shifted(w, M, N, K, TS):
        m, n = w.group[0] * TS + w.local[0], w.group[1] * TS + w.local[1]
        w.store("C", n * M + m + 1, w.load("A", m))
        yield from ()

    monkeypatch.setitem(trace.WALKS, 1, walks.Walk(shifted, {}))
    with pytest.raises(IndexError, match=r"work-item \(1, 1\) of group \(0, 0\) touches C\[4\], which is outside"):
        trace.replay(1, 2, 2, 2, {"TS": 2})


@pytest.mark.parametrize(("index", "inside"), [(-1, False), (0, True), (4, True), (5, False), (8, False)])
def test_a_vector_must_lie_inside_its_array(index, inside):
    """Python would read a shorter list, and write a longer one, without a word."""
    memory, log = {"A": [float(i) for i in range(8)]}, []
    w = workitem.WorkItem((0, 0), (1, 0), (0, 1), memory, log)
    if inside:
        assert w.load_vector("A", index, 4) == [float(i) for i in range(index, index + 4)]
        w.store_vector("A", index, [9.0] * 4)
        assert memory["A"][index : index + 4] == [9.0] * 4
        assert log == [(0, 1, 0, 0, False, "A", index, 4), (0, 1, 1, 0, True, "A", index, 4)]
    else:
        for touch in (lambda: w.load_vector("A", index, 4), lambda: w.store_vector("A", index, [9.0] * 4)):
            with pytest.raises(IndexError, match=rf"work-item \(1, 0\) of group \(0, 0\) touches A\[{index}\]"):
                touch()
        assert memory["A"] == [float(i) for i in range(8)] and log == []
    assert len(memory["A"]) == 8


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        ((2, 6, 4, 4, {"TS": 4}), {}, "m=6 is not a positive multiple of 4"),
        ((2, 4, 0, 4, {"TS": 4}), {}, "n=0 is not a positive multiple of 4"),
        ((2, 4, 4, 4, {"TS": 4}), {"order": "sideways"}, "'forward', 'backward' or 'shuffled', not 'sideways'"),
        ((99, 4, 4, 4), {}, "kernel must be one of 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16, 17, not 99"),
        ((3, 4, 4, 4, {"TS": 4}), {}, "TS=4 is not a multiple of WPT=8"),
    ],
)
def test_a_replay_refuses_what_it_cannot_do(arguments, options, said):
    with pytest.raises(ValueError) as error:
        trace.replay(*arguments, **options)
    assert said in str(error.value)


def test_elements_are_named_once_and_in_order():
    events = np.array([(0, 0, 0, 0, False, "A", 6, 2), (0, 1, 0, 0, False, "A", 1, 1), (0, 2, 0, 0, False, "A", 5, 3)],
                      trace.EVENT)  # fmt: skip
    assert trace.elements(events) == [1, 5, 6, 7]
    assert trace.elements(events[:0]) == []


def test_vectors_touch_the_segments_of_all_their_floats():
    eights = range(6, 70, 8)  # from 6 on, the third float lies in the next segment of 8
    assert [trace.segments(eights, width=width) for width in (1, 2, 3, 4)] == [8, 8, 9, 9]
    sixteens = range(6, 134, 16)
    assert [trace.segments(sixteens, width=width) for width in (1, 2, 3, 4)] == [8, 8, 16, 16]
    assert trace.segments([0, 100], size=4, width=8) == 16


@pytest.mark.parametrize("coalesced", (True, False))
@pytest.mark.parametrize("tile", (1, 2, 4, 16))
@pytest.mark.parametrize("sides", ((1, 3), (2, 1), (3, 2)))
def test_both_transposes_transpose(sides, tile, coalesced):
    rows, cols = (tile * side for side in sides)
    done = trace.replay_transpose(rows, cols, tile, coalesced)
    assert done.a.shape == (rows, cols) and len(np.unique(done.a)) == rows * cols
    assert np.array_equal(done.c, done.a.T)
    assert trace.elements(done.select("in")) == trace.elements(done.select("out", True)) == list(range(rows * cols))
    assert done.count("in") == done.count("out", store=True) == rows * cols
    assert done.count("tile") == done.count("tile", store=True) == (rows * cols if coalesced else 0)
    assert trace.races(done) == [] and done.shapes == ({"tile": (tile, tile + 1)} if coalesced else {})


@pytest.mark.parametrize("tile", (16, 32))
def test_only_the_transpose_with_a_tile_stores_neighbours(tile):
    """32 neighbouring floats are 4 segments of 32 bytes; tile 16 makes a warp of two rows of 2 segments each."""
    tiled, naive = (trace.replay_transpose(64, 96, tile, coalesced) for coalesced in (True, False))
    for group, warp in itertools.product((0, 5), range(tile * tile // 32)):
        for done in (tiled, naive):
            (loads,) = done.touches("in", group, warp)
            assert len(set(loads)) == 32 and trace.segments(loads) == 4
        (together,), (apart,) = (done.touches("out", group, warp, store=True) for done in (tiled, naive))
        assert len(set(together)) == len(set(apart)) == 32
        assert trace.segments(together) == 4
        assert trace.segments(apart) == tile  # the 16 or 32 rows of a warp; two neighbours each with tile 16


def test_the_extra_column_of_the_tile_keeps_its_columns_out_of_one_bank():
    done = trace.replay_transpose(32, 32, 32)
    for warp in range(32):
        (down,), (along,) = done.touches("tile", warp=warp), done.touches("tile", warp=warp, store=True)
        assert model.turns(down) == model.turns(along) == 1
        assert model.turns(down // 33 * 32 + down % 33) == 32  # the same column of a tile without it


@pytest.mark.parametrize(("rows", "cols"), [(24, 16), (16, 24)])
def test_a_transpose_takes_whole_tiles(rows, cols):
    with pytest.raises(ValueError, match=f"{rows} x {cols} are not multiples of tile=16"):
        trace.replay_transpose(rows, cols)


# Kernel 15


def warps(tsm, tsn, tsk, wptm, wptn, warpm, width, stages=2, order=8):
    names = ("TSM", "TSN", "TSK", "WPTM", "WPTN", "WARPM", "WIDTH", "STAGES", "ORDER")
    return dict(zip(names, (tsm, tsn, tsk, wptm, wptn, warpm, width, stages, order), strict=True))


#: One warp, two side by side, two one above the other, blocks of 8; several tiles in flight; whole tiles of M, N, K.
WARPS = [
    (warps(32, 16, 8, 4, 4, 8, 1), (2, 3, 2)),
    (warps(32, 32, 8, 4, 4, 8, 4, 3), (1, 2, 3)),
    (warps(32, 32, 4, 4, 4, 4, 1, 2, 1), (3, 1, 5)),
    (warps(64, 32, 4, 8, 8, 8, 4, 4, 2), (1, 2, 1)),
    (warps(16, 64, 8, 4, 8, 4, 4, 3), (2, 1, 4)),
    (warps(64, 32, 16, 8, 4, 8, 1, 3) | {"DOWN": 4, "TAIL": 1}, (1, 2, 3)),
]
if FULL:
    drawn = catalog[15].sample(None, 1000, seed=15)
    WARPS += [(p, (2, 1, 2)) for p in drawn if not p["GROUPS"] and np.prod(catalog[15].tiles(p)) <= 64 * 32 * 16][:12]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("params", "tiles"), WARPS)
def test_a_replay_of_warps_is_the_product(params, tiles, order):
    done = replayed(15, params, tiles, order=order, seed=5)
    assert check.exact(done.c, done.a, done.b).ok and trace.races(done) == []
    stores = done.select("C", True)
    touched = [i + j for i, width in stores[["index", "width"]].tolist() for j in range(width)]
    assert sorted(touched) == list(range(done.m * done.n))
    assert set(stores["width"]) == {params["WIDTH"]}


@pytest.mark.parametrize(("params", "tiles"), WARPS)
def test_the_loads_of_warps_are_those_of_the_formulas(params, tiles):
    """Ahead of the multiply-adds a work-item fetches a step more than there are, and stores tiles of zeroes."""
    done = replayed(15, params, tiles)
    zeroes = (params["STAGES"] - 1) * params["TSK"] * (params["TSM"] + params["TSN"]) * tiles[0] * tiles[1]
    multiply_adds, per = done.m * done.n * done.k, model.loads(15, params)
    assert per == {
        "global": pytest.approx(1 / params["TSM"] + 1 / params["TSN"]),
        "local": pytest.approx(1 / params["WPTM"] + 1 / params["WPTN"]),
    }
    assert done.count("A", "B") == round(per["global"] * multiply_adds)
    assert done.count("Atile", "Btile", store=True) == round(per["global"] * multiply_adds) + zeroes
    assert done.count("Atile", "Btile") == round(per["local"] * multiply_adds * (done.k + 1) / done.k)
    for name, width in (("A", params["WIDTH"]), ("B", params["WIDTH"]), ("Atile", 4), ("Btile", 4)):
        assert set(done.select(name)["width"]) == {width}
    spec = catalog[15]
    assert sum(4 * rows * row for rows, row in done.shapes.values()) == spec.local_memory(done.params)
    for name, (rows, row) in done.shapes.items():
        assert trace.elements(done.select(name, True)) == list(range(rows * row))


@pytest.mark.parametrize("barrier", (1, 2))
@pytest.mark.parametrize(("params", "tiles"), [case for case in WARPS if case[1][2] >= case[0]["STAGES"]])
def test_warps_need_their_barriers(params, tiles, barrier):
    """Where some tiles are copied later than the first: fewer are all there at the first barrier."""
    verdicts, races = {}, []
    for order in ORDERS:
        done = replayed(15, params, tiles, order=order, without_barrier=barrier)
        verdicts[order] = check.exact(done.c, done.a, done.b).ok
        races.append(trace.races(done))
    assert not all(verdicts.values()), verdicts
    assert races[0] and races[0] == races[1] == races[2]


@pytest.mark.parametrize(("params", "tiles"), WARPS[:2])
def test_the_last_barrier_of_warps_is_for_the_next_tile(params, tiles):
    """A work-group with one tile, as in a replay, has none."""
    for order in ORDERS:
        done = replayed(15, params, tiles, order=order, without_barrier=3)
        assert check.exact(done.c, done.a, done.b).ok and trace.races(done) == []


def test_the_lanes_of_a_warp_read_neighbours():
    """The picture in the kernel's header: 8 x 4 work-items, and of each 16 floats in four vectors."""
    done = replayed(15, warps(64, 32, 4, 8, 8, 8, 4), (1, 1, 1))
    first, second = done.touches("Atile")[:2]
    assert first.tolist() == [lane % 8 * 4 for lane in range(32)]
    assert second.tolist() == [32 + lane % 8 * 4 for lane in range(32)]
    first, second = done.touches("Btile")[:2]
    assert first.tolist() == [lane // 8 * 4 for lane in range(32)]
    assert second.tolist() == [16 + lane // 8 * 4 for lane in range(32)]
    stored = done.select("C", True, item=9)
    blocks = {(m, n) for m in (4, 36) for n in range(32) if n % 16 // 4 == 1}
    assert {(i % 64, i // 64) for i in stored["index"].tolist()} == blocks and set(stored["width"]) == {4}


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 40))
def test_every_tile_has_one_place_in_the_order(rows, columns, order):
    places = [warpwalk.ordered(tile, rows, columns, order) for tile in range(rows * columns)]
    assert sorted(places) == list(itertools.product(range(rows), range(columns)))
    bands = [row // order for row, _ in places]
    assert bands == sorted(bands)  # one band of `order` rows after the other
    for _, band in itertools.groupby(places, key=lambda place: place[0] // order):
        down = [(column, row) for row, column in band]
        assert down == sorted(down)  # in it down a column, then on to the next


@pytest.mark.parametrize("tail", (0, 1))
def test_a_replay_with_steps_behind_the_whole_tiles(tail):
    params = warps(64, 32, 8, 8, 4, 8, 1) | {"DOWN": 2, "TAIL": tail}
    done = [trace.replay(15, 60, 40, k, params) for k in (3, 8, 13)]
    assert all(check.exact(one.c, one.a, one.b).ok and trace.races(one) == [] for one in done)
    steps = [one.count("Atile") / (2 * 64 * 8) for one in done]  # two work-groups, 64 work-items, 8 floats each
    assert steps == ([1 + 3, 9, 9 + 5] if tail else [9, 9, 17])


def test_shared_tiles_are_not_replayed():
    for name, value in (("GROUPS", 16), ("SPLIT", 8)):
        with pytest.raises(ValueError, match=f"{name}={value}: one work-group a tile is replayed, {name}=0"):
            trace.replay(15, 32, 32, 8, {**warps(32, 32, 8, 4, 4, 8, 1), name: value})


# Kernel 11 takes B either way


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("params", "tiles"), [(direct(4, 2, 2, 2, 2, 1), (1, 3, 4)), (direct(8, 3, 1, 4, 1, 2), (2, 1, 5))]
)
def test_kernel_11_reads_b_as_it_lies(params, tiles, order):
    ways = {}
    for transposed in (0, 1):
        done = replayed(11, params | {"TRANSPOSED": transposed}, tiles, order=order)
        assert check.exact(done.c, done.a, done.b).ok and done.transposed == bool(transposed)
        assert done.b_shape == ((done.n, done.k) if transposed else (done.k, done.n))
        assert trace.elements(done.select("B")) == list(range(done.k * done.n))
        ways[transposed] = done
    steps = [done.select("B", item=0, group=0)["index"] for done in ways.values()]
    ry, k, n = params["RY"], ways[0].k, ways[0].n
    assert np.diff(steps[0][:ry]).tolist() == [k] * (ry - 1)  # down RY columns of B
    assert np.diff(steps[1][:ry]).tolist() == [1] * (ry - 1) and steps[1][ry] == n


# Model


def test_arithmetic_on_paper():
    assert model.flops(3, 5, 7) == 210
    assert model.gflops(1000, 1000, 1000, 2.0) == pytest.approx(1.0)
    assert model.least_bytes(2, 3, 4) == 4 * (8 + 12 + 6)
    assert model.intensity(100, 50) == 2
    assert model.loads(1) == {"global": 2, "local": 0}
    assert model.loads(2, {"TS": 16}) == {"global": 1 / 8, "local": 2}
    assert model.loads(3, {"TS": 32, "WPT": 8}) == {"global": 1 / 16, "local": 1.125}


def test_the_roofline_bends_at_its_ridge():
    peaks = model.Peaks(gflops=100, bandwidth=20)
    assert model.ridge(peaks) == 5
    assert model.roofline(peaks, 1) == 20 and model.roofline(peaks, 5) == 100 and model.roofline(peaks, 50) == 100


@pytest.mark.parametrize("number", (6, 7, 10))
def test_tiles_load_what_the_formula_says(number):
    """Counted from a replay: all loads, and operations a load."""
    params = blocks(8, 8 if number < 10 else 4, 4, 2, 2, **({"PAD": 1} if number == 6 else {"WIDTH": 2}))
    done = replayed(number, params, (2, 3, 2))
    g, h = params["TSM"], params["TSN"]
    counted = done.count("A", "B")
    assert counted == (done.m / g) * (done.n / h) * (g + h) * done.k
    assert model.flops(done.m, done.n, done.k) / counted == pytest.approx(model.tile_intensity(g, h))
    local = done.count("Atile", "Btile")  # and the blocks in registers, from local memory
    assert local == (done.m / 2) * (done.n / 2) * (2 + 2) * done.k
    assert model.flops(done.m, done.n, done.k) / local == model.tile_intensity(2, 2) == 2


def test_operations_a_float_of_some_tiles():
    """Square tiles are best, but long ones reach the same with enough elements."""
    over = {(67, 67), (50, 100), (40, 200), (36, 400), (35, 600)}
    nearly = {(56, 80), (52, 90), (37, 300)}
    assert all(model.tile_intensity(g, h) > 66 for g, h in over)
    assert all(65.5 < model.tile_intensity(g, h) < 66 for g, h in nearly)
    for g, h in over | nearly:
        assert model.tile_intensity(g, h) == pytest.approx(2 / (1 / g + 1 / h)) == model.tile_intensity(h, g)
    # blocks in registers: P Q / (P + Q) multiply-adds a load, half as many as operations
    assert model.tile_intensity(4, 4) / 2 == 2 and model.tile_intensity(3, 6) / 2 == 2
    assert model.tile_intensity(3, 5) / 2 < 2 < model.tile_intensity(4, 5) / 2


@pytest.mark.parametrize("bank_bytes", (4, 8))
def test_turns_by_counting_and_by_formula(bank_bytes):
    for stride in range(1, 201):
        lanes = range(0, 32 * stride, stride)
        words = {4 * i // bank_bytes for i in lanes}
        most = max(sum(word % 32 == bank for word in words) for bank in range(32))
        assert model.turns(lanes, bank_bytes) == most == model.stride_turns(stride, bank_bytes), stride


def test_a_word_that_all_want_takes_one_turn():
    assert model.turns([7] * 32) == model.turns([7] * 32, 8) == 1
    assert model.turns([0, 32] * 16) == 2 and model.turns([0, 32] * 16, 8) == 1
    assert model.turns([0, 1]) == model.turns([0, 1], 8) == 1  # two banks; one word
    assert model.turns([0, 64], 8) == 2 and model.turns([0, 4], banks=4) == 2


@pytest.mark.parametrize(("pad", "narrow", "wide"), [(0, 16, 8), (1, 1, 2), (2, 2, 1)])
def test_what_padding_does_for_kernel_5(pad, narrow, wide):
    """Turns of a warp that stores B's tile, with banks of 4 and of 8 bytes: by formula, and from a replay."""
    assert model.stride_turns(16 + pad, 4) == narrow and model.stride_turns(16 + pad, 8) == wide
    done = trace.replay(5, 32, 32, 16, {"TS": 32, "TSK": 16, "WPT": 8, "PAD": pad})
    stores = done.touches("Btile", warp=0, store=True)
    assert stores.shape == (16 // (32 // 8), 32)
    assert [model.turns(row, 4) for row in stores] == [narrow] * 4
    assert [model.turns(row, 8) for row in stores] == [wide] * 4
    # nothing else conflicts: the stores and loads of A's tile lie side by side, all lanes load the same float of B's
    for others in (done.touches("Atile", store=True), done.touches("Atile"), done.touches("Btile")):
        assert {model.turns(row, size) for row in others for size in (4, 8)} == {1}


def placed(chip, of_a_group, room):
    """How many groups fit, one after the other until the room is used up."""
    groups, used = 0, of_a_group
    while used <= room:
        groups, used = groups + 1, used + of_a_group
    return groups


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.sampled_from((model.K40M, model.H200)), st.integers(1, 1100), st.integers(1, 300), st.integers(0, 250 * 1024))
def test_occupancy_by_placing_group_after_group(chip, work_items, registers, local_memory):
    fits = model.occupancy(chip, work_items, registers, local_memory)
    warps = len(range(0, work_items, 32))
    of_a_warp = next(r for r in range(0, 2**20, 256) if r >= 32 * registers)  # 256 registers at a time
    assert fits == {
        "work-items": placed(chip, 32 * warps, 2048),
        "registers": placed(chip, warps * of_a_warp, 65536) if registers <= 255 else 0,
        "local memory": placed(chip, local_memory, chip.local_memory) if local_memory else chip.groups,
        "groups": chip.groups,
    }


def test_the_two_multiprocessors():
    assert (model.K40M.groups, model.K40M.local_memory, model.K40M.units) == (16, 48 * 1024, 15)
    assert (model.H200.groups, model.H200.local_memory, model.H200.units) == (32, 228 * 1024, 132)
    # 64 registers for each of 1,024 work-items are all that there are
    assert model.occupancy(model.H200, 1024, 64, 0)["registers"] == 1
    assert model.occupancy(model.H200, 1024, 65, 0)["registers"] == 0
    assert model.occupancy(model.K40M, 33, 1, 0)["work-items"] == 32  # 33 need two warps
    assert model.occupancy(model.K40M, 1, 255, 49153)["local memory"] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((0, 1, 0), "work_items must be at least 1, not 0"),
        ((-32, 1, 0), "work_items must be at least 1, not -32"),
        ((1, 0, 0), "registers must be at least 1, not 0"),
        ((1, 1, -1), "local_memory must be at least 0, not -1"),
    ],
)
def test_occupancy_of_nonsense_is_an_error(arguments, said):
    with pytest.raises(ValueError) as error:
        model.occupancy(model.H200, *arguments)
    assert str(error.value) == said


TIMES = st.integers(0, 24).map(lambda eighths: eighths / 8)  # sums of these have no rounding errors
SCHEDULES = (st.integers(1, 9), TIMES, TIMES, st.sampled_from((1, 2)), st.integers(1, 5))


def end(*schedule):
    return max(span.end for span in model.timeline(*schedule))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(*SCHEDULES[:3])
def test_the_end_for_one_group_by_formula(tiles, load, compute):
    assert end(tiles, load, compute) == tiles * (load + compute)
    assert end(tiles, load, compute, 2) == load + (tiles - 1) * max(load, compute) + compute


@settings(max_examples=300, deadline=None, derandomize=True)
@given(*SCHEDULES)
def test_a_time_line_keeps_the_rules(tiles, load, compute, buffers, groups):
    spans = model.timeline(tiles, load, compute, buffers, groups)
    at = {(s.group, s.what, s.tile): s for s in spans}
    every = itertools.product(range(groups), ("load", "compute"), range(tiles))
    assert set(at) == set(every) and len(spans) == len(at)
    for s in spans:
        assert s.start >= 0 and s.end - s.start == (load if s.what == "load" else compute)
    computes = sorted((s.start, s.end) for s in spans if s.what == "compute")
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(computes))  # one group at a time
    for g, tile in itertools.product(range(groups), range(tiles)):
        assert at[g, "load", tile].end <= at[g, "compute", tile].start
        if tile:
            assert at[g, "compute", tile - 1].end <= at[g, "compute", tile].start
        if tile >= buffers:  # a buffer is free when its last tile is computed; with one, a group never does both
            assert at[g, "compute", tile - buffers].end <= at[g, "load", tile].start
        if buffers == 2 and tile:  # and no sooner than it must: it is asked for when the tile before is begun
            assert at[g, "load", tile].start == at[g, "compute", tile - 1].start
        if buffers == 1 and tile:
            assert at[g, "load", tile].start == at[g, "compute", tile - 1].end


@settings(max_examples=300, deadline=None, derandomize=True)
@given(*SCHEDULES)
def test_more_buffers_or_more_groups_never_cost_time(tiles, load, compute, buffers, groups):
    last = end(tiles, load, compute, buffers, groups)
    assert end(tiles, load, compute, 2, groups) <= end(tiles, load, compute, 1, groups)
    assert end(tiles, load, compute, buffers, groups + 1) * groups <= last * (groups + 1)  # for the same work
    assert last >= load + groups * tiles * compute  # nothing beats computing all the time


# Texts of the kernels, and what was recorded


@pytest.mark.parametrize("number", [number for number in catalog if number > 1])
def test_a_kernel_says_which_one_it_changes(number):
    said = re.search(r"^// Before: +(\w+)\.", sources.read(catalog[number].file), re.M)[1]
    assert f"{said}.cl" == catalog[catalog[number].before].file


def test_the_first_kernel_changes_none():
    assert catalog[1].before == 0
    assert "// Before:   nothing" in sources.read(catalog[1].file)


@pytest.mark.parametrize("number", [number for number in catalog if number > 1])
def test_a_difference_tells_both_texts(number):
    """With enough context it holds every line of both, without the headers and empty lines."""
    texts = [sources.read(catalog[n].file) for n in (catalog[number].before, number)]
    told = sources.diff(*texts, context=10_000).splitlines()[1:]
    for text, sign in zip(texts, "-+", strict=True):
        body = text[text.index("\n#ifndef") :].splitlines()
        assert [line[1:] for line in told if line[0] in (" ", sign)] == [line for line in body if line.strip()]
    short = sources.diff(*texts, context=0).splitlines()
    assert {line[0] for line in short} == {"@", "-", "+"}
    assert [line for line in told if line[0] != " "] == [line for line in short if line[0] != "@"]
    assert sources.diff(texts[0], texts[0]) == ""


PTX = """
    ld.param.u64  %rd1, [gemm_param_3];
    ld.global.nc.v2.f32  {%f1, %f2}, [%rd1];
    ld.global.f32  %f3, [%rd2];
    st.shared.v2.f32  [%r1], {%f1, %f2};
    st.shared.f32  [%r1+8], %f3;
    bar.sync  0;
    ld.shared.f32  %f4, [%r2];
    ld.shared.v4.f32  {%f5, %f6, %f7, %f8}, [%r2+16];
    ld.shared.u32  %r3, [%r4];
    fma.rn.f32  %f9, %f4, %f5, %f9;
    fma.rn.f32  %f9, %f4, %f6, %f9;
    fma.rn.f64  %fd1, %fd2, %fd3, %fd1;
    mul.f32  %f10, %f9, %f9;
    barrier.sync  0;
    st.global.v4.f32  [%rd3], {%f9, %f9, %f9, %f10};
    st.global.f32  [%rd3+16], %f9;
"""


def test_instructions_are_counted_once_a_float():
    assert ptx.instructions(PTX) == {
        "multiply-adds": 2,
        "local loads": 5,
        "local stores": 3,
        "global loads": 3,
        "global stores": 5,
        "barriers": 2,
    }
    assert ptx.instructions("") == dict.fromkeys(ptx.KINDS, 0)


CUDA = (1, 2, 3, 5, 6, 7, 8, 9, 10)
#: Words of OpenCL C in kernel 8 that stand behind an #if which CUDA does not take.
BEHIND = {"__NV_CL_C_VERSION", "get_sub_group_local_id"}


def code(text):
    return re.sub(r"//.*", "", text)


@pytest.mark.parametrize("number", CUDA)
def test_a_translation_defines_the_parameters_first(number):
    moved = {p.name: p.default for p in catalog[number].params} | {catalog[number].params[0].name: 64}
    moved |= {"TSN": 64} if "TSN" in moved else {}
    text = cuda.translate(number, moved)
    assert text.startswith(cuda.TRANSLATION)
    for name, value in moved.items():
        lines = [line for line in text.splitlines() if re.match(rf"#(define|ifndef) {name}\b", line)]
        assert lines[:2] == [f"#define {name} {value}", f"#ifndef {name}"]
    assert text != cuda.translate(number)
    assert "#define " + catalog[number].params[0].name + " 64\n" not in cuda.translate(number)


@pytest.mark.parametrize("number", CUDA)
def test_a_translation_holds_nothing_that_cuda_cannot_read(number):
    """Local arrays are __shared__; a pointer into them must not be. All that is OpenCL's is a macro in front."""
    text = cuda.translate(number)
    body = code(text[len(cuda.TRANSLATION) :])
    assert not re.search(r"__local\s+\w+\s*\*", body)
    assert len(re.findall(r"__local\s+float\w*\s+\w+\[", body)) == (2 if number > 1 else 0)
    source = sources.read(catalog[number].file)
    changed = [old for old, new in zip(source.splitlines()[::-1], text.splitlines()[::-1], strict=False) if old != new]
    assert len(changed) == (0 if number < 7 else 2) and all(line.count("__local float*") == 2 for line in changed)
    defined = set(re.findall(r"#define (\w+)", cuda.TRANSLATION))
    needed = set(re.findall(r"\b(?:get_\w+|__\w+|barrier|restrict|reqd_\w+)\b", body)) - {"__attribute__"}
    assert needed - defined == (BEHIND if number == 8 else set())
    assert {"__kernel", "__global", "restrict", "reqd_work_group_size"} <= needed
    # what the macros stand for is CUDA's own: a macro too many would hide a word that nobody defines
    for word in (
        "__global__",
        "__shared__",
        "__restrict__",
        "__syncthreads()",
        "threadIdx.y",
        "blockIdx.x",
        "blockDim.x",
    ):
        assert word in cuda.TRANSLATION
    assert "#define __global\n" in text  # casts to __global pointers become plain ones


def test_a_translation_refuses_what_the_kernel_refuses():
    with pytest.raises(ParameterError, match="kernel 3 has no parameter 'WTP'.*did you mean WPT"):
        cuda.translate(3, {"WTP": 4})
    with pytest.raises(ParameterError, match="TS=4 is not a multiple of WPT=8"):
        cuda.translate(3, {"TS": 4})
    with pytest.raises(ValueError, match="kernel must be one of"):
        cuda.translate(99)


@pytest.mark.parametrize("title", sweeps.CURVES)
def test_every_sweep_is_recorded(title):
    number, name, values, params = sweeps.CURVES[title]
    ((series, recorded),) = sweeps.curve(title).items()
    assert "NVIDIA H200" in series and ("4096" in series) == (name != "size")
    assert len(recorded) >= 2 and set(recorded) <= set(values) and list(recorded) == sorted(recorded)
    assert all(np.isfinite(rate) and rate > 0 for rate in recorded.values())
    assert recorded == sweeps.recorded()["curves"][title]
    for value in values if name != "size" else ():  # the record can be made again: each set is legal, or left out
        moved = {**params, **dict.fromkeys(name.split(), value)}
        assert value not in recorded or not catalog[number].problems(catalog[number].complete(moved))


def test_the_rest_of_the_record_fits_its_sweeps():
    found = sweeps.recorded()
    sizes = {value for _, name, values, _ in sweeps.CURVES.values() if name == "size" for value in values}
    assert set(found["passes"]) == sizes
    for size, passes in found["passes"].items():
        assert min(passes.values()) > 0 and ("pad" in passes) == ("unpad" in passes)
        assert passes["gemm"] == max(passes.values()), size
    for title, used in found["registers"].items():
        assert set(used) == set(found["curves"][title])
        assert all(0 < registers <= 255 and spilled >= 0 for registers, spilled in used.values())
    assert found["transposing"]["coalesced"] > found["transposing"]["naive"] > 0
    assert all(switch["ok"] and switch["gflops"] > 0 for switch in found["switches"].values())
    assert set(found["cuda"]) == set(found["opencl"]) == {str(number) for number in CUDA}
    assert all(run["ok"] and run["gflops"] > 0 and run["registers"] > 0 for run in found["cuda"].values())
    assert min(found["opencl"].values()) > 0


@pytest.mark.parametrize("wpt", sweeps.CURVES["03 WPT"][2])
def test_a_compiler_loads_what_the_formula_says(wpt):
    """The recorded PTX of kernel 3: loads of local memory a multiply-add are 1 + 1/WPT, exactly."""
    counts = sweeps.recorded()["instructions"][wpt]
    per = model.loads(3, {"TS": 32, "WPT": wpt})
    assert counts["local loads"] / counts["multiply-adds"] == per["local"] == 1 + 1 / wpt
    # outside the loop over k: two loads and stores for each of WPT elements of a tile, WPT elements of C
    assert counts["global loads"] == counts["local stores"] == 2 * wpt and counts["global stores"] == wpt
    assert counts["barriers"] == 2


def test_nonsense_for_the_time_line_the_stride_and_cuda_is_an_error():
    for bad in ({"tiles": 0}, {"buffers": 3}, {"groups": 0}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            model.timeline(**{"tiles": 4, "load": 3, "compute": 2, **bad})
    with pytest.raises(ValueError, match="stride must be at least 1, not 0"):
        model.stride_turns(0)
    for kernel, params in ((4, {}), (11, {}), (15, {}), (7, {"WIDTH": 8})):
        with pytest.raises(ValueError, match="CUDA"):
            cuda.translate(kernel, params)


def test_a_group_takes_its_share():
    shares = model.shares(model.H200, 768, 40, 0)
    assert shares["work-items"] == 768 / 2048 and shares["local memory"] == 0 and shares["groups"] == 1 / 32
    assert shares["registers"] == 768 * 40 / 65536
