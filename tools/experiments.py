"""Experiments behind chapters 15 to 19 and docs/generate.md: what each part of an idea is worth.

    python tools/experiments.py waterfall results/nvidia_h200_waterfall.json   kernels 10 to 19
    python tools/experiments.py beyond results/nvidia_h200_beyond.json         kernels 15 to 17
    python tools/experiments.py tensors results/nvidia_h200_warpgroups.json    kernels 18 and 19
    python tools/experiments.py forms results/nvidia_h200_forms.json           transposed, beta

The first three compare variants of kernels: other parameters, or a text in which one thing is
changed. All are compiled, checked at a smaller size, and timed in alternating rounds, as is cuBLAS
if PyTorch is
installed: a chip that gets warm is then the same for all. Rates are those of the device's clock.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import calls
import common
import numpy as np
import pyopencl as cl
import pyopencl.array as cla

import gemmlab
from gemmlab import check, gemm, model
from gemmlab.catalog import sources
from gemmlab.cli import count
from gemmlab.measurement import timing
from gemmlab.opencl import launch, ptx
from gemmlab.opencl.build import HIDDEN, build
from gemmlab.opencl.devices import Device, find_device

#: Size of the products that are compared with a reference.
CHECKED = 512
#: Launches of a variant in a round; one if it takes more than `SLOW` seconds.
LAUNCHES = 3
SLOW = 0.02


class Variant(NamedTuple):
    """A kernel with parameters; `changes` are parts of its text and what replaces them."""

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
            15, {"UNROLL": 16}, changes=THROUGH_REGISTERS
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
                16, {**tile, "ASYNC": on}, changes=NOT_AHEAD
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
    "18 sums kept": Variant(18, {}, changes=KEPT),
    "18 STAGES=2": Variant(18, {"STAGES": 2}),
    "18 TSK=16": Variant(18, {"TSK": 16, "STAGES": 2}),
    "19": Variant(19, {}),
    "19 PARTS=1": Variant(19, {"PARTS": 1}),
    "19 waiting": Variant(19, {}, changes=WAITING),
    "19 waiting PARTS=1": Variant(19, {"PARTS": 1}, changes=WAITING),
    "19 TSM=128": Variant(19, {"TSM": 128}),
    "19 TSK=8": Variant(19, {"TSK": 8}),
}


# Checking and timing variants


def run(
    variants: Mapping[str, Variant], rounds: int, device: Device, with_errors: bool = False
) -> dict[str, dict]:
    """Check and time all variants, and cuBLAS at each of their sizes.

    Returns:
        By title "kernel", "params", "size", "path", "changed"; "registers" and "spilled" bytes
        where the compiler reports them; "ok" and "verdict" of the check; "gflops" of the median
        launch, "least" and "most"; and `with_errors` "errors" by K. Or "problem", if it does not
        compile.
    """
    # a text is compiled once for all sizes
    texts = {title: repr(variant._replace(size=0)) for title, variant in variants.items()}
    unique = {text: variants[title] for title, text in texts.items()}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        compiled = pool.map(lambda variant: prepared(variant, device), unique.values())
        made = dict(zip(unique, compiled, strict=True))
    for text, (kernel, facts) in made.items():
        if kernel is not None:
            facts |= checked(unique[text], kernel, device)
            if with_errors:
                facts["errors"] = {str(k): error(kernel, k, device) for k in (512, 1024, 4096)}
    found = {title: made[text][1] | {"size": variants[title].size} for title, text in texts.items()}
    launches: dict[str, tuple[int, Callable[[], float]]] = {}
    for title, text in texts.items():
        if (kernel := made[text][0]) is not None:
            size = variants[title].size
            launches[title] = size, partial(seconds_of, kernel, size, device)
    sizes = {size for size, _ in launches.values()}
    for size in sorted(sizes):
        for name, call in cublas(size).items():
            title = name if len(sizes) == 1 else f"{name}, {size}"
            launches[title], found[title] = (size, call), {"size": size}
    for title, rates in alternating(launches, rounds).items():
        found[title] |= rates
    print_table(found)
    return found


def prepared(variant: Variant, device: Device) -> tuple[launch.Kernel | None, dict]:
    """The kernel of a variant, None if it does not compile; and its facts."""
    spec = gemmlab.catalog[variant.kernel]
    try:
        params = spec.complete(dict(variant.params))
        kernel = launch.Kernel(spec, params, device, device.context, variant.source)
        # of a kernel with hidden instructions the compiler would not report what is revealed later
        used = ptx.registers(kernel) if HIDDEN not in kernel.source else None
    except (gemmlab.ParameterError, launch.BuildError) as problem:
        return None, {"kernel": variant.kernel, "problem": str(problem)}
    facts = {"kernel": variant.kernel, "params": kernel.params, "path": kernel.path}
    facts["changed"] = bool(variant.changes)
    return kernel, facts | ({"registers": used[0], "spilled": used[1]} if used else {})


def checked(variant: Variant, kernel: launch.Kernel, device: Device) -> dict[str, Any]:
    result = timing.measure(
        variant.kernel,
        CHECKED,
        params=kernel.params,
        device=device,
        repeats=1,
        source=variant.source,
    )
    return {"ok": result.ok, "verdict": result.verdict}


def alternating(
    launches: Mapping[str, tuple[int, Callable[[], float]]], rounds: int
) -> dict[str, dict[str, float]]:
    """GFLOPS of the median launch, with "least" and "most".

    Args:
        launches: by title the size of a product, and a function that multiplies once and returns
            the seconds that it took.
        rounds: how many, after one to warm up.
    """
    times: dict[str, list[float]] = {title: [] for title in launches}
    for turn in range(rounds + 1):
        for title, (_, call) in launches.items():
            taken = [call()]
            while taken[0] < SLOW and len(taken) < LAUNCHES:
                taken.append(call())
            if turn:
                times[title] += taken
    found = {}
    for title, seconds in times.items():
        size = launches[title][0]
        three = statistics.median(seconds), max(seconds), min(seconds)
        rates = [model.gflops(size, size, size, each) for each in three]
        found[title] = dict(zip(("gflops", "least", "most"), rates, strict=True))
    return found


@cache
def operands(size: int, device: Device) -> list[cl.Buffer]:
    """A, B and C of a size."""
    rng = np.random.default_rng(0)
    matrices = (rng.standard_normal((size, size), np.float32) for _ in range(3))
    return [timing.upload(device, matrix) for matrix in matrices]


def seconds_of(kernel: launch.Kernel, size: int, device: Device) -> float:
    """Multiply once, operands as the kernel wants them; the seconds of all launches."""
    a, b, c = operands(size, device)
    passes = kernel.passes(size, size, size, a, b, c, queue=device.timed_queue)
    passes[-1][1].wait()
    return 1e-9 * sum(event.profile.end - event.profile.start for _, event in passes)


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

    return {"cuBLAS SGEMM": lambda: once(False), "cuBLAS in TF32": lambda: once(True)}


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
    seconds = []
    for _ in range(6):
        event = built(device.timed_queue, (items * groups,), (items,), rounds, 1.0, out)
        event.wait()
        seconds.append((event.profile.end - event.profile.start) * 1e-9)
    value = np.zeros(1, np.float32)
    cl.enqueue_copy(device.timed_queue, value, out)
    done = 2.0 * work * (items // 32) * groups * chains * rounds
    return {"gflops": done / min(seconds) * 1e-9, "sum": float(value[0])}


# Forms of `gemm`


def forms(dtype: str) -> dict[str, dict[str, Any]]:
    """Arguments of `gemm` by the form's name; the plain product comes first."""
    pairs = [("N", "N"), ("N", "T"), ("T", "N"), ("T", "T")]
    if dtype.startswith("complex"):
        pairs += [("N", "C"), ("C", "N"), ("C", "C")]
    found: dict[str, dict[str, Any]] = {f"{a}, {b}": {"trans_a": a, "trans_b": b} for a, b in pairs}
    return found | {"beta = 1": {"beta": 1}}


