"""Experiments behind the chapters and docs/model.md: what each part of an idea is worth.

    python tools/experiments.py waterfall results/nvidia_h200_waterfall.json   kernels 10 to 19
    python tools/experiments.py beyond results/nvidia_h200_beyond.json         kernels 15 to 17
    python tools/experiments.py tensors results/nvidia_h200_warpgroups.json    kernels 18 and 19
    python tools/experiments.py loads results/nvidia_h200_ceilings.json        what compilers merge
    python tools/experiments.py parts results/nvidia_h200_experiments.json     loading, computing

Each compares variants of kernels: other parameters, or a text in which one thing is changed. All
are compiled, checked at a smaller size, and timed in alternating rounds on the device's clock, as
is cuBLAS if PyTorch is installed: a chip that warms up then does so for all.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any, NamedTuple

import common
import numpy as np
import pyopencl as cl

import gemmlab
from gemmlab import check, model
from gemmlab.catalog import sources
from gemmlab.cli import count, output_file
from gemmlab.measurement import clock, records, timing
from gemmlab.opencl import launch, ptx
from gemmlab.opencl.build import HIDDEN, build
from gemmlab.opencl.devices import Device, find_device

#: Size of the products that are compared with a reference.
CHECKED = 512
#: Launches of a variant in a round, after one to warm up; the median counts.
LAUNCHES = 3


class Variant(NamedTuple):
    """A kernel with parameters, timed at M = N = K = size; `source` replaces its own text."""

    kernel: int
    params: Mapping[str, int]
    size: int = 4096
    source: str | None = None


def edited(kernel: int, *changes: tuple[str, str]) -> str:
    """A kernel's text with parts replaced. Raises ValueError if it does not have one of them."""
    text = sources.read(gemmlab.catalog[kernel].file)
    for old, new in changes:
        if old not in text:
            raise ValueError(f"kernel {kernel} has no {old!r}")
        text = text.replace(old, new)
    return text


# Changes of texts

#: Kernel 15 fetches the next tiles into registers before it computes, and stores them to local
#: memory afterwards.
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
    (
        "            if (k == TSK - 1) {\n",
        "            FRAGMENT(k, k%2)\n            if (k == TSK - 1) {\n",
    ),
)

#: Kernel 18 leaves its sums in the tensor cores.
KEPT = (
    ("float sum[4] = {0.0f};", ";"),
    *((f"MMA(sum, {a}, a[i], {b}", f"MMA(acc[i][j], {a}, a[i], {b}") for a, b in
      (("SMALL", "BIG"), ("BIG", "SMALL"), ("BIG", "BIG"))),
    ("acc[i][j][e] += sum[e];", ";"),
)  # fmt: skip
#: Kernel 19 waits for its instructions at once, as kernel 18 does.
WAITING = (("            END();\n#else", "            END();\n            FINISH();\n#else"),)


#: The compiler may merge loads of kernel 3 from aligned arrays only.
ALIGNED = ("__local float ", "__local __attribute__((aligned(16))) float ")
#: Without unrolling, there is nothing to merge.
LOOP = "for (int k = 0; k < TS; k++) {"
ROLLED = (LOOP, f"#pragma unroll 1\n        {LOOP}")


def parts_of(kernel: int) -> dict[str, str]:
    """A kernel's text, with tiles loaded only once, and with each computed twice: C is wrong."""
    text = edited(kernel)
    loading = re.search(r"( *// load: .*?)(?=\n\n *// barrier: the tiles are complete)", text, re.S)
    computing = re.search(r"( *// compute\n)(.*?)(?=\n\n *// barrier: nobody needs)", text, re.S)
    if loading is None or computing is None:
        raise ValueError(f"kernel {kernel} has other phases")
    once = f"if (k0 == 0) {{\n{loading[1]}\n}}"
    twice = f"#pragma unroll 1\nfor (int again = 0; again < 2; again++) {{\n{computing[2]}\n}}"
    return {
        "as it is": text,
        "loaded once": edited(kernel, (loading[1], once)),
        "computed twice": edited(kernel, (computing[2], twice)),
    }


# Variants by title

LARGE = {"TSM": 256, "TSN": 128, "TSK": 8, "WPTM": 16}
SMALL = {"TSM": 128, "TSN": 64, "TSK": 16, "WPTM": 8}
EIGHTS = {"TSM": 256, "TSN": 64}
FOURS = {"TSM": 128, "TSN": 32, "TSK": 32, "WPTM": 4, "WPTN": 4}

