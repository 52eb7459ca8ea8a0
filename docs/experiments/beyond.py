"""Experiments behind chapters 15 to 17: what each part of an idea is worth, one change at a time.

python docs/experiments/beyond.py results/nvidia_h200_beyond.json [--rounds 8] [--device 0]

Each experiment compares a few ways to run a kernel: other parameters, or a text in which one thing is changed. All are
compiled, checked at a smaller size, and timed in rounds in which they take turns (see `waterfall.py`). Experiments that
are in the file already and are not run again stay there.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import waterfall

import gemmlab
from gemmlab.bench import records, timing
from gemmlab.catalog import sources
from gemmlab.opencl import launch, ptx
from gemmlab.opencl.devices import Device, find_device


class Way(NamedTuple):
    """A kernel with parameters, and a size if it is not the usual one; `changes` are places of its text and what
    stands there instead."""

    kernel: int
    params: Mapping[str, int]
    size: int = 4096
    changes: tuple[tuple[str, str], ...] = ()

    @property
    def source(self) -> str | None:
        """The changed text, or None for the kernel's own."""
        text = sources.read(gemmlab.catalog[self.kernel].file)
        for old, new in self.changes:
            if old not in text:
                raise ValueError(f"kernel {self.kernel} has no {old!r}")
            text = text.replace(old, new)
        return text if self.changes else None


#: Kernel 15 fetches the next tiles into registers before it computes, and stores them to local memory afterwards.
LOADS = """        // load: the next tiles into the other buffer, while we compute
        if (k0 + TSK < K) {
            load(Atile[next][0], A + (k0 + TSK)*M + m0, M, TSM);
            load(Btile[next][0], B + (k0 + TSK)*N + n0, N, TSN);
        }
"""
FETCH = """        // load: the next tiles into registers
        float4 a_next[TSK*TSM/4/ITEMS], b_next[TSK*TSN/4/ITEMS];
        if (k0 + TSK < K) {
            #pragma unroll
            for (int l = 0; l < TSK*TSM/4/ITEMS; l++) {
                const int e = 4*(l*ITEMS + get_local_id(0));
                a_next[l] = *(const __global float4*)&A[(k0 + TSK + e/TSM)*M + m0 + e%TSM];
            }
            #pragma unroll
            for (int l = 0; l < TSK*TSN/4/ITEMS; l++) {
                const int e = 4*(l*ITEMS + get_local_id(0));
                b_next[l] = *(const __global float4*)&B[(k0 + TSK + e/TSN)*N + n0 + e%TSN];
            }
        }
"""
KEEP = """        // and from there into the other buffer
        if (k0 + TSK < K) {
            #pragma unroll
            for (int l = 0; l < TSK*TSM/4/ITEMS; l++) {
                *(__local float4*)&Atile[next][0][4*(l*ITEMS + get_local_id(0))] = a_next[l];
            }
            #pragma unroll
            for (int l = 0; l < TSK*TSN/4/ITEMS; l++) {
                *(__local float4*)&Btile[next][0][4*(l*ITEMS + get_local_id(0))] = b_next[l];
            }
        }
    }

    // store: LWIDTH rows at a time
"""
THROUGH_REGISTERS = ((LOADS, FETCH), ("    }\n\n    // store: LWIDTH rows at a time\n", KEEP))

#: Kernel 16 loads the fragments of a step right before it multiplies them.
NOT_AHEAD = (
    ("    FRAGMENT(0, 0)\n", ""),
    ("            FRAGMENT((k + 1)%TSK, (k + 1)%2)\n", ""),
    ("            if (k == TSK - 1) {\n", "            FRAGMENT(k, k%2)\n            if (k == TSK - 1) {\n"),
)

EIGHTS = {"TSM": 256, "TSN": 64}
FOURS = {"TSM": 128, "TSN": 32, "TSK": 32, "WPTM": 4, "WPTN": 4}
SMALL = {"TSM": 128, "TSN": 64, "TSK": 16, "WPTM": 8}