def contender(device: Device, form: dict, a: np.ndarray, b: np.ndarray) -> calls.Contender:
    """op(a) op(b), or that plus C, written over C as in BLAS."""
    queue = cl.CommandQueue(device.context, device.cl)
    stored = []
    for name, matrix in (("trans_a", a), ("trans_b", b)):
        forms_of = {"N": matrix, "T": matrix.T, "C": matrix.conj().T}
        stored.append(cla.to_device(queue, np.ascontiguousarray(forms_of[form.get(name, "N")])))
    c = cla.zeros(queue, (len(a), b.shape[1]), a.dtype) if "beta" in form else None
    options: dict[str, Any] = {"c": c, "overwrite_c": True, **form}
    return calls.Contender(partial(gemm, 1, stored[0], stored[1], **options), queue.finish)


def is_exact(device: Device, form: dict, dtype: str) -> bool:
    """Whether the product is exact, and with beta the sum with one product more."""
    a, b = check.exact_inputs(300, 200, 260, dtype=np.dtype(dtype))
    product: Any = contender(device, form, a, b)
    results = [product.call().get() for _ in range(2 if "beta" in form else 1)]
    return all(np.array_equal(c, times * (a @ b)) for times, c in enumerate(results, 1))


def measured_forms(device: Device, dtype: str, size: int) -> dict[str, Any]:
    """Seconds per call of each round by form, and rates relative to the plain product."""
    wrong = [name for name, form in forms(dtype).items() if not is_exact(device, form, dtype)]
    a, b = calls.operands(size, size, size, dtype)
    seconds = calls.alternating(
        {name: contender(device, form, a, b) for name, form in forms(dtype).items()}
    )
    plain, *others = seconds
    ratios = {name: float(np.median(np.array(seconds[plain]) / seconds[name])) for name in others}
    print(f"{dtype}, {size}: {ratios}; wrong: {wrong}", flush=True)
    row = {"dtype": dtype, "size": size, "seconds": seconds}
    return {**row, "beside_plain": ratios, "wrong": wrong}


