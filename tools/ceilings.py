"""Experiments behind docs/model.md: how loads are served, and where the time of a kernel goes.

    python tools/ceilings.py results/my_ceilings.json [--only loads,parts] [--size 4096]

"variants" changes one thing in the text of kernel 3, "cuda" runs kernel 3 through CUDA (with CuPy),
"loads" and "lines" measure accesses of a warp by what its lanes read, "parts" separates loading
from computing. An experiment replaces its part of the file; the other parts stay.
"""

from __future__ import annotations

import argparse
import re
from functools import partial
from pathlib import Path
from typing import Any

import common
import numpy as np
import pyopencl as cl

from gemmlab import catalog, model
from gemmlab.catalog import sources
from gemmlab.cli import count
from gemmlab.measurement import timing
from gemmlab.opencl import launch, ptx
from gemmlab.opencl.build import build
from gemmlab.opencl.devices import Device, find_device

LOADS = """
#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#if WIDTH == 1
#define V float
#define ALL(v) (v)
#else
#define V JOIN(float, WIDTH)
#define ALL(v) ((v).s0 + (v).s1)
#endif
// Work-items of a warp read vector LANE; 8 loads per round, each of another 512 bytes.
__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void loads(const int rounds, const int step,
           const __global V* restrict in, __global float* restrict out)
{
    const int lane = get_local_id(0) & 31;
    const int at = LANE;
#if LOCAL
    __local V tile[16*32];
    for (int i = get_local_id(0); i < 16*32; i += 256) tile[i] = in[i];
    barrier(CLK_LOCAL_MEM_FENCE);
#else
    const __global V* tile = in;
#endif
    V acc[8];
    for (int c = 0; c < 8; c++) acc[c] = (V)(0.0f);
    for (int r = 0; r < rounds; r++) {
        // the compiler cannot load once for two rounds what it cannot know
        const int from = ((r*step) & 7)*32 + at;
        #pragma unroll
        for (int c = 0; c < 8; c++) acc[c] += tile[from + c*32];
    }
    float sum = 0.0f;
    for (int c = 0; c < 8; c++) sum += ALL(acc[c]);
    out[get_global_id(0)] = sum;
}
"""
#: Rounds of 8 loads in a launch.
ROUNDS = 4096
#: Which vector each lane reads: all different; all the same; and groups of lanes that share one.
LANES = {
    "different": "lane",
    "same": "0",
    "pairs share": "lane/2",
    "fours share": "lane/4",
    "eights share": "lane/8",
    "8 in turn": "lane%8",
    "16 in turn": "lane%16",
    "stride 2": "(lane*2)%32",
}

#: Kernel 3 with one thing changed.
VECTORS = """            const float a = Atile[k][tm];    // loaded once, used WPT times
            for (int j = 0; j < WPT; j++) {
                acc[j] += a * Btile[tn + j*RTS][k];
            }
"""
BY_FOUR = """            float4 b[WPT];
            #pragma unroll
            for (int j = 0; j < WPT; j++) {
                b[j] = vload4(0, &Btile[tn + j*RTS][k]);
            }
            #pragma unroll
            for (int j = 0; j < WPT; j++) acc[j] += Atile[k][tm] * b[j].s0;
            #pragma unroll
            for (int j = 0; j < WPT; j++) acc[j] += Atile[k + 1][tm] * b[j].s1;
            #pragma unroll
            for (int j = 0; j < WPT; j++) acc[j] += Atile[k + 2][tm] * b[j].s2;
            #pragma unroll
            for (int j = 0; j < WPT; j++) acc[j] += Atile[k + 3][tm] * b[j].s3;
"""
LOOP = "for (int k = 0; k < TS; k++) {"


def variants() -> dict[str, str]:
    """Texts of kernel 3."""
    text = sources.read(catalog[3].file)
    aligned = text.replace("__local float ", "__local __attribute__((aligned(16))) float ")
    by_four = text.replace(VECTORS, BY_FOUR).replace(LOOP, LOOP.replace("k++", "k += 4"))
    cast = by_four.replace(
        "vload4(0, &Btile[tn + j*RTS][k])", "*(const __local float4*)&Btile[tn + j*RTS][k]"
    )
    return {
        "as it is": text,
        "aligned(16)": aligned,
        "unroll 1": text.replace(LOOP, "#pragma unroll 1\n        " + LOOP),
        "unroll 4": text.replace(LOOP, "#pragma unroll 4\n        " + LOOP),
        "unroll all": text.replace(LOOP, "#pragma unroll\n        " + LOOP),
        "aligned(16), unroll all": aligned.replace(LOOP, "#pragma unroll\n        " + LOOP),
        "vload4 of B": by_four,
        "float4 of B": cast.replace(
            "__local float Btile", "__local __attribute__((aligned(16))) float Btile"
        ),
    }


def seconds_of(run: Any, runs: int = 10) -> float:
    """The median of the device's seconds of a launch, after one to warm up."""
    seconds = []
    for _ in range(runs + 1):
        event = run()
        event.wait()
        seconds.append(1e-9 * (event.profile.end - event.profile.start))
    return float(np.median(seconds[1:]))


def run_variants(device: Device, size: int) -> dict[str, Any]:
    """Kernel 3 in OpenCL with one thing changed, and the registers that it takes."""
    found: dict[str, Any] = {}
    for name, text in variants().items():
        result = timing.measure(3, size, device=device, source=text, repeats=10)
        kernel = launch.Kernel(catalog[3], result.params, device, device.context, text)
        registers = ptx.registers(kernel)
        found[name] = {"gflops": result.gflops, "ok": result.ok, "registers": registers}
    return found


