"""Asynchronous copies are followed by element and by event."""

from __future__ import annotations

import numpy as np
import pytest

import clscope

#: A tile comes in, is changed, and goes out; {names} are where mistakes are made.
RIGHT = """\
__kernel void f(__global float* out, __global float* a)
{
    __local float s[8], t[8];
    const int l = get_local_id(0), g = get_group_id(0)*8;
    event_t e = async_work_group_copy(s, a + g, 8, 0);
    event_t other = async_work_group_copy(t, a + 16 + g, 8, 0);
    wait_group_events(1, &e);
    wait_group_events(1, &other);
    const float sum = s[l] + t[7 - l];
    barrier(CLK_LOCAL_MEM_FENCE);
    t[l] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    e = async_work_group_copy(out + g, t, 8, 0);
    wait_group_events(1, &e);
}
"""
WAIT, LAST = "    wait_group_events(1, &e);\n", "e);\n}\n"
#: What is replaced, by what, the kind of the finding, and its line.
MISTAKES = {
    "read before the wait": ("    wait_group_events(1, &other);\n    const float sum = s[l] + ",
                             "    const float sum = s[l] + ", "race", 8),
    "stored before the wait": (WAIT + "    wait_group_events(1, &o", "    s[l] = 1;\n" + WAIT +
                               "    wait_group_events(1, &o", "race", 7),
    "source overwritten before the wait": (WAIT + "    wait_group_events(1, &o",
                                           "    a[g + l] = 1;\n" + WAIT +
                                           "    wait_group_events(1, &o", "race", 7),
    "source overwritten on the way out": (WAIT + "}", "    t[l] = 0;\n" + WAIT + "}", "race", 14),
    "the wrong event": ("wait_group_events(1, &other)", "wait_group_events(1, &e)", "race", 9),
    "one event for two copies": ("event_t other = ", "event_t other = 0; e = ", "race", 9),
    "never awaited": (WAIT + "}", "}", "never awaited", 13),
    "no barrier before the copy": ("    barrier(CLK_LOCAL_MEM_FENCE);\n    e =", "    e =",
                                   "race", None),
    "a place that differs": ("out + g, t, 8, 0", "out + g + l/8 + l % 2, t, 8, 0",
                             "divergent copy", 13),
    "a size that differs": ("(s, a + g, 8, 0)", "(s, a + g, 8 - l, 0)", "divergent copy", 5),
    "an event that is never set": ("(out + g, t, 8, 0);\n    wait_group_events(1, &e)",
                                   "(out + g, t, 8, 0);\n    event_t x;\n    "
                                   "wait_group_events(1, &x)", "uninitialised", 15),
    "not all work-items": ("    event_t other = async", "    event_t other = 0; if (l < 4) other = "
                           "async", "divergent barrier", 6),
    "two copies to one place": ("async_work_group_copy(t, a", "async_work_group_copy(s, a",
                                "race", None),
}  # fmt: skip


def run(source: str) -> clscope.Run:
    a = np.arange(32, dtype=np.float32)
    return clscope.run(source, None, (16,), (8,), [np.zeros(16, np.float32), a])


@pytest.mark.parametrize("order", ["lockstep", "warps"])
def test_right_copies(order):
    a = np.arange(128, dtype=np.float32)
    source = RIGHT.replace("[8]", "[64]").replace("*8", "*64").replace(" 8,", " 64,")
    source = source.replace("16 + g", "g").replace("7 - l", "63 - l")
    got = clscope.run(source, None, (128,), (64,), [clscope.Empty(128), a], order=order)
    assert got.ok, got.verdict
    assert (got.arrays["out"] == a.reshape(2, 64).sum(1).repeat(64) * 0 + np.concatenate(
        [part + part[::-1] for part in a.reshape(2, 64)]
    )).all()  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name):
    old, new, kind, line = MISTAKES[name]
    assert RIGHT.count(old) == 1, name
    got = run(RIGHT.replace(old, new))
    assert kind in {f.kind for f in got.findings}, got.verdict
    if line is not None:
        assert line in {f.line for f in got.findings if f.kind == kind}, got.findings


def test_two_halves_of_an_array():
    source = """\
__kernel void f(__global float* out, __global const float* a)
{
    __local float t[2][8];
    const int l = get_local_id(0);
    event_t e = async_work_group_copy(t[0], a, 8, 0);
    for (int i = 0; i < 8; i++) {
        wait_group_events(1, &e);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (i < 7) e = async_work_group_copy(t[(i + 1) & 1], a + 8*(i + 1), 8, 0);
        out[8*i + l] = t[i & 1][7 - l];
    }
}
"""
    a = np.arange(64, dtype=np.float32)
    for text, ok in ((source, True), (source.replace("t[i & 1]", "t[(i + 1) & 1]"), False)):
        got = clscope.run(text, None, (8,), (8,), [clscope.Empty(64), a])
        assert got.ok is ok, got.verdict


def test_two_groups_wait_for_their_own_copies():
    """Groups that go in step and wait in different iterations do not end each other's copies."""
    source = """\
__kernel void f(__global float* out, __global const float* a)
{
    __local float t[8];
    const int l = get_local_id(0), g = get_group_id(0);
    event_t e = async_work_group_copy(t, a, 8, 0);
    if (g == 0) wait_group_events(1, &e);
    out[8*g + l] = t[7 - l];
    if (g == 1) wait_group_events(1, &e);
}
"""
    got = clscope.run(source, None, (16,), (8,), [clscope.Empty(16), np.ones(8, np.float32)])
    assert [(f.kind, f.line) for f in got.findings] == [("race", 7)]
    assert {item.group[0] for item in got.findings[0].items} == {1}