# Commands


def sized(variants: Mapping[str, Variant], size: int | None) -> dict[str, Variant]:
    """The variants at another size, for a trial."""
    return {
        title: variant._replace(size=size or variant.size) for title, variant in variants.items()
    }


def run_waterfall(given: argparse.Namespace, device: Device) -> None:
    found = run(sized(WATERFALL, given.size), given.rounds, device)
    head = common.head(device)
    results = [
        {**one, **dict.fromkeys("mnk", one["size"]), "when": head["date"]}
        for one in found.values()
        if one.get("kernel", 0) > 13
        and one.get("params") == gemmlab.catalog[one["kernel"]].defaults
    ]
    common.save(given.file, {**head, "size": given.size or 4096, "ways": found, "results": results})


def run_beyond(given: argparse.Namespace, device: Device) -> None:
    found: dict[str, dict] = {}
    if given.file.exists():
        found = json.loads(given.file.read_text(encoding="utf-8"))["experiments"]
    for name, variants in BEYOND.items():
        print(f"{name}:")
        found[name] = run(sized(variants, given.size), given.rounds, device)
        common.save(given.file, {**common.head(device), "experiments": found})


def run_tensors(given: argparse.Namespace, device: Device) -> None:
    found = run(sized(TENSORS, given.size), given.rounds, device, with_errors=True)
    record = {**common.head(device), "size": given.size or 4096, "ways": found}
    common.save(given.file, record)
    loops: dict[str, dict] = {}
    for name in LOOPS if "tensor" in device.features else ():
        for chains in (4, 8, 16):
            loops[f"{name}, {chains} per round"] = loop(name, chains, device)
    print(loops)
    common.save(given.file, {**record, "loops": loops})


def run_forms(given: argparse.Namespace, device: Device) -> None:
    sizes = (given.size,) if given.size else (2048, 4096)
    found = [
        measured_forms(device, dtype, size) for dtype in ("float32", "complex64") for size in sizes
    ]
    common.save(given.file, {**common.head(device), "forms": found})


EXPERIMENTS = {
    "waterfall": run_waterfall,
    "beyond": run_beyond,
    "tensors": run_tensors,
    "forms": run_forms,
}


def main(arguments: list[str] | None = None) -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("experiment", choices=list(EXPERIMENTS))
    parser.add_argument("file", type=Path, help="the file to write")
    parser.add_argument("--rounds", type=count, default=8, help="alternating rounds (default: 8)")
    parser.add_argument("--size", type=count, help="a multiple of all tiles, for a trial")
    common.add_device(parser)
    given = parser.parse_args(arguments)
    EXPERIMENTS[given.experiment](given, find_device(given.device))


if __name__ == "__main__":
    common.run(main)