def run_cuda(device: Device, size: int) -> dict[str, Any]:
    """Kernels 2, 3 and 5 through CUDA."""
    return {f"kernel {number}": common.lesson("cuda").measure(number, size) for number in (2, 3, 5)}


def accesses(device: Device, lanes: dict[str, str], widths: tuple[int, ...]) -> dict[str, float]:
    """10^9 accesses of a warp per second and multiprocessor, in local memory and the L1 cache.

    Args:
        device: where.
        lanes: which vector each lane reads, in OpenCL C, by name.
        widths: floats of a vector.
    """
    found: dict[str, float] = {}
    groups = device.units * 16
    out = cl.Buffer(device.context, cl.mem_flags.READ_WRITE, 4 * 256 * groups)
    data = cl.Buffer(device.context, cl.mem_flags.READ_WRITE, 4 * 16 * 4096)
    cl.enqueue_fill_buffer(device.timed_queue, data, np.float32(1), 0, 4 * 16 * 4096)
    for local, memory in ((1, "local"), (0, "L1")):
        for width in widths:
            for name, lane in lanes.items():
                params: dict[str, Any] = {"WIDTH": width, "LOCAL": local, "LANE": f"({lane})"}
                kernel = build(device, device.context, "loads", LOADS, params, "loads")
                sizes = (256 * groups,), (256,)
                run = partial(kernel, device.timed_queue, *sizes, ROUNDS, 3, data, out)
                done = 8 * 8 * groups * ROUNDS / device.units
                found[f"{memory}, {width} floats, {name}"] = 1e-9 * done / seconds_of(run)
    return found


def run_loads(device: Device, size: int) -> dict[str, Any]:
    """Accesses of a warp by the pattern of its lanes, in single floats and vectors."""
    return accesses(device, LANES, (1, 2, 4))


def run_lines(device: Device, size: int) -> dict[str, Any]:
    """Single floats in several lines of the L1 cache, in the same banks or in others."""
    lanes = {"1 line": "lane", "2 lines, side by side": "lane+16", "every second word": "lane*2"}
    for lines in (2, 4, 8, 16, 32):
        for distance in (32, 36, 33):
            name = f"{lines} lines, {distance} floats apart"
            lanes[name] = f"(lane/{32 // lines})*{distance}"
    return accesses(device, lanes, (1,))


def parts_of(text: str) -> dict[str, str]:
    """A kernel's text, with tiles loaded only once, and computed with twice: C is wrong."""
    loading = re.search(r"( *// load: .*?)(?=\n\n *// barrier: the tiles are complete)", text, re.S)
    computing = re.search(r"( *// compute\n)(.*?)(?=\n\n *// barrier: nobody needs)", text, re.S)
    if loading is None or computing is None:
        raise RuntimeError("this text has other phases")
    twice = f"#pragma unroll 1\nfor (int again = 0; again < 2; again++) {{\n{computing[2]}\n}}"
    return {
        "as it is": text,
        "loaded once": text.replace(loading[1], f"if (k0 == 0) {{\n{loading[1]}\n}}"),
        "computed twice": text.replace(computing[2], twice),
    }


def run_parts(device: Device, size: int) -> dict[str, Any]:
    """GFLOPS without loading tiles, and computing with each tile twice."""
    flags = cl.mem_flags.READ_WRITE
    a, b, c = (cl.Buffer(device.context, flags, 4 * size * size) for _ in range(3))
    for x in (a, b):
        cl.enqueue_fill_buffer(device.timed_queue, x, np.float32(1), 0, 4 * size * size)
    found = {}
    for number in (3, 4, 6, 7):
        spec, seconds = catalog[number], {}
        for name, text in parts_of(sources.read(spec.file)).items():
            params = spec.fit(device.limits)
            kernel = launch.Kernel(spec, params, device, device.context, text)
            queue = device.timed_queue
            seconds[name] = seconds_of(partial(kernel, size, size, size, a, b, c, queue))
        seconds["computing alone"] = seconds["computed twice"] - seconds["as it is"]
        found[f"kernel {number}"] = {
            name: model.gflops(size, size, size, each) for name, each in seconds.items()
        }
    return found


#: By name; the name of its part of a record, and the experiment.
EXPERIMENTS = {
    "variants": ("kernel 3 in OpenCL", run_variants),
    "cuda": ("through CUDA", run_cuda),
    "loads": ("10^9 accesses of a warp per second and multiprocessor", run_loads),
    "lines": ("lines of the L1 cache: 10^9 accesses of a warp per second", run_lines),
    "parts": ("parts of a kernel: GFLOPS", run_parts),
}


def main(arguments: list[str] | None = None) -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("file", type=Path, help="the file to write")
    parser.add_argument("--only", default=",".join(EXPERIMENTS), help="such as loads,parts (all)")
    parser.add_argument("--size", type=count, default=4096, help="M = N = K (default: 4096)")
    common.add_device(parser)
    given = parser.parse_args(arguments)
    names = given.only.split(",")
    if unknown := [name for name in names if name not in EXPERIMENTS]:
        raise ValueError(f"--only has {unknown[0]!r}, which is none of {', '.join(EXPERIMENTS)}")
    device = find_device(given.device)
    found = common.load_table(given.file)
    for name in names:
        part, experiment = EXPERIMENTS[name]
        found |= {**common.head(device), part: experiment(device, given.size)}
        common.save(given.file, found)
        print(f"{part}: {found[part]}", flush=True)


if __name__ == "__main__":
    common.run(main)