#: By experiment and title.
EXPERIMENTS: dict[str, dict[str, Way]] = {
    "warps": {
        "kernel 10": Way(10, {}),
        "kernel 15": Way(15, {}),
        **{
            f"{side} x {side}, LWIDTH={width}, WARPM={rows}": Way(15, {**tile, "LWIDTH": width, "WARPM": rows})
            for side, tile in ((8, EIGHTS), (4, FOURS))
            for width in (4, 1)
            for rows in (4, 8, 16, 32)
        },
    },
    "copies": {
        "kernel 15": Way(15, {}),
        "kernel 15, UNROLL=16": Way(15, {"UNROLL": 16}),
        "kernel 15, UNROLL=16, through registers": Way(15, {"UNROLL": 16}, changes=THROUGH_REGISTERS),
        **{
            f"{side} x 8, ASYNC={on}, STAGES={stages}": Way(16, {**tile, "ASYNC": on, "STAGES": stages})
            for side, tile in ((16, {}), (8, SMALL))
            for on in (0, 1)
            for stages in (2, 3, 4)
        },
        **{
            f"{side} x 8, ASYNC={on}, fragments not ahead": Way(16, {**tile, "ASYNC": on}, changes=NOT_AHEAD)
            for side, tile in ((16, {}), (8, SMALL))
            for on in (0, 1)
        },
    },
    "shares": {
        f"GROUPS={groups}, {size}": Way(17, {"GROUPS": groups}, size)
        for size in range(1024, 4097, 512)
        for groups in (0, 132)
    },
    "order": {
        f"ORDER={order}, {size}": Way(17, {"ORDER": order, "GROUPS": 0}, size)
        for size in (4096, 8192)
        for order in (1, 4, 8, 16)
    },
}
CHECKED = 512  # size of the products that are compared with a reference


def compiled(way: Way, device: Device) -> tuple[launch.Kernel | None, dict]:
    """The kernel of a way, whatever its size, or None if it cannot be compiled; and what its compiler tells."""
    spec = gemmlab.catalog[way.kernel]
    try:
        kernel = launch.Kernel(spec, spec.complete(dict(way.params)), device, device.context, way.source)
        used = ptx.registers(kernel)
    except (gemmlab.ParameterError, launch.BuildError) as error:
        return None, {"problem": str(error)}
    facts = {"kernel": way.kernel, "params": kernel.params, "changed": bool(way.changes)}
    return kernel, facts | ({"registers": used[0], "spilled": used[1]} if used else {})


def run(ways: Mapping[str, Way], rounds: int, device: Device) -> dict[str, dict]:
    """Check and time all ways of an experiment; cuBLAS as well, at each of their sizes, where it is there.

    Returns:
        The facts of each way by its title: "kernel", "params", "size", "changed" (whether the text is another one),
        "registers" and "spilled" bytes where the compiler tells, "ok" and "verdict" of the check, and "gflops" with
        its "least" and "most"; or "problem".
    """
    texts = {title: repr(way._replace(size=0)) for title, way in ways.items()}
    once = {
        text: ways[title]._replace(size=0) for title, text in texts.items()
    }  # a text is compiled once for all sizes
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        made = dict(zip(once, pool.map(lambda way: compiled(way, device), once.values()), strict=True))
    for text, (kernel, facts) in made.items():
        if kernel is not None:
            params, source = kernel.params, once[text].source
            result = timing.measure(once[text].kernel, CHECKED, params=params, device=device, repeats=1, source=source)
            facts |= {"ok": result.ok, "verdict": result.verdict}
    found = {title: made[text][1] | {"size": ways[title].size} for title, text in texts.items()}
    calls: dict[str, tuple[int, Callable[[], float]]] = {}
    for title, text in texts.items():
        kernel, size = made[text][0], ways[title].size
        if kernel is not None:
            calls[title] = size, waterfall.timed(kernel, size, device)
    for size in sorted({size for size, _ in calls.values()}):
        for title, call in waterfall.cublas(size).items():
            if "TF32" not in title:
                calls[f"{title}, {size}"], found[f"{title}, {size}"] = (size, call), {"size": size}
    for title, rates in waterfall.take_turns(calls, rounds).items():
        found[title] |= rates
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--device", default=None)
    parser.add_argument("--only", default=",".join(EXPERIMENTS), help="experiments, separated by commas")
    parser.add_argument("--size", type=int, default=None, help="instead of each way's own size, for a trial")
    given = parser.parse_args()
    device = find_device(given.device)
    command = f"python docs/experiments/beyond.py {given.file} --rounds {given.rounds}"
    head = {**records.origin(command), "title": device.name, "device": device.facts()}
    found: dict[str, dict] = {}
    if given.file.exists():
        found = json.loads(given.file.read_text(encoding="utf-8"))["experiments"]
    for name in given.only.split(","):
        ways = EXPERIMENTS[name]
        if given.size:
            ways = {title: way._replace(size=given.size) for title, way in ways.items()}
        found[name] = run(ways, given.rounds, device)
        records.write(given.file, {**head, "experiments": found})
        print(f"{name}:\n{waterfall.table(found[name])}")


if __name__ == "__main__":
    main()
