"""Record what the chip itself counts while a kernel runs: where its cycles go, and why warps wait.

    python tools/counters.py results/nvidia_h200_counters.json

NVIDIA's OpenCL hands out the PTX of a program. Where that text reads OpenCL's global offset, it
reads zero here; CUDA then loads it and runs it, and Nsight Compute can count. This needs an NVIDIA
GPU, CuPy, and ``ncu`` on the PATH. Kernel 6 is also recorded with several changes of its text, to
show which of them lifts its rate. Every text is checked through OpenCL first.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import common

import gemmlab
from gemmlab.catalog import Key, sources
from gemmlab.cli import device_option, output_file
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

# Changes of kernel 6: pieces of its text, and what replaces them.

#: Four neighbouring rows and columns per work-item, which one load from local memory fetches.
VECTORS = (
    ("Atile[TSK][TSM];", "Atile[TSK][TSM] __attribute__((aligned(16)));"),
    ("Btile[TSN][TSK + PAD];", "Btile[TSK][TSN] __attribute__((aligned(16)));"),
    ("Btile[i][j] =", "Btile[j][i] ="),
    ("Atile[k][tm + i*RTSM]", "Atile[k][4*(tm + i/4*RTSM) + i%4]"),
    ("Btile[tn + j*RTSN][k]", "Btile[k][4*(tn + j/4*RTSN) + j%4]"),
    (
        "C[(n0 + tn + j*RTSN)*M + m0 + tm + i*RTSM]",
        "C[(n0 + 4*(tn + j/4*RTSN) + j%4)*M + m0 + 4*(tm + i/4*RTSM) + i%4]",
    ),
)
#: With vectors, the fragments of the next step of k are loaded before those of this one are used.
AHEAD = """        // compute
        #define FRAGMENT(k, to) \\
            for (int i = 0; i < WPTM; i += 4) \\
                *(float4*)&a[to][i] = \\
                    *(const volatile __local float4*)&Atile[k][4*tm + i*RTSM]; \\
            for (int j = 0; j < WPTN; j += 4) \\
                *(float4*)&b[to][j] = \\
                    *(const volatile __local float4*)&Btile[k][4*tn + j*RTSN];
        float a[2][WPTM] __attribute__((aligned(16)));
        float b[2][WPTN] __attribute__((aligned(16)));
        FRAGMENT(0, 0)
        #pragma unroll
        for (int k = 0; k < TSK; k++) {
            if (k + 1 < TSK) {
                FRAGMENT(k + 1, (k + 1)%2)
            }
            for (int j = 0; j < WPTN; j++) {
                for (int i = 0; i < WPTM; i++) {
                    acc[j][i] += a[k%2][i] * b[k%2][j];
                }
            }
        }

"""


class Subject(NamedTuple):
    """A kernel to record: with a change of its text, if it has a name for one."""

    kernel: Key
    change: str = ""
    changes: tuple[tuple[str, str], ...] = ()
    params: Mapping[str, int] = MappingProxyType({})
    compute: str = ""  # instead of its section "compute"

    def source(self) -> str | None:
        """The changed text; None for the kernel's own. ValueError if it lacks a piece."""
        text = sources.read(gemmlab.catalog[self.kernel].file)
        for old, new in self.changes:
            if old not in text:
                raise ValueError(f"kernel {self.kernel} has no {old!r}")
            text = text.replace(old, new)
        if self.compute:
            begin, end = text.index("        // compute"), text.index("        // barrier: nobody")
            text = text[:begin] + self.compute + text[end:]
        return text if self.changes else None


#: Kernel 17 is missing: launched through CUDA it finds no work.
SUBJECTS = [
    *(Subject(number) for number in (*range(1, 14), 15, 16, 18, 19, "warp_tiling")),
    Subject(6, "tile of 64 x 64", params={"TSM": 64, "TSN": 64}),
    Subject(16, "two stages", params={"STAGES": 2}),
    Subject(16, "plain copies", params={"STAGES": 2, "ASYNC": 0}),
    Subject(19, "one part", params={"PARTS": 1}),
    Subject(6, "vectors", VECTORS),
    Subject(6, "vectors, fragments ahead", VECTORS, compute=AHEAD),
]


def dump(folder: Path, device: Device) -> list[dict[str, Any]]:
    """Check every subject, write its PTX as CUDA can load it, and say how it is launched."""
    jobs = []
    for number, subject in enumerate(SUBJECTS):
        source, params = subject.source(), dict(subject.params)
        result = timing.measure(
            subject.kernel, SIZE, params=params, source=source, device=device, repeats=10
        )
        if not result.ok:
            raise ValueError(f"kernel {subject.kernel} {subject.change}: {result.verdict}")
        kernel = launch.Kernel(
            gemmlab.catalog[subject.kernel], params, device, device.context, source
        )
        text = ptx.ptx(kernel)
        if text is None:
            raise ValueError(f"{device.name} does not give the PTX of a program")
        (folder / f"{number}.ptx").write_text(re.sub(r"%envreg\d+", "0", text), encoding="utf-8")
        local = kernel.local_size
        total = kernel.global_size(SIZE, SIZE, SIZE)
        jobs.append(
            {
                "kernel": subject.kernel,
                "change": subject.change,
                "params": kernel.params,
                "opencl_gflops": result.gflops,
                "grid": [whole // part for whole, part in zip(total, local, strict=True)],
                "block": list(local),
                "workspace": kernel.workspace if kernel.spec.takes_workspace else None,
            }
        )
        print(subject.kernel, subject.change, f"{result.gflops:,.0f} GFLOPS in OpenCL", flush=True)
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


def count(folder: Path) -> list[dict[str, Any]]:
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
    rows_counted: list[dict[str, Any]] = []
    for row in rows[1::2]:
        values = dict(zip(names, row, strict=True))
        counted = {
            name: float(values[metric].replace(",", "")) for name, metric in COUNTERS.items()
        }
        counted["seconds"] *= 1e-9
        counted["multiply_adds"] /= 32  # of warps
        stalls = {reason: float(values[STALL.format(reason)]) for reason in STALLS}
        rows_counted.append(counted | {"stalls": {r: s for r, s in stalls.items() if s >= 0.005}})
    return rows_counted


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("path", type=output_file, nargs="?", help="the JSON file to write")
    parser.add_argument("--launch", type=Path, help=argparse.SUPPRESS)
    device_option(parser)
    options = parser.parse_args()
    if options.launch:
        run(options.launch)
        return
    if options.path is None:
        parser.error("name the file to write")
    device = find_device(options.device)
    with tempfile.TemporaryDirectory() as name:
        jobs = dump(Path(name), device)
        counts = count(Path(name))
    rows = [
        {key: job[key] for key in ("kernel", "change", "params", "opencl_gflops")} | counted
        for job, counted in zip(jobs, counts, strict=True)
    ]
    records.write(options.path, common.head(device) | {"size": SIZE, "rows": rows})


if __name__ == "__main__":
    common.run(main)
