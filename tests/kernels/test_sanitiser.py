"""Oclgrind watches the kernels: data races, accesses out of bounds, reads of what was never
written. A clean kernel's log is empty, that of a wrong one names the fault.
"""

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import lacking
from simulation.test_edits import SETTINGS, all_of, harmless
from test_warp_tiling import WITH_STORE
from texts import OUTSIDE, SMALL, and_store, edited, without_barrier

from gemmlab import catalog, simulate
from gemmlab.ladder import Limits

pytestmark = pytest.mark.system

#: What Oclgrind simulates, unless it is told otherwise.
OCLGRIND = Limits("Oclgrind", 1024, (1024, 1024, 1024), 32768)
CHILD = Path(__file__).with_name("sanitiser_child.py")


def watched(tmp_path, options=("--uninitialized", "--max-errors", "5"), **case) -> tuple[str, str]:
    """Run a case; return what the child said of the result, and what Oclgrind said."""
    if not shutil.which("oclgrind"):
        lacking("Oclgrind is not installed")
    log = tmp_path / "log"
    command = ["oclgrind", "--data-races", *options, "--log", str(log)]
    done = subprocess.run(
        [*command, sys.executable, str(CHILD), json.dumps(case)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip(), log.read_text().strip()


def cases():
    """Kernels with parameters and sizes: whole tiles, several along K, and padding."""
    for number, spec in catalog.items():
        side, depth, count = (16, 16, 3) if number in range(6) else (32, 16, 2)
        small = [
            params
            for params in spec.sample(OCLGRIND, 40, seed=number)
            if max(spec.tiles(params)) <= side and spec.tiles(params)[2] <= depth
            if spec.local_size(params) > (1, 1)
        ]
        for params in small[:count]:
            tile, least = spec.tiles(params), spec.minimum_sizes(params)
            whole = tuple(min(t * count, 64) for t, count in zip(tile, (1, 2, 2), strict=True))
            yield number, params, whole
            if spec.edges == "shift":
                yield number, params, tuple(size + 1 for size in least)
            elif tile[0] <= 16:
                yield number, params, tuple(max(1, size - 1) for size in whole)


CASES = [
    pytest.param(*case, id="-".join(map(str, (case[0], *case[1].values(), *case[2]))))
    for case in cases()
]


#: Alone and with shared tiles, more groups than steps, more stages, vectors; awkward sizes where
#: WIDTH allows them.
SPECIAL = [
    ("warp_tiling", {"GROUPS": 16}, (33, 35, 17)),
    ("warp_tiling", {"WIDTH": 4, "STAGES": 3, "GROUPS": 5}, (64, 36, 21)),
    ("warp_tiling", {"BATCHES": 5, "TRANSPOSED": 0, "TAIL": 1, "TSK": 16}, (34, 35, 37)),
    ("warp_tiling", {"TSM": 16, "TSN": 64, "WARPM": 4, "STAGES": 4, "ORDER": 1}, (33, 20, 40)),
    ("warp_tiling", {"WIDTH": 4, "TRANSPOSED": 1, "STAGES": 3}, (33, 35, 7)),
    ("tensor_cores", {"PARTS": 2, "EVERY": 2}, (33, 35, 19)),
    ("tensor_cores", {"PARTS": 1, "EVERY": 0, "TSM": 64, "WM": 64, "STAGES": 3}, (65, 3, 9)),
    ("warpgroups", {"PARTS": 2}, (5, 6, 7)),
]
CASES += [
    pytest.param(kernel, SMALL[kernel] | params, sizes, id=f"{kernel}-{params}-{sizes}")
    for kernel, params, sizes in SPECIAL
]


@pytest.mark.parametrize(("number", "params", "sizes"), CASES)
def test_a_kernel_is_clean(number, params, sizes, tmp_path):
    assert max(sizes) <= 68  # larger ones would take minutes
    assert watched(tmp_path, kernel=number, params=params, sizes=sizes) == ("right", "")


PARAMS = {1: {"TS": 4}, 2: {"TS": 4}, 3: {"TS": 4, "WPT": 2}}
LAST_BARRIER = (
    "        // barrier: nobody needs the tiles any more\n        barrier(CLK_LOCAL_MEM_FENCE);"
)
RACE = "data race at local memory"
CUBE = 8, 8, 8
#: Kernel, groups of warp tiling, and sizes; a barrier to leave out, or an edit; and what Oclgrind
#: says.
FAULTS = [
    (2, 0, CUBE, 1, RACE),
    (3, 0, CUBE, 2, RACE),
    (1, 0, CUBE, and_store(1, OUTSIDE["right behind C"]), "Invalid write of"),
    (2, 0, CUBE, (LAST_BARRIER, "        if (tm) barrier(CLK_LOCAL_MEM_FENCE);"),
     "divergence detected"),
    (1, 0, CUBE, ("A[k*M + m]", "A[k*M + m + 1]"), "Invalid read of size 4 at global"),
    (2, 0, CUBE, ("Btile[tn][k];", "Btile[tn][k + 1];"), "exceeds static array size (4)"),
    (1, 0, CUBE, ("C[n*M + m] =", "C[n*M] ="), "Write-write data race at global"),
    (2, 0, CUBE, ("        Btile[tn][tm] =", "        if (tm) Btile[tn][tm] ="),
     "Uninitialized value"),
    (3, 0, CUBE, ("acc[j] = 0", "if (j) acc[j] = 0"), "Uninitialized value"),
    (1, 0, CUBE, ("C[n*M + m] =", "C[n*M + m] +="), "Uninitialized value"),
    ("warp_tiling", 0, (32, 32, 16), 1, RACE),
    ("warp_tiling", 1, (64, 32, 16), 3, RACE),
    ("warp_tiling", 0, (30, 30, 8), 7, RACE),  # of the store
    ("warp_tiling", 0, (30, 32, 8), ("m0 + ia < M && left_a", "left_a"), "Invalid read of size 4"),
    ("warp_tiling", 0, (32, 32, 7), ("n0 + ib < N && left_b > (l)*KB)", "n0 + ib < N)"),
     "Invalid read of size 4"),
    ("warp_tiling", 0, (32, 30, 8), ("n1 + wn/4*4*WARPN + wn%4 + n*4 < N && m1", "m1"),
     "Invalid write of size 4"),
    # a piece too far, and one that is not there
    ("warp_tiling", 3, (64, 32, 16), ("(2*group + cut,", "(2*group + cut + 5,"),
     "Invalid write of size 16"),
    ("warp_tiling", 3, (64, 32, 16), ("(2*group + cut,", "(2*group + 1 - cut,"),
     "Uninitialized value"),
]  # fmt: skip


@pytest.mark.parametrize(("kernel", "groups", "sizes", "change", "message"), FAULTS, ids=str)
def test_a_fault_is_reported(kernel, groups, sizes, change, message, tmp_path):
    source = (without_barrier if isinstance(change, int) else edited)(kernel, change)
    params = PARAMS.get(kernel) or SMALL[kernel] | {"GROUPS": groups}
    _, log = watched(tmp_path, kernel=kernel, params=params, sizes=sizes, source=source)
    assert message in log and "At line" in log, log[:1000] or "Oclgrind said nothing"


#: What the simulator calls what Oclgrind says.
CALLED = {
    "data race at": ("race", "two writers"),
    "divergence detected": ("divergent barrier",),
    "Invalid": ("out of bounds",),
    "exceeds static array size": ("out of bounds",),
    # without a barrier Oclgrind, which runs one work-item after the other, reads what the next ones
    # have yet to store
    "Uninitialized": ("uninitialised", "race"),
}


def agree(log: str, run) -> list[str]:
    """What Oclgrind says that the simulator, which stops earlier, has not found."""
    kinds = {finding.kind for finding in run.findings}
    said = [message for message in CALLED if message in log]
    if run.stop:
        return [] if said else [log]
    return [message for message in said if not kinds & set(CALLED[message])]


def wrong_texts() -> list:
    """Of each kernel of the tutorial its barriers removed, and two other edits by a seed."""
    chosen = []
    for number in range(1, 14):
        every = [e for e in all_of(number) if not harmless(number, e)]
        barriers, rest = (
            [e for e in every if (e.what == "barrier") == wanted] for wanted in (True, False)
        )
        chosen += [(number, e) for e in [*barriers, *random.Random(number).sample(rest, 2)]]
    return [
        pytest.param(number, e, id=f"{number}-{e.what}-{e.line}-{e.column}") for number, e in chosen
    ]


@pytest.mark.parametrize(("number", "edit"), wrong_texts())
def test_the_simulator_finds_what_oclgrind_finds(number, edit, tmp_path):
    """Whatever Oclgrind says of them, the simulator says, too."""
    for params, sizes in SETTINGS[number]:
        run = simulate(number, *sizes, params, edit.source)
        if not run.ok:
            break
    _, log = watched(tmp_path, kernel=number, params=params, sizes=sizes, source=edit.source)
    assert not run.ok and (not log or not run.findings or agree(log, run) == [])


def test_adding_up_by_the_last_is_a_race_to_opencl_1_2_and_no_other(tmp_path):
    """PTX has an order for pieces of other work-groups, Oclgrind has not."""
    params, options = SMALL["warp_tiling"] | {"GROUPS": 5}, ("--max-errors", "100000")
    case = {"kernel": "warp_tiling", "params": params, "sizes": (64, 62, 24), "source": WITH_STORE}
    said, log = watched(tmp_path, options, **case)
    races = {line.partition(" address")[0] for line in log.splitlines() if " race at " in line}
    assert said == "right" and races == {"Read-write data race at global memory"}
    assert not any(message in log for message in ("Invalid", "divergence"))
