"""Experiments behind chapters 18 and 19: what tensor cores reach alone, and what each part of an idea is worth.

python docs/experiments/tensors.py results/nvidia_h200_warpgroups.json [--rounds 8] [--device 0]

The loops do nothing but the instructions of kernels 18 and 19, on registers (and, for warpgroups, on one small tile in
local memory). The ways are these kernels with other parameters, or with one thing in their texts changed; they are
checked, their errors are measured, and they are timed in rounds in which they take turns (see `waterfall.py`).
"""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyopencl as cl
import waterfall

import gemmlab
from gemmlab import check
from gemmlab.bench import records, timing
from gemmlab.catalog import sources
from gemmlab.opencl import launch, ptx
from gemmlab.opencl.build import build
from gemmlab.opencl.devices import Device, find_device

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "notebooks"))
from lessons import tf32


class Way(NamedTuple):
    """A kernel with parameters; `changes` are places of its text and what stands there instead."""

    kernel: int
    params: dict[str, int]
    changes: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str:
        text = sources.read(gemmlab.catalog[self.kernel].file)
        for old, new in self.changes:
            if old not in text:
                raise ValueError(f"kernel {self.kernel} has no {old!r}")
            text = text.replace(old, new)
        return text


#: Kernel 18 leaves its sums in the tensor cores.
KEPT = (
    ("float sum[4] = {0.0f};", ";"),
    *((f"MMA(sum, {a}, a[i], {b}", f"MMA(acc[i][j], {a}, a[i], {b}") for a, b in
      (("SMALL", "BIG"), ("BIG", "SMALL"), ("BIG", "BIG"))),
    ("acc[i][j][e] += sum[e];", ";"),
)  # fmt: skip
#: Kernel 19 waits for its instructions at once, as kernel 18 does.
WAITING = (("            END();\n#else", "            END();\n            FINISH();\n#else"),)

WAYS = {
    "18": Way(18, {}),
    "18 PARTS=1": Way(18, {"PARTS": 1}),
    "18 sums kept": Way(18, {}, KEPT),
    "18 STAGES=2": Way(18, {"STAGES": 2}),
    "18 TSK=16": Way(18, {"TSK": 16, "STAGES": 2}),
    "19": Way(19, {}),
    "19 PARTS=1": Way(19, {"PARTS": 1}),
    "19 waiting": Way(19, {}, WAITING),
    "19 waiting PARTS=1": Way(19, {"PARTS": 1}, WAITING),
    "19 TSM=128": Way(19, {"TSM": 128}),
    "19 TSK=8": Way(19, {"TSK": 8}),
}

