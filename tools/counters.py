"""Record what the chip itself counts while a kernel runs: where its cycles go, and why warps wait.

    python tools/counters.py results/my_counters.json
    python tools/counters.py results/my_counters.json --kernels 6 --source new.cl --change vectors

NVIDIA's OpenCL hands out the PTX of a program. Where that text reads OpenCL's global offset, it
reads zero here; CUDA then loads it and runs it, and Nsight Compute can count. This needs an NVIDIA
GPU, CuPy, and ``ncu`` on the PATH. Every text is checked through OpenCL first. A changed text, or
changed parameters, get separate rows in the record.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import common

from gemmlab.cli import device_option, kernel_numbers, record_file
from gemmlab.ladder import Key, find
from gemmlab.measurement import records, timing
from gemmlab.opencl import launch, ptx
from gemmlab.opencl.devices import Device, find_device

#: M = N = K of the products.
SIZE = 4096

#: Counters by the name that the record gives them; a per cent is one of the peak while active.
COUNTERS = {
    "seconds": "gpu__time_duration.sum",
    "issue": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "fma_pipe": "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active",
    "tensor_pipe": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    "local_pipe": "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_active",
    "conflicts_load": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "conflicts_store": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "warps": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "dram": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "l2": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "l2_hits": "lts__t_sector_hit_rate.pct",
    "l1_hits": "l1tex__t_sector_hit_rate.pct",
    "registers": "launch__registers_per_thread",
    "instructions": "smsp__inst_executed.sum",
    "multiply_adds": "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    "active_cycles": "smsp__cycles_active.sum",
}
#: Reasons for which a warp waits, as Nsight Compute names them.
STALLS = (
    "long_scoreboard",
    "short_scoreboard",
    "mio_throttle",
    "lg_throttle",
    "barrier",
    "math_pipe_throttle",
    "not_selected",
    "wait",
    "dispatch_stall",
    "no_instruction",
    "selected",
    "drain",
    "sleeping",
    "membar",
    "gmma",
)
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"

#: What CUDA can launch; kernel 17 finds no work there.
KERNELS: tuple[Key, ...] = (*range(1, 14), 15, 16, 18, 19, "warp_tiling")


def dump(
    folder: Path, device: Device, kernels: list[Key], params: dict[str, int], source: str | None
) -> list[dict[str, Any]]:
    """Check every kernel, write its PTX as CUDA can load it, and say how it is launched."""
    jobs = []
    for number, key in enumerate(kernels):
        options: dict[str, Any] = {"params": params, "source": source, "device": device}
        result = timing.measure(key, SIZE, **options, repeats=10)
        if not result.ok:
            raise ValueError(f"kernel {key}: {result.verdict}")
        kernel = launch.Kernel(find(key), params, device, device.context, source)
        text = ptx.ptx(kernel)
        if text is None:
            raise ValueError(f"{device.name} does not give the PTX of a program")
        (folder / f"{number}.ptx").write_text(re.sub(r"%envreg\d+", "0", text), encoding="utf-8")
        local = kernel.local_size
        total = kernel.global_size(SIZE, SIZE, SIZE)
        jobs.append(
            {
                "kernel": key,
                "params": kernel.params,
                "opencl_gflops": result.gflops,
                "grid": [whole // part for whole, part in zip(total, local, strict=True)],
                "block": list(local),
                "workspace": kernel.workspace if kernel.spec.takes_workspace else None,
            }
        )
        print(key, f"{result.gflops:,.0f} GFLOPS in OpenCL", flush=True)
    (folder / "jobs.json").write_text(json.dumps(jobs), encoding="utf-8")
    return jobs


def run(folder: Path) -> None:
    """In a process of its own, under Nsight Compute: launch every text twice through CUDA."""
    import cupy

    random = cupy.random.default_rng(1)
    a, b, c = (random.standard_normal((SIZE, SIZE), dtype=cupy.float32) for _ in range(3))
    for number, job in enumerate(json.loads((folder / "jobs.json").read_text(encoding="utf-8"))):
        gemm = cupy.RawModule(path=str(folder / f"{number}.ptx")).get_function("gemm")
        args = [*[cupy.int32(SIZE)] * 3, a, b, c]
        if job["workspace"] is not None:
            args.append(cupy.zeros(max(1, job["workspace"]), cupy.float32))
        for _ in range(2):
            gemm(tuple(job["grid"]), tuple(job["block"]), tuple(args))
        cupy.cuda.Device().synchronize()


def count(folder: Path) -> list[dict[str, float]]:
    """What Nsight Compute counts in the second launch of each text."""
    metrics = [*COUNTERS.values(), *(STALL.format(reason) for reason in STALLS)]
    words = [
        "ncu", "--csv", "--page", "raw", "--metrics", ",".join(metrics), "-k", "gemm",
        "--clock-control", "none", "--replay-mode", "kernel", "--print-units", "base",
        sys.executable, __file__, "--launch", str(folder),
    ]  # fmt: skip
    text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    lines = [line for line in text.splitlines() if line.startswith('"')]
    names, _, *rows = csv.reader(lines)
    rows_counted: list[dict[str, float]] = []
    for row in rows[1::2]:
        values = dict(zip(names, row, strict=True))
        counted = {
            name: float(values[metric].replace(",", "")) for name, metric in COUNTERS.items()
        }
        counted["seconds"] *= 1e-9
        counted["multiply_adds"] /= 32  # of warps
        stalls = {f"stall {reason}": float(values[STALL.format(reason)]) for reason in STALLS}
        rows_counted.append(counted | {r: s for r, s in stalls.items() if s >= 0.005})
    return rows_counted


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("path", type=record_file, nargs="?", help="the JSON file to add to")
    words = "such as 6,16 (default: all that CUDA can launch)"
    parser.add_argument("--kernels", type=kernel_numbers, default=[*KERNELS], help=words)
    words = """such as '{"STAGES": 2}'"""
    parser.add_argument("--params", type=json.loads, default={}, help=words)
    words = "a file with OpenCL C to use instead of the kernel's own"
    parser.add_argument("--source", type=Path, metavar="FILE", help=words)
    words = "what the record calls these parameters or this text"
    parser.add_argument("--change", default="", metavar="NAME", help=words)
    parser.add_argument("--launch", type=Path, help=argparse.SUPPRESS)
    device_option(parser)
    given = parser.parse_args()
    if given.launch:
        run(given.launch)
        return
    if given.path is None:
        parser.error("name the file to write")
    device = find_device(given.device)
    source = given.source.read_text(encoding="utf-8") if given.source else None
    with tempfile.TemporaryDirectory() as name:
        jobs = dump(Path(name), device, given.kernels, given.params, source)
        counts = count(Path(name))
    rows = []
    for job, counted in zip(jobs, counts, strict=True):
        shared = {"kernel": job["kernel"], **job["params"], "m": SIZE, "n": SIZE, "k": SIZE}
        shared |= {"variant": given.change} if given.change else {}
        figures = {"GFLOPS": job["opencl_gflops"], **counted}
        rows += [{**shared, "metric": name, "median": value} for name, value in figures.items()]
    records.append(given.path, common.session(device), rows)


if __name__ == "__main__":
    common.run(main)