#: The steps from kernel 10 on, each with what it is like without its idea.
WATERFALL = {
    "10 any size": Variant(10, {}),
    "15 warp tiles": Variant(15, {}),
    "15 without vectors": Variant(15, {"LWIDTH": 1}),
    "15 with flat warps": Variant(15, {"WARPM": 16}),
    "15 with blocks of 16 x 8": Variant(15, {**LARGE, "WARPM": 4}),
    "16 asynchronous copies": Variant(16, {}),
    "16 through registers": Variant(16, {"ASYNC": 0, "STAGES": 2}),
    "16 in two stages": Variant(16, {"STAGES": 2}),
    "16 with blocks of 8 x 8": Variant(16, SMALL),
    "17 Stream-K": Variant(17, {}),
    "17 without Stream-K": Variant(17, {"GROUPS": 0}),
    "17 without an order of tiles": Variant(17, {"ORDER": 1}),
    "18 tensor cores, 3xTF32": Variant(18, {}),
    "18 tensor cores, TF32": Variant(18, {"PARTS": 1}),
    "18 without tensor cores": Variant(18, {"TENSOR": 0}),
    "19 warpgroups, 3xTF32": Variant(19, {}),
    "19 warpgroups, TF32": Variant(19, {"PARTS": 1}),
}
BEYOND: dict[str, dict[str, Variant]] = {
    "warps": {
        "kernel 10": Variant(10, {}),
        "kernel 15": Variant(15, {}),
        **{
            f"{side} x {side}, LWIDTH={width}, WARPM={rows}": Variant(
                15, {**tile, "LWIDTH": width, "WARPM": rows}
            )
            for side, tile in ((8, EIGHTS), (4, FOURS))
            for width in (4, 1)
            for rows in (4, 8, 16, 32)
        },
    },
    "copies": {
        "kernel 15": Variant(15, {}),
        "kernel 15, UNROLL=16": Variant(15, {"UNROLL": 16}),
        "kernel 15, UNROLL=16, through registers": Variant(
            15, {"UNROLL": 16}, source=edited(15, *THROUGH_REGISTERS)
        ),
        **{
            f"{side} x 8, ASYNC={on}, STAGES={stages}": Variant(
                16, {**tile, "ASYNC": on, "STAGES": stages}
            )
            for side, tile in ((16, {}), (8, SMALL))
            for on in (0, 1)
            for stages in (2, 3, 4)
        },
        **{
            f"{side} x 8, ASYNC={on}, fragments not ahead": Variant(
                16, {**tile, "ASYNC": on}, source=edited(16, *NOT_AHEAD)
            )
            for side, tile in ((16, {}), (8, SMALL))
            for on in (0, 1)
        },
    },
    "shares": {
        f"GROUPS={groups}, {size}": Variant(17, {"GROUPS": groups}, size)
        for size in range(1024, 4097, 512)
        for groups in (0, 132)
    },
    "order": {
        f"ORDER={order}, {size}": Variant(17, {"ORDER": order, "GROUPS": 0}, size)
        for size in (4096, 8192)
        for order in (1, 4, 8, 16)
    },
}
TENSORS = {
    "18": Variant(18, {}),
    "18 PARTS=1": Variant(18, {"PARTS": 1}),
    "18 sums kept": Variant(18, {}, source=edited(18, *KEPT)),
    "18 STAGES=2": Variant(18, {"STAGES": 2}),
    "18 TSK=16": Variant(18, {"TSK": 16, "STAGES": 2}),
    "19": Variant(19, {}),
    "19 PARTS=1": Variant(19, {"PARTS": 1}),
    "19 waiting": Variant(19, {}, source=edited(19, *WAITING)),
    "19 waiting PARTS=1": Variant(19, {"PARTS": 1}, source=edited(19, *WAITING)),
    "19 TSM=128": Variant(19, {"TSM": 128}),
    "19 TSK=8": Variant(19, {"TSK": 8}),
}
MERGING = {
    "as it is": Variant(3, {}),
    "aligned(16)": Variant(3, {}, source=edited(3, ALIGNED)),
    "unroll 1": Variant(3, {}, source=edited(3, ROLLED)),
}
PARTS = {
    f"kernel {kernel}": {
        title: Variant(kernel, {}, source=text) for title, text in parts_of(kernel).items()
    }
    for kernel in (3, 4, 6, 7)
}


# Checking and timing variants


