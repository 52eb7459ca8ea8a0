"""Warp tiling: equal shares of all tiles, and adding them up."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pyopencl as cl
import pyopencl.array as cla
import pytest
from texts import SMALL, edited, intel, portable

from gemmlab import catalog, check, matmul
from gemmlab.ladder import sources
from gemmlab.opencl import launch
from gemmlab.opencl.launch import Kernel

pytestmark = [pytest.mark.system, pytest.mark.optimised(False)]

SPEC = catalog["warp_tiling"]
TINY = SPEC.complete(SMALL["warp_tiling"])
#: One group; several that cut most tiles; as many as steps; more, so that some have none.
GROUPS = (1, 2, 3, 5, 16, 264)


# Wrong on purpose

_SECOND = "const int second = from < begin && from%slices != 0;"
WRONG_JOINS = {
    "forgets the second piece": (_SECOND, "const int second = 0;"),
    "takes every one before as second": (_SECOND, "const int second = from < begin;"),
    "leaves out the group after the first": ("for (int group = first + 1;",
        "for (int group = first + 2;"),
    "leaves out the last group": ("group <= last; group++", "group < last; group++"),
    "reads what no group has stored": (
        "if (line >= groups || line*group/groups < line*(group + 1)/groups)", "if (1)"),
    "forgets the rest of the division": ("line*first/groups;", "line/groups*first;"),
    "takes a tile for cut that one did alone": ("first == last || (", "("),
    "takes numbers of tiles for those of cuts": ("by_tile ? number :", "!by_tile ? number :"),
    "goes straight down": ("const int rows = min(ORDER, tiles_m - band);",
        "const int rows = tiles_m;"),
    "takes what its neighbour should": (
        "(2*group)*TSM*TSN + id];", "(2*group)*TSM*TSN + (id ^ 4)];"),
}  # fmt: skip
_CLEARED = """acc[wn][wm] {} 0.0f;
                    }}
                }}
                // a work-group that"""
WRONG_LASTS = {
    "one too many awaited": ("min(last - first, steps - 1)", "min(last - first + 1, steps)"),
    "more than there are steps awaited": ("min(last - first, steps - 1)", "last - first"),
    "the counter left": ("*come = 0;", ""),
    "the first part left out": ("for (int from = first;", "for (int from = first + 1;"),
    "the last part left out": ("from <= last;", "from < last;"),
    "parts nobody stored": ("if (groups <= line || line*from/groups < line*(from + 1)/groups) {",
        "{"),
    "the wrong one of two": ("2*from + (from == first ? second : 0);", "2*from;"),
    "added to what is there": (_CLEARED.format("="), _CLEARED.format("+=")),
}  # fmt: skip
#: Groups and sizes: pieces cut on both sides, after a whole tile, without any; more groups than
#: steps; two bands. fixup.cl goes by tiles in the first and fourth, else by cuts.
DIVISIONS = (
    (5, (64, 64, 24)),
    (3, (64, 64, 24)),
    (4, (64, 64, 24)),
    (264, (64, 64, 24)),
    (7, (320, 64, 24)),
)

#: The kernel as NVIDIA's devices run it, where the last work-group to come adds up, in the words of
#: others: its copies are plain ones there anyway. Without the barriers of its last store: with them
#: Intel's runtime and PoCL 3.0 are right, PoCL 3.1 leaves counters.
BY_THE_LAST = edited(
    "warp_tiling",
    ('asm volatile("membar.gl;" ::: "memory")', "mem_fence(CLK_GLOBAL_MEM_FENCE)"),
    ("#if WIDTH == 1 && WARPM*WPTM % 32 == 0 && STAGES*TSK*WPTN >= TSN", "#if 0"),
).replace("#if NVIDIA\n", "#if 1\n")


#: The same with the store of WIDTH = 1.
WITH_STORE = BY_THE_LAST.replace("#if 0\n", "#if 1\n")


def joined(device, groups: int, sizes, text: str, by_the_last: bool) -> bool:
    """Whether three products in a row are right, with NaN in the memory for C each time, and at
    first in that for pieces, whose counters are zero before and after.
    """
    (m, n, _), (a, b) = sizes, check.exact_inputs(*sizes)
    params = TINY | {"GROUPS": groups, "ORDER": 8}
    built = Kernel(SPEC, params, device, device.context, text)
    if by_the_last:
        built._fixup = None
    memory = np.full(built.workspace, np.nan, np.float32)
    memory[-groups:].fill(0)
    pieces = cla.to_device(device.queue, memory)
    built._pieces = pieces.data
    x, y, c = (
        cla.to_device(device.queue, z) for z in (a.T.copy(), b.copy(), np.empty((n, m), np.float32))
    )
    right = True
    for _ in range(3):
        c.fill(np.float32(np.nan))
        launches = built.bound(*sizes, [z.data for z in (x, y, c)], device.queue)
        assert len(launches) == 2 - by_the_last
        for _, bound in launches:
            bound(device.queue)
        right &= check.exact(c.get().T, a, b).ok
    return right and not (by_the_last and pieces[-groups:].get().view(np.int32).any())


@pytest.mark.parametrize("groups", GROUPS)
def test_the_last_to_come_adds_up(groups, some_device):
    """And, where a device has an order of barriers, stores through local memory."""
    for sizes in ((64, 64, 24), (50, 70, 61), (32, 32, 400), (1, 2, 3), (320, 64, 24)):
        assert joined(some_device, groups, sizes, BY_THE_LAST, True)
        assert joined(intel(), groups, sizes, WITH_STORE, True)


@pytest.mark.parametrize("what", [*WRONG_JOINS, *WRONG_LASTS])
def test_a_wrong_join_is_caught(what, any_device, monkeypatch):
    """In one of these divisions; where the fault does not matter the result stays right."""
    device, by_the_last = portable(any_device), what in WRONG_LASTS
    texts = {"kernel": edited("warp_tiling"), "support/fixup.cl": sources.read("support/fixup.cl")}
    if by_the_last:
        texts["kernel"] = BY_THE_LAST
    which = "kernel" if by_the_last else "support/fixup.cl"
    monkeypatch.setattr(launch, "sources", SimpleNamespace(read=texts.get))

    def all_right() -> bool:
        return all(joined(device, *each, texts["kernel"], by_the_last) for each in DIVISIONS)

    (old, new), text = (WRONG_JOINS | WRONG_LASTS)[what], texts[which]
    assert text.count(old) == 1 and all_right()
    texts[which] = text.replace(old, new)
    assert not all_right()


def test_every_queue_has_pieces_of_its_own(device):
    """Products at once on three queues must not mix; nor must those of threads that share one."""
    options = {"kernel": "warp_tiling", "params": TINY | {"GROUPS": 16}}
    problems = [check.exact_inputs(64 + 3 * i, 70, 200, seed=i) for i in range(8)]
    queues = [cl.CommandQueue(device.context) for _ in range(3)]
    there = [[cla.to_device(queues[i % 3], x) for x in problems[i % 8]] for i in range(24)]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: matmul(*there[i % 24], **options), range(240)))
        for i, c in enumerate(found):
            assert check.exact(c.get(), *problems[i % 8]).ok
        found = pool.map(lambda i: matmul(*problems[i % 8], device=device, **options), range(40))
        assert all(check.exact(c, *problems[i % 8]).ok for i, c in enumerate(found))
