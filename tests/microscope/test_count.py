"""Counts by line: transactions, turns of the banks, multiply-adds, barriers."""

from __future__ import annotations

import numpy as np
from microscope.cases import line_of, product, text

import clscope
import gemmlab
from clscope.count import total, transactions, turns


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


def test_by_line():
    source = text(2)
    run = gemmlab.simulate(2, 16, 16, 16, {"TS": 8})
    line = run.lines[line_of(source, "acc +=")]
    assert line.multiply_adds == 16**3 and sum(line.loads.values()) == 2 * 16**3
    assert run.lines[line_of(source, "barrier(CLK")].barriers == 4 * 2  # four groups, two tiles
    assert total(run.lines) == run.counts


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
    run = gemmlab.simulate(2, 8, 8, 8, {"TS": 8}, product(body))
    assert run.counts.multiply_adds == 64 * (2 + 1 + 1 + 1 + 4 + 4)


def test_conditions_that_differ_are_in_the_log():
    body = """
    if (tm < 4) C[n*M + m] = 1.0f;
    else C[n*M + m] = 2.0f;
    if (tn < 4) C[n*M + m] += 0.0f;
    if (M > 3) C[n*M + m] += 0.0f;
    for (int i = 0; i < tm; i++) C[n*M + m] += 0.0f;"""
    source = product(body)
    run = gemmlab.simulate(2, 8, 8, 8, {"TS": 8}, source)
    found = []
    for part in ("tm < 4", "tn < 4", "M > 3", "i < tm"):
        log = [e for e in run.log if e.site.line == line_of(source, part) and not e.memory]
        ways = [{bool(x) for x in e.of(e.value)} for e in log]
        found.append((len(log), sum(len(way) == 2 for way in ways)))
    assert found == [(1, 1), (1, 1), (0, 0), (8, 7)]


def test_groups_that_are_no_whole_warps():
    source = "__kernel void f(__global float* x) { x[get_global_id(0)] = 1.0f; }"
    run = clscope.run(source, "f", (40,), (20,), [clscope.Empty(40)])
    assert run.counts.transactions == 3 + 3
    for order in ("lockstep", "warps"):
        one = gemmlab.simulate(3, 16, 16, 16, {"TS": 8, "WPT": 8}, order=order)
        assert (one.counts.barriers, one.counts.multiply_adds) == (16, 16**3)
