"""Warp tiling: its tiles at awkward sizes, equal shares of all tiles, and adding them up."""

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyopencl as cl
import pyopencl.array as cla
import pytest
from conftest import FULL
from texts import SMALL, edited, intel, portable, without_barrier

import gemmlab
from gemmlab import catalog, check, matmul
from gemmlab.catalog import sources
from gemmlab.opencl import launch
from gemmlab.opencl.launch import Kernel

pytestmark = [pytest.mark.system, pytest.mark.optimised(False)]

SPEC = catalog["warp_tiling"]
TINY = SPEC.complete(SMALL["warp_tiling"])
#: One group; several that cut most tiles; as many as steps; more, so that some have none.
GROUPS = (1, 2, 3, 5, 16, 264)


def measured(sizes, params, device, source=None):
    return gemmlab.measure(
        "warp_tiling", *sizes, params=params, device=device, repeats=1, source=source
    )


def on_device(queue, a: np.ndarray, b: np.ndarray) -> list[cla.Array]:
    """A column-major and B row-major, and NaN for C."""
    arrays = [cla.to_device(queue, np.ascontiguousarray(x)) for x in (a.T, b)]
    c = cla.empty(queue, (b.shape[1], a.shape[0]), np.float32)
    c.fill(np.float32(np.nan))
    return [*arrays, c]


# Right for any settings and sizes


def awkward(params: dict[str, int]) -> list[tuple[int, int, int]]:
    """Ones, primes, a little less and more than tiles and steps, one and many of them."""
    tm, tn, tk = SPEC.tiles(params)
    return [
        (1, tn + 1, 2 * tk - 1),
        (tm, tn, 1),
        (tm - 1, tn, tk + 1),
        (tm + 1, tn - 1, tk - 1),
        (2 * tm, 2 * tn, 3 * tk),
        (67, 41, 53),
    ]


#: B as K x N, 8 floats of a column side by side, or fewer.
NOT_TRANSPOSED = [
    TINY | {"TRANSPOSED": 0, "TSK": tsk, "TSM": 16, "TSN": 64, "WARPM": 4} for tsk in (4, 8, 16, 32)
]
TALL = TINY | {"TSM": 64, "TSN": 32, "TSK": 16, "WARPM": 4}
SETTINGS = [
    *(TINY | {"GROUPS": groups} for groups in GROUPS),
    *(
        params | {"BATCHES": batches}
        for params in (TINY, TINY | {"WIDTH": 4, "STAGES": 3}, *NOT_TRANSPOSED)
        for batches in (1, params["TSK"] - 1)
    ),
    TINY | {"WIDTH": 4, "GROUPS": 5, "TSK": 16, "STAGES": 4},
    *(
        TALL | {"TAIL": tail, "WIDTH": width, "GROUPS": groups, "TRANSPOSED": transposed}
        for tail in (0, 1)
        for width, groups, transposed in ((1, 0, 1), (4, 3, 1), (1, 5, 0))
    ),
]


def varied(params: dict[str, int]) -> str:
    return " ".join(f"{name}{value}" for name, value in params.items() if TINY[name] != value)


@pytest.mark.parametrize("params", SETTINGS, ids=varied)
def test_any_size_is_right(params, some_device):
    sizes = awkward(params)
    for each in sizes if FULL else random.Random(varied(params)).sample(sizes, 4):
        result = measured(each, params, some_device)
        assert result.ok, result
        needed = SPEC.needs_fixup(params, some_device.features)
        assert ("fix-up" in result.passes_ms) == needed


# Wrong on purpose