#: Loops of instructions: the kernel whose macros they use, multiply-adds of a warp per round, work-items, and the text.
MMA_LOOP = """
#define SAME(x) (x)
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void loop(const int rounds, const float x, __global float* restrict out)
{
    float acc[CHAINS][4] = {{0.0f}}, a[4] = {x, x, x, x}, b[2] = {x, x}, total = 0.0f;
    for (int r = 0; r < rounds; r++) {
        #pragma unroll
        for (int c = 0; c < CHAINS; c++) { MMA(acc[c], SAME, a, SAME, b); }
    }
    for (int c = 0; c < CHAINS; c++) { total += acc[c][0] + acc[c][1] + acc[c][2] + acc[c][3]; }
    out[get_global_id(0)] = total;
}
"""
WGMMA_LOOP = """
#define SAME(x) (x)
__kernel __attribute__((reqd_work_group_size(128, 1, 1)))
void loop(const int rounds, const float x, __global float* restrict out)
{
    __local float tile[2][ROW][4] __attribute__((aligned(128)));
    float sum[64], total = 0.0f, zero = NAN;
    const float a[2][4] = {{x, x, x, x}, {x, x, x, x}};
    const int k = 0, i = 0;
    REVEALED(zero);
    for (int e = get_local_id(0); e < 2*ROW*4; e += 128) { tile[0][0][e] = x; }
    for (int j = 0; j < 64; j++) { sum[j] = zero; }
    SHOW();
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int r = 0; r < rounds; r++) {
        BEGIN();
        #pragma unroll
        for (int c = 0; c < CHAINS; c++) { WGMMA(SAME, tile[0], 1); }
        END();
        FINISH();
    }
    for (int j = 0; j < 64; j++) { total += sum[j]; }
    out[get_global_id(0)] = total;
}
"""
LOOPS = {"mma.sync": (18, 1024, 256, MMA_LOOP), "wgmma": (19, 64 * 128 * 8 // 4, 128, WGMMA_LOOP)}


def loop(name: str, chains: int, device: Device) -> dict:
    """The rate of an instruction by itself, in GFLOPS, with `chains` of them per round."""
    kernel, work, items, text = LOOPS[name]
    head = sources.read(gemmlab.catalog[kernel].file).split("__kernel __attribute__")[0]
    built = build(device, device.context, name, head + text, {"CHAINS": chains}, "loop")
    groups, rounds = device.units * 16, 2048
    out = cl.Buffer(device.context, cl.mem_flags.READ_WRITE, 4 * items * groups)
    seconds = []
    for _ in range(6):
        event = built(device.timed_queue, (items * groups,), (items,), rounds, 1.0, out)
        event.wait()
        seconds.append((event.profile.end - event.profile.start) * 1e-9)
    value = np.zeros(1, np.float32)
    cl.enqueue_copy(device.timed_queue, value, out)
    done = 2.0 * work * (items // 32) * groups * chains * rounds
    return {"gflops": done / min(seconds) * 1e-9, "sum": float(value[0])}


def error(kernel: launch.Kernel, k: int, device: Device) -> float:
    """The error of a product of standard normal numbers, relative to the product (`tf32.relative_error`)."""
    a, b = check.random_inputs(512, 512, k, kind="normal")
    flags = cl.mem_flags
    laid = (np.ravel(x, order="F") for x in (a, b.T if kernel.b_transposed else b))
    x, y = (cl.Buffer(device.context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=flat) for flat in laid)
    c = np.empty(512 * 512, np.float32)
    out = cl.Buffer(device.context, flags.READ_WRITE, c.nbytes)
    kernel.passes(512, 512, k, x, y, out)[-1][1].wait()
    cl.enqueue_copy(device.timed_queue, c, out)
    return tf32.relative_error(c.reshape(512, 512, order="F"), a, b)


def prepared(way: Way, device: Device) -> tuple[launch.Kernel | None, dict]:
    """The kernel of a way, or None if it cannot be compiled, and its facts."""
    spec = gemmlab.catalog[way.kernel]
    try:
        kernel = launch.Kernel(spec, spec.complete(way.params), device, device.context, way.text)
        used = ptx.registers(kernel)
    except (gemmlab.ParameterError, launch.BuildError) as problem:
        return None, {"kernel": way.kernel, "problem": str(problem)}
    facts = {"kernel": way.kernel, "params": kernel.params, "changed": bool(way.changes)}
    return kernel, facts | ({"registers": used[0], "spilled": used[1]} if used else {})


def run(size: int, rounds: int, device: Device) -> dict[str, dict]:
    """Check, judge and time all ways, and cuBLAS where it is there: their facts by title."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        made = dict(zip(WAYS, pool.map(lambda way: prepared(way, device), WAYS.values()), strict=True))
    found, calls = {title: facts for title, (_, facts) in made.items()}, {}
    for title, (kernel, facts) in made.items():
        if kernel is not None:
            checked = timing.measure(
                WAYS[title].kernel, 512, params=kernel.params, device=device, repeats=1, source=WAYS[title].text
            )
            facts |= {"ok": checked.ok, "verdict": checked.verdict}
            facts["errors"] = {str(k): error(kernel, k, device) for k in (512, 1024, 4096)}
            calls[title] = size, waterfall.timed(kernel, size, device)
    for title, call in waterfall.cublas(size).items():
        calls[title], found[title] = (size, call), {}
    for title, rates in waterfall.take_turns(calls, rounds).items():
        found[title] |= rates
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--device", default=None)
    given = parser.parse_args()
    device = find_device(given.device)
    command = f"python docs/experiments/tensors.py {given.file} --size {given.size} --rounds {given.rounds}"
    head = {**records.origin(command), "title": device.name, "size": given.size, "device": device.facts()}
    found = run(given.size, given.rounds, device)
    records.write(given.file, {**head, "ways": found})
    loops: dict = {}
    for name in LOOPS if "tensor" in device.features else ():
        for chains in (4, 8, 16):
            try:
                loops[f"{name}, {chains} per round"] = loop(name, chains, device)
            except Exception as problem:  # the ways are recorded already
                loops[f"{name}, {chains} per round"] = {"problem": f"{type(problem).__name__}: {problem}"}
    records.write(given.file, {**head, "ways": found, "loops": loops})
    print(waterfall.table(found))
    print("\n".join(f"{name}: {facts}" for name, facts in loops.items()))


if __name__ == "__main__":
    main()