def run(variants: Mapping[str, Variant], rounds: int, device: Device) -> dict[str, dict]:
    """Check and time all variants, and cuBLAS at each of their sizes.

    Returns:
        By title "kernel", "params", "size", "path", "changed"; "registers" and "spilled" bytes
        where the compiler reports them; "ok" and "verdict" of the check; "gflops" of the median
        round, "least" and "most"; and on tensor cores "errors" by K. Or "problem", if it does not
        compile.
    """
    found: dict[str, dict] = {}
    timed: dict[str, Callable[[], float]] = {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        kernels = list(pool.map(lambda variant: compiled(variant, device), variants.values()))
    for (title, variant), kernel in zip(variants.items(), kernels, strict=True):
        found[title] = {"kernel": variant.kernel, "size": variant.size}
        if isinstance(kernel, str):
            found[title]["problem"] = kernel
            continue
        found[title] |= facts(variant, kernel, device)
        if kernel.spec.tensor:
            found[title]["errors"] = {str(k): error(kernel, k, device) for k in (512, 1024, 4096)}
        timed[title] = partial(round_seconds, kernel, variant.size, device)
    sizes = sorted({variant.size for variant in variants.values()})
    for size in sizes:
        for name, call in cublas(size).items():
            title = name if len(sizes) == 1 else f"{name}, {size}"
            timed[title], found[title] = call, {"size": size}
    for title, seconds in clock.alternating(timed, rounds).items():
        sides = (found[title]["size"],) * 3
        three = statistics.median(seconds), max(seconds), min(seconds)
        rates = [model.gflops(*sides, each) for each in three]
        found[title] |= dict(zip(("gflops", "least", "most"), rates, strict=True))
    print_table(found)
    return found


def compiled(variant: Variant, device: Device) -> launch.Kernel | str:
    """The kernel of a variant, or why it does not compile."""
    spec = gemmlab.catalog[variant.kernel]
    params = spec.complete(dict(variant.params))
    try:
        return launch.Kernel(spec, params, device, device.context, variant.source)
    except (gemmlab.ParameterError, launch.BuildError) as problem:
        return str(problem)


def facts(variant: Variant, kernel: launch.Kernel, device: Device) -> dict[str, Any]:
    """What the compiler reports, and the verdict of a checked product."""
    changed = variant.source is not None
    result = timing.measure(
        variant.kernel,
        CHECKED,
        params=kernel.params,
        device=device,
        repeats=1,
        source=variant.source,
    )
    found = {"params": kernel.params, "path": kernel.path, "changed": changed}
    # for hidden instructions the compiler would not report what is revealed later
    if HIDDEN not in kernel.source and (used := ptx.registers(kernel)):
        found |= {"registers": used[0], "spilled": used[1]}
    return found | {"ok": result.ok, "verdict": result.verdict}


@cache
def operands(size: int, device: Device) -> list[cl.Buffer]:
    """A, B and C of a size."""
    rng = np.random.default_rng(0)
    matrices = (rng.standard_normal((size, size), np.float32) for _ in range(3))
    return [timing.upload(device, matrix) for matrix in matrices]


def round_seconds(kernel: launch.Kernel, size: int, device: Device) -> float:
    """The median seconds of a product, operands as the kernel wants them, in some launches."""

    def once() -> float:
        a, b, c = operands(size, device)
        passes = kernel.passes(size, size, size, a, b, c, device.timed_queue)
        return clock.device_seconds(*(event for _, event in passes))

    return statistics.median([once() for _ in range(LAUNCHES + 1)][1:])


def cublas(size: int) -> dict[str, Callable[[], float]]:
    """The same for cuBLAS, in float32 and in TF32; nothing without PyTorch and its device."""
    try:
        import torch
    except ImportError:
        return {}
    if not torch.cuda.is_available():
        return {}
    a, b, c = (torch.randn(size, size, device="cuda") for _ in range(3))

    def once(tf32: bool) -> float:
        torch.backends.cuda.matmul.allow_tf32 = tf32
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        torch.matmul(a, b, out=c)
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e-3

    def median(tf32: bool) -> float:
        return statistics.median([once(tf32) for _ in range(LAUNCHES + 1)][1:])

    return {"cuBLAS SGEMM": partial(median, False), "cuBLAS in TF32": partial(median, True)}


def error(kernel: launch.Kernel, k: int, device: Device) -> float:
    """The error of a product of normal numbers, relative to the product (Frobenius norms)."""
    a, b = check.random_inputs(CHECKED, CHECKED, k, kind="normal")
    stored = a, b.T if kernel.b_transposed else b
    x, y = (timing.upload(device, np.asfortranarray(matrix)) for matrix in stored)
    c = np.empty((CHECKED, CHECKED), np.float32)
    out = cl.Buffer(device.context, cl.mem_flags.READ_WRITE, c.nbytes)
    kernel.passes(CHECKED, CHECKED, k, x, y, out)[-1][1].wait()
    cl.enqueue_copy(device.timed_queue, c, out)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    return float(np.linalg.norm(c.T - exact) / np.linalg.norm(exact))


def print_table(found: Mapping[str, dict]) -> None:
    for title, one in found.items():
        words = one.get("problem") or (
            f"{one['gflops']:10,.0f} GFLOPS ({one['least']:,.0f} to {one['most']:,.0f})"
        )
        if "registers" in one:
            words += f", {one['registers']} registers, {one['spilled']} bytes spilled"
        if not one.get("ok", True):
            words += f", {one['verdict']}"
        print(f"{title:40} {words}", flush=True)


# Loops of a single instruction of tensor cores

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
#: The kernel whose macros a loop uses, multiply-adds of a warp per round, work-items, and the text.
LOOPS = {"mma.sync": (18, 1024, 256, MMA_LOOP), "wgmma": (19, 64 * 128 * 8 // 4, 128, WGMMA_LOOP)}


def loop(name: str, chains: int, device: Device) -> dict[str, float]:
    """The rate of an instruction alone, in GFLOPS, with `chains` of them per round."""
    kernel, work, items, text = LOOPS[name]
    head = sources.read(gemmlab.catalog[kernel].file).split("__kernel __attribute__")[0]
    built = build(device, device.context, name, head + text, {"CHAINS": chains}, "loop")
    groups, rounds = device.units * 16, 2048
    out = cl.Buffer(device.context, cl.mem_flags.READ_WRITE, 4 * items * groups)
    arguments = (items * groups,), (items,), rounds, 1.0, out
    seconds = clock.launch_seconds(lambda: built(device.timed_queue, *arguments), 5)
    value = np.zeros(1, np.float32)
    cl.enqueue_copy(device.timed_queue, value, out)
    done = 2.0 * work * (items // 32) * groups * chains * rounds
    return {"gflops": done / min(seconds) * 1e-9, "sum": float(value[0])}


# Commands


#: Times variants as `run` does.
Run = Callable[[Mapping[str, Variant]], dict[str, dict]]


def waterfall(timed: Run, device: Device) -> dict[str, Any]:
    """The steps from kernel 10 on, and as results those with default parameters."""
    found, today = timed(WATERFALL), records.origin("")["date"]
    results = [
        {**one, **dict.fromkeys("mnk", one["size"]), "when": today}
        for one in found.values()
        if one.get("kernel", 0) > 13
        and one.get("params") == gemmlab.catalog[one["kernel"]].defaults
    ]
    return {"ways": found, "results": results}


def beyond(timed: Run, device: Device) -> dict[str, Any]:
    """Kernels 15 to 17 at many settings."""
    return {"experiments": {name: timed(variants) for name, variants in BEYOND.items()}}


def tensors(timed: Run, device: Device) -> dict[str, Any]:
    """Kernels 18 and 19 with parts switched off, and their instructions alone."""
    loops = {}
    for name in LOOPS if "tensor" in device.features else ():
        for chains in (4, 8, 16):
            loops[f"{name}, {chains} per round"] = loop(name, chains, device)
    return {"ways": timed(TENSORS), "loops": loops}


def loads(timed: Run, device: Device) -> dict[str, Any]:
    """Kernel 3 where compilers can merge loads of neighbours, and where they cannot."""
    found = {"kernel 3 in OpenCL": timed(MERGING)}
    if "nvidia" in device.features:
        cuda, rolled = common.lesson("cuda"), edited(3, ROLLED)
        found["through CUDA"] = {
            "kernel 3": cuda.measure(3, 4096),
            "kernel 3, unroll 1": cuda.measure(3, 4096, source=rolled),
        }
    return found


def parts(timed: Run, device: Device) -> dict[str, Any]:
    """GFLOPS with tiles loaded once, with each computed twice, and of computing alone."""
    found = {}
    for kernel, variants in PARTS.items():
        rates = {title: one["gflops"] for title, one in timed(variants).items() if "kernel" in one}
        alone = 1 / (1 / rates["computed twice"] - 1 / rates["as it is"])
        found[kernel] = {**rates, "computing alone": alone}
    return {"parts of a kernel: GFLOPS": found}


EXPERIMENTS = {one.__name__: one for one in (waterfall, beyond, tensors, loads, parts)}


def main(arguments: list[str] | None = None) -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("experiment", choices=list(EXPERIMENTS))
    parser.add_argument("file", type=output_file, help="the file to write")
    parser.add_argument("--rounds", type=count, default=8, help="alternating rounds (default: 8)")
    parser.add_argument("--size", type=count, help="a multiple of all tiles, for a trial")
    common.add_device(parser)
    given = parser.parse_args(arguments)
    device = find_device(given.device)

    def timed(variants: Mapping[str, Variant]) -> dict[str, dict]:
        resized = {
            title: variant._replace(size=given.size or variant.size)
            for title, variant in variants.items()
        }
        return run(resized, given.rounds, device)

    found = EXPERIMENTS[given.experiment](timed, device)
    records.write(given.file, {**common.head(device), "size": given.size or 4096, **found})


if __name__ == "__main__":
    common.run(main)