_SECOND = "const int second = from < begin && from%steps != 0;"
WRONG_JOINS = {
    "forgets the second piece": (_SECOND, "const int second = 0;"),
    "takes every one before as second": (_SECOND, "const int second = from < begin;"),
    "leaves out the group after the first": ("for (int group = first + 1;",
        "for (int group = first + 2;"),
    "leaves out the last group": ("group <= last; group++", "group < last; group++"),
    "reads what no group has stored": ("if (share > 0 || START(group) < START(group + 1))",
        "if (1)"),
    "forgets the rest of the division": (" + rest*(uint)(group)/(uint)groups)", ")"),
    "takes a tile for cut that one did alone": ("first == last || (", "("),
    "takes numbers of tiles for those of cuts": ("by_tile ? number :", "!by_tile ? number :"),
    "goes straight down": ("const int rows = min(ORDER, tiles_m - band);",
        "const int rows = tiles_m;"),
    "takes what its neighbour should": ("(2*group)*PIECE + id];", "(2*group)*PIECE + (id ^ 4)];"),
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


@pytest.fixture
def helper(monkeypatch):
    """Another text in place of a helper's."""
    original = sources.read

    def change(name: str, text: str) -> None:
        monkeypatch.setattr(
            launch.sources, "read", lambda file: text if file == name else original(file)
        )

    return change


@pytest.mark.parametrize("what", WRONG_JOINS)
def test_a_wrong_join_is_caught(what, helper, first_device):
    """In one of these divisions; where the fault does not matter the result stays right."""
    text, (old, new) = sources.read("support/fixup.cl"), WRONG_JOINS[what]
    assert text.count(old) == 1, old
    for changed, all_right in ((text, True), (text.replace(old, new), False)):
        helper("support/fixup.cl", changed)
        found = [joined(*division, portable(first_device)) for division in DIVISIONS]
        assert all(found) == all_right


def launched(built: Kernel, sizes, arrays, queue: cl.CommandQueue) -> list[str]:
    """The names of what computes a product with the kernel."""
    launches = built.bound(*sizes, [x.data for x in arrays], queue)
    for _, bound in launches:
        bound(queue)
    return [name for name, _ in launches]


def joined(groups: int, sizes, device) -> bool:
    """Whether a product is right whose pieces are NaN until they are stored."""
    a, b = check.exact_inputs(*sizes)
    params, text = TINY | {"GROUPS": groups, "ORDER": 8}, edited("warp_tiling")
    built = Kernel(SPEC, params, device, device.context, text)
    size_bytes = 4 * built.workspace
    pieces = cl.Buffer(device.context, cl.mem_flags.READ_WRITE, size_bytes)
    cl.enqueue_fill_buffer(device.queue, pieces, np.float32(np.nan), 0, size_bytes)
    built._workspaces[device.queue] = pieces
    arrays = on_device(device.queue, a, b)
    launched(built, sizes, arrays, device.queue)
    return check.exact(arrays[2].get().T, a, b).ok


#: Kernels that are wrong only with certain settings: these, sizes, and edits.
SHARED = TINY | {"GROUPS": 5}
BATCHED = TINY | {"TRANSPOSED": 0, "TSK": 16, "BATCHES": 15, "STAGES": 3}
TAILED = TINY | {"TAIL": 1, "TSK": 16}
_TAIL_FRAGMENT = "            FRAGMENT(k, 0)\n"
MISTAKES = [
    (SHARED, (67, 41, 53), "            cut++;\n", ""),
    (SHARED, (67, 41, 53), "step = line*group/", "step = group == 0 ? 0 : -1 + line*group/"),
    (SHARED, (67, 41, 53), "const int k0 = (int)(step%steps)*TSK;", "const int k0 = 0;"),
    (SHARED, (67, 41, 53), "int whole = count == steps;", "int whole = 1;"),
    # copies: too late for the barrier, the last one never, steps and columns mixed up
    (BATCHED, (64, 64, 80), "((l)*BATCHES/(count)", "(((l) + 1)*BATCHES/(count)"),
    (BATCHED, (64, 64, 80), "(STEP_OF(l, LPTB) == (k))",
     "(STEP_OF(l, LPTB) == (k) && l < LPTB - 1)"),
    (BATCHED, (64, 64, 80), "K_OF(l)*(TSN + PAD)", "(TSK - KB - K_OF(l))*(TSN + PAD)"),
    (BATCHED, (64, 64, 80), "(TSN + PAD) + N_OF(l)", "(TSN + PAD) + TSN - NB - N_OF(l)"),
    # the steps that K leaves: one too few, those of the tile before, each a step too late
    (TAILED, (64, 64, 39), "k < depth%TSK; k++", "k < depth%TSK - 1; k++"),
    (TAILED, (64, 64, 39), _TAIL_FRAGMENT + "            MULTIPLY(0)", "            MULTIPLY(0)"),
    (TAILED, (64, 64, 39), _TAIL_FRAGMENT, "            FRAGMENT((k + 1)%TSK, 0)\n"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("params", "sizes", "old", "new"), MISTAKES, ids=[new or old for *_, old, new in MISTAKES]
)
def test_a_mistake_is_caught(params, sizes, old, new, first_device):
    text = edited("warp_tiling", (old, new))
    result = measured(sizes, params, portable(first_device), text)
    assert not result.ok and result.verdict.startswith("wrong: "), result


GUARDS = {
    "of the columns": (1, "n1 + wn/4*4*WARPN + wn%4 + n*4 < N && ", ""),
    "of the rows": (1, " && m1 + m + lane < M", ""),
    "of the columns, vectors": (4, "else if (n < N)", "else if (1)"),
    "of the rows, vectors": (4, "if (m < M) c[0]", "c[0]"),
}


@pytest.mark.parametrize("which", GUARDS)
def test_a_missing_guard_is_caught(which, first_device):
    """It stores into another column, or outside C, in a child process."""
    width, *edit = GUARDS[which]
    params, text = TINY | {"WIDTH": width}, edited("warp_tiling", tuple(edit))
    outcome = gemmlab.trial(
        "warp_tiling", 27, 30, 40, params=params, device=first_device, repeats=1, source=text
    )
    assert outcome.result and not outcome.ok, outcome
    assert "it writes outside C" in outcome.result.verdict


@pytest.mark.parametrize("which", (7, 8))
def test_the_barriers_of_the_last_store_are_needed(which):
    """The seventh and the eighth, where WIDTH is 1 and elements change hands."""
    text = without_barrier("warp_tiling", which)
    for width, right in ((1, False), (4, True)):
        assert measured((70, 50, 40), TINY | {"WIDTH": width}, intel(), text).ok == right


# The last work-group to come adds up

#: The kernel as NVIDIA's devices run it, in the words of others: its copies are plain ones there
#: anyway. Without the barriers of its last store: with them Intel's runtime and PoCL 3.0 are right,
#: PoCL 3.1 leaves counters.
BY_THE_LAST = edited(
    "warp_tiling",
    ('asm volatile("membar.gl;" ::: "memory")', "mem_fence(CLK_GLOBAL_MEM_FENCE)"),
    ("#if WIDTH == 1 && WARPM*WPTM % 32 == 0 && STAGES*TSK*WPTN >= TSN", "#if 0"),
).replace("#if NVIDIA\n", "#if 1\n")


#: The same with the store of WIDTH = 1.
WITH_STORE = BY_THE_LAST.replace("#if 0\n", "#if 1\n")


def by_the_last(device, groups: int, sizes, text=BY_THE_LAST, times=3) -> list[np.ndarray]:
    """Products one after another, the memory for C full of NaN each time."""
    built = Kernel(SPEC, TINY | {"GROUPS": groups}, device, device.context, text)
    built._fixup = None
    pieces = cl.Buffer(device.context, cl.mem_flags.READ_WRITE, 4 * built.workspace)
    built._workspaces[device.queue] = pieces
    counters_at = 4 * (built.workspace - groups)
    cl.enqueue_fill_buffer(device.queue, pieces, np.float32(np.nan), 0, counters_at)
    cl.enqueue_fill_buffer(device.queue, pieces, np.int32(0), counters_at, 4 * groups)
    arrays = on_device(device.queue, *check.exact_inputs(*sizes))
    found = []
    for _ in range(times):
        arrays[2].fill(np.float32(np.nan))
        assert launched(built, sizes, arrays, device.queue) == ["gemm"]
        found.append(arrays[2].get().T)
    counters = np.empty(groups, np.int32)
    cl.enqueue_copy(device.queue, counters, pieces, src_offset=counters_at)
    assert not counters.any()  # ready for the next product
    return found


def all_exact(found: list[np.ndarray], sizes) -> bool:
    a, b = check.exact_inputs(*sizes)
    return all(check.exact(c, a, b).ok for c in found)


@pytest.mark.parametrize("groups", GROUPS)
def test_the_last_to_come_adds_up(groups, some_device):
    """And, where a device has an order of barriers, stores through local memory."""
    for sizes in ((64, 64, 24), (50, 70, 61), (32, 32, 400), (1, 2, 3), (320, 64, 24)):
        assert all_exact(by_the_last(some_device, groups, sizes), sizes)
        assert all_exact(by_the_last(intel(), groups, sizes, WITH_STORE), sizes)


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


@pytest.mark.parametrize("what", WRONG_LASTS)
def test_a_wrong_last_is_caught(what, first_device):
    old, new = WRONG_LASTS[what]
    assert BY_THE_LAST.count(old) == 1, old
    text = BY_THE_LAST.replace(old, new)
    for groups, sizes in DIVISIONS:
        try:
            found = by_the_last(first_device, groups, sizes, text)
        except AssertionError:
            return  # counters are left
        if not all_exact(found, sizes):
            return
    pytest.fail("every division is right")


# What a launch is made of


def test_every_queue_has_pieces_of_its_own(device):
    """Two products at once on two queues must not mix; nor must threads that share one."""
    params = TINY | {"GROUPS": 16}
    problems = [check.exact_inputs(64 + 3 * i, 70, 200, seed=i) for i in range(8)]
    built = gemmlab.kernel("warp_tiling", params, device)
    for queue in (cl.CommandQueue(device.context), cl.CommandQueue(device.context)):
        a, b = problems[0]
        arrays = on_device(queue, a, b)
        launched(built, (len(a), b.shape[1], len(b)), arrays, queue)
        assert check.exact(arrays[2].get().T, a, b).ok

    def one(i):
        a, b = problems[i % 8]
        c = matmul(a, b, kernel="warp_tiling", params=params, device=device)
        return check.exact(c, a, b).ok

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(one, range(40)))
