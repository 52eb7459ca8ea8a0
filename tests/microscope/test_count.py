"""Counts by line: transactions, turns of the banks, multiply-adds, barriers."""

from __future__ import annotations

import numpy as np
import pytest
from microscope.corpus import MISTAKES, RIGHT
from microscope.harness import kernel, line_of, run

import clscope
from clscope import views
from clscope.count import total, transactions, turns

FLOATS = [case for case in RIGHT if "uchar" not in case.text]  # `by_hand` counts 4 bytes each


def sectors(indices, width=1):
    """By the definition: the aligned pieces of 32 bytes that hold what a warp touches."""
    return len({(4 * (i + j)) // 32 for i in indices for j in range(width)})


def bank_turns(indices, bank_bytes=4):
    """By the definition: the most different words that a bank must give, for a warp that touches
    these floats.
    """
    words = {4 * i // bank_bytes for i in indices}
    return max(np.bincount([w % 32 for w in words]))


def as_rows(indices):
    return np.array([[4 * i for i in indices] + [-1] * (32 - len(indices))])


def test_random_indices_and_lanes_that_are_away():
    rng = np.random.default_rng(0)
    for _ in range(50):
        indices = rng.integers(0, 300, rng.integers(1, 33)).tolist()
        assert transactions(as_rows(indices), 4) == sectors(indices)
        for bank_bytes in (4, 8):
            assert turns(as_rows(indices), 4, bank_bytes) == bank_turns(indices, bank_bytes)
        starts = [4 * i for i in indices]
        assert transactions(as_rows(starts), 16) == sectors(starts, 4)


def by_hand(events):
    """Transactions and turns, once more from the table of events."""
    in_global = in_local = 0
    keys = np.stack([events["entry"], events["group"], events["item"] // 32], 1)
    for key in np.unique(keys, axis=0):
        warp = events[(keys == key).all(1)]
        indices, width = warp["index"].tolist(), int(warp["width"][0])
        if warp["space"][0] == "global":
            in_global += sectors(indices, width)
            continue
        for part in range(0, 32, 32 // width):
            served = warp[(warp["item"] % 32 >= part) & (warp["item"] % 32 < part + 32 // width)][
                "index"
            ].tolist()
            in_local += bank_turns([i + j for i in served for j in range(width)]) if served else 0
    return in_global, in_local


@pytest.mark.parametrize("order", ["lockstep", "warps"])
@pytest.mark.parametrize("case", FLOATS, ids=lambda case: case.name)
def test_counts_are_those_made_by_hand_and_add_up(case, order):
    """All lines, and all steps of all work-groups, make the counts of the run."""
    seen = case.run(order=order)
    assert total(seen.lines) == seen.counts
    assert (seen.counts.transactions, seen.counts.turns) == by_hand(seen.table)
    groups = np.unique(seen.table["group"])
    steps = [step for group in groups for step in views.steps(seen, group)]
    assert all(e.site.line == step.line for step in steps for e in step.entries)
    whole = total({number: step.counts for number, step in enumerate(steps)})
    assert (whole.loads, whole.stores) == (seen.counts.loads, seen.counts.stores)


def test_by_line():
    case = next(c for c in RIGHT if c.name == "tile")
    seen = case.run()
    line = seen.lines[line_of(case.text, "sum +=")]
    assert line.multiply_adds == 16**3 and line.loads == {"sa": 16**3, "sb": 16**3}
    assert seen.lines[line_of(case.text, "// full")].barriers == 4 * 2  # four groups, two tiles
    a, b, full, add, free, store = (
        line_of(case.text, part)
        for part in ("= A[", "= B[", "// full", "sum +=", "// free", "= sum;")
    )
    steps = [step.line for step in views.steps(seen)]
    assert steps == 2 * [a, b, full, *8 * [add], free] + [store]


def test_multiply_adds_are_recognised():
    body = """
    float4 v = (float4)(1.0f, 2.0f, 3.0f, tm);
    float x = fma(v.x, v.y, v.z) + mad(v.x, v.y, v.z);
    x += v.x*v.y;
    x -= v.y*v.x;
    x = v.z*v.y + x*v.w;
    x += dot(v, v);
    v += v*v;
    x = v.x + v.y;
    x = v.x*v.y;
    C[n*M + m] = x;"""
    assert run(kernel(body)).counts.multiply_adds == 64 * (2 + 1 + 1 + 1 + 4 + 4)


def test_conditions_that_differ_are_in_the_log():
    body = """
    if (tm < 4) C[n*M + m] = 1.0f;
    else C[n*M + m] = 2.0f;
    if (tn < 4) C[n*M + m] += 0.0f;
    if (M > 3) C[n*M + m] += 0.0f;
    for (int i = 0; i < tm; i++) C[n*M + m] += 0.0f;"""
    source = kernel(body)
    seen = run(source)
    found = []
    for part in ("tm < 4", "tn < 4", "M > 3", "i < tm"):
        log = [e for e in seen.log if e.site.line == line_of(source, part) and not e.memory]
        ways = [{bool(x) for x in e.of(e.value)} for e in log]
        found.append((len(log), sum(len(way) == 2 for way in ways)))
    assert found == [(1, 1), (1, 1), (0, 0), (8, 7)]


def test_groups_that_are_no_whole_warps():
    source = "__kernel void f(__global float* x) { x[get_global_id(0)] = 1.0f; }"
    seen = clscope.run(source, "f", (40,), (20,), [clscope.Empty(40)])
    assert seen.counts.transactions == 3 + 3


def test_touches_and_segments():
    body = "for (int i = 0; i < 3; i++) x[get_global_id(0) + 64*i] = i;"
    text = f"__kernel void f(__global float* x) {{ {body} }}"
    seen = clscope.run(text, None, (64,), (64,), [clscope.Empty(192)])
    touched = views.touches(seen, "x", group=0, warp=1, store=True)
    assert np.array_equal(touched, np.arange(32, 64) + 64 * np.arange(3)[:, None])
    assert len(views.touches(seen, "y")) == len(views.select(seen, "x")) == 0
    assert views.elements(views.select(seen, "x", True)) == list(range(192))
    assert views.segments(range(32)) == 4 and views.segments([]) == 0
    assert views.segments(range(1, 33), 128) == 2
    assert views.segments(range(6, 134, 16), width=3) == 16  # the third is in the next segment


def test_a_run_that_stops_ends_with_the_line_that_stopped_it():
    case = next(c for c in MISTAKES if c.name == "tile: one step too many")
    seen = case.run()
    last = views.steps(seen)[-1]
    assert last.line == seen.stop.line == line_of(case.text, "sum +=") and not last.entries
