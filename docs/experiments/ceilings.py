"""Experiments behind docs/model.md: the numbers of a chip, and why CUDA's kernel 3 is faster than OpenCL's.

python docs/experiments/ceilings.py OUT [--seconds 200] [--size 4096] [--only peaks,...] [--device 0]

Each experiment writes OUT/NAME.json (and PTX texts), and is left out if its file is there, so that the script can be
started again. A failure is written into the file and does not stop the others. CUDA parts need CuPy; the machine code
needs ptxas and nvdisasm, of a CUDA toolkit or of Triton.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyopencl as cl

import gemmlab
from gemmlab.bench import peaks, timing
from gemmlab.catalog import sources
from gemmlab.opencl import launch, ptx
from gemmlab.opencl.build import build
from gemmlab.opencl.devices import find_device

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "notebooks"))
from lessons import cuda

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
void loads(const int rounds, const int step, const __global V* restrict in, __global float* restrict out)
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
        const int from = ((r*step) & 7)*32 + at; // what the compiler cannot know, it cannot load once for two rounds
        #pragma unroll
        for (int c = 0; c < 8; c++) acc[c] += tile[from + c*32];
    }
    float sum = 0.0f;
    for (int c = 0; c < 8; c++) sum += ALL(acc[c]);
    out[get_global_id(0)] = sum;
}
"""
#: Which vector each lane reads: all different; all the same; and groups of lanes that share one.
LANES = {"different": "lane", "same": "0", "pairs share": "lane/2", "fours share": "lane/4", "eights share": "lane/8",
         "8 in turn": "lane%8", "16 in turn": "lane%16", "stride 2": "(lane*2)%32"}  # fmt: skip

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
    text = sources.read(gemmlab.catalog[3].file)
    aligned = text.replace("__local float ", "__local __attribute__((aligned(16))) float ")
    by_four = text.replace(VECTORS, BY_FOUR).replace(LOOP, LOOP.replace("k++", "k += 4"))
    cast = by_four.replace("vload4(0, &Btile[tn + j*RTS][k])", "*(const __local float4*)&Btile[tn + j*RTS][k]")
    return {
        "as it is": text,
        "aligned(16)": aligned,
        "unroll 1": text.replace(LOOP, "#pragma unroll 1\n        " + LOOP),
        "unroll 4": text.replace(LOOP, "#pragma unroll 4\n        " + LOOP),
        "unroll all": text.replace(LOOP, "#pragma unroll\n        " + LOOP),
        "aligned(16), unroll all": aligned.replace(LOOP, "#pragma unroll\n        " + LOOP),
        "vload4 of B": by_four,
        "float4 of B": cast.replace("__local float Btile", "__local __attribute__((aligned(16))) float Btile"),
    }


def widths(text: str) -> dict[str, int]:
    """Instructions of a PTX text, vector loads counted once: local loads of 1, 2 and 4 floats, multiply-adds."""
    found = {f"ld.shared{v}": len(re.findall(rf"ld\.shared{re.escape(v)}\.[fb]32", text)) for v in ("", ".v2", ".v4")}
    return found | {"fma": len(re.findall(r"fma\.rn\.f32", text)), "ld.global": len(re.findall(r"ld\.global", text))}


class Clock:
    """Watches the clock of the multiprocessors (MHz) and the power (W) while something runs."""

    def __enter__(self) -> Clock:
        self.seen: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        command = ["nvidia-smi", "--query-gpu=clocks.sm,power.draw", "--format=csv,noheader,nounits"]
        while not self._stop.is_set():
            try:
                line = subprocess.run(command, capture_output=True, text=True, timeout=5).stdout.splitlines()
                self.seen += line[:1]
            except (OSError, subprocess.TimeoutExpired):
                return
            self._stop.wait(0.1)

    def __exit__(self, *_) -> None:
        self._stop.set()
        self._thread.join()


def repeat(run: Callable[[], cl.Event], seconds: float) -> list[float]:
    """Seconds of each run, for so long."""
    times, end = [], time.monotonic() + seconds
    while not times or time.monotonic() < end:
        times.append(peaks._seconds(run()))
    return times


def measure_peaks(device, given) -> dict:
    """Every loop of multiply-adds, local memory, the L2 cache, a copy."""
    found: dict = {"peaks": vars(gemmlab.peaks(device, caches=True)), "loops": {}}
    wide = [w for w in (1, 2, 4, 8, 16) if w <= device.limits.vector]
    for width in wide:
        for chains in (4, 8, 12, 16, 24, 32):
            if 16 <= width * chains <= 128:
                gflops, _, how = peaks._loop(device, chains, width, 1)
                found["loops"][how] = gflops
    found["cache_size"] = device.cl.global_mem_cache_size
    found["clock"] = device.cl.max_clock_frequency
    local, items = peaks._items(device)
    chains, found["cache by size"] = 4, {}
    for places in (2**k for k in range(16, 23)):
        rate = peaks._cache(device, 4, chains, places, (1, chains * items, items))
        found["cache by size"][str(16 * (places + chains * items))] = rate
    return found


def accesses(device, lanes: dict[str, str], widths: tuple[int, ...], places: tuple[int, ...]) -> dict[str, float]:
    """10^9 accesses of a warp per second and multiprocessor, by what each lane reads; places: 1 local memory, 0 L1."""
    found: dict[str, float] = {}
    groups = device.units * (16 if device.kind == "GPU" else 1)
    flags = cl.mem_flags.READ_WRITE
    out = cl.Buffer(device.context, flags, 4 * 256 * groups)
    data = cl.Buffer(device.context, flags, 4 * 16 * 4096)
    cl.enqueue_fill_buffer(device.timed_queue, data, np.float32(1), 0, 4 * 16 * 4096)
    for local in places:
        for width in widths:
            for name, lane in lanes.items():
                params = {"WIDTH": width, "LOCAL": local, "LANE": f"({lane})"}
                kernel = build(device, device.context, "loads", LOADS, params, "loads")
                rate = peaks._rate(
                    lambda rounds, k=kernel: k(device.timed_queue, (256 * groups,), (256,), rounds, 3, data, out)
                )
                place = "local" if local else "L1"
                found[f"{place}, {width} floats, {name}"] = 8 * 8 * groups * rate / device.units
    return found


def measure_loads(device, given) -> dict:
    """Turns per access of a warp, by the pattern of its lanes: the rate beside that of single floats, all different."""
    found = accesses(device, LANES, (1, 2, 4), (1, 0))
    return {"10^9 accesses of a warp per second and multiprocessor": found}


def measure_lines(device, given) -> dict:
    """The same of single floats in several lines of the L1 cache, which fall into the same bank or into others."""
    lanes = {"1 line": "lane", "2 lines, side by side": "lane+16", "as many words as lanes, 2 lines": "lane*2"}
    for lines in (2, 4, 8, 16, 32):
        for distance in (32, 36, 33):
            lanes[f"{lines} lines, {distance} floats apart"] = f"(lane/{32 // lines})*{distance}"
    return {"10^9 accesses of a warp per second and multiprocessor": accesses(device, lanes, (1,), (0,))}


def measure_clock(device, given) -> dict:
    """The clock while kernels run for two seconds each."""
    found = {}
    kernel = peaks._compiled(device, {"WIDTH": 8, "CHAINS": 12, "FUSED": 1}, "fma_loop")
    local, items = peaks._items(device)
    out = cl.Buffer(device.context, cl.mem_flags.READ_WRITE, 4 * items)
    rounds = 20_000 if device.kind == "GPU" else 200
    with Clock() as clock:
        times = repeat(lambda: kernel(device.timed_queue, (items,), (local,), rounds, 0.999, 0.001, out), 2)
    found["multiply-adds"] = {"gflops": 2 * 96 * rounds * items / statistics.median(times) * 1e-9, "seen": clock.seen}
    for number in (2, 3, 6, 9):
        with Clock() as clock:
            result = timing.measure(number, given.size, device=device, repeats=100 if device.kind == "GPU" else 3)
        found[f"kernel {number}"] = {"gflops": result.gflops, "seen": clock.seen}
    return found


def measure_variants(device, given) -> dict:
    """Kernel 3 in OpenCL with one thing changed, each with its registers and the widths of its loads."""
    found: dict = {}
    for name, text in variants().items():
        try:
            result = timing.measure(3, given.size, device=device, source=text, repeats=10)
            kernel = launch.Kernel(gemmlab.catalog[3], gemmlab.catalog[3].defaults, device, device.context, text)
            code = ptx.ptx(kernel)
            found[name] = {"gflops": result.gflops, "ok": result.ok, "registers": ptx.registers(kernel)}
            if code:
                found[name]["instructions"] = widths(code)
                (given.out / f"opencl 3 {name}.ptx".replace(" ", "_")).write_text(code)
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"
    return found


def measure_cuda(device, given) -> dict:
    """Kernels 2, 3 and 5 through CUDA, with the widths of their loads; kernel 3 also not unrolled."""
    import cupy

    found: dict = {}
    original = cuda.translate
    for number in (2, 3, 5):
        found[f"kernel {number}"] = cuda.measure(number, given.size)
        program = cupy.cuda.compiler._NVRTCProgram(cuda.translate(number))
        text = program.compile(("--std=c++14", "-arch=compute_90"))[0]
        text = text.decode() if isinstance(text, bytes) else text
        if ".version" in text:
            found[f"kernel {number}"]["instructions"] = widths(text)
            (given.out / f"cuda_{number}.ptx").write_text(text)
    for name, pragma in (("unroll 1", "#pragma unroll 1"), ("unroll all", "#pragma unroll")):
        try:
            cuda.translate = lambda k, p=None, pragma=pragma: original(k, p).replace(LOOP, f"{pragma}\n{LOOP}")
            found[f"kernel 3, {name}"] = cuda.measure(3, given.size)
        finally:
            cuda.translate = original
    return found


def measure_exchanged(device, given) -> dict:
    """OpenCL's PTX launched by CUDA, assembled by its driver and by ptxas alone: is it the text or the runtime?"""
    import cupy

    assembler, found = tool("ptxas"), {}
    for number in (2, 3, 6):
        spec, size = gemmlab.catalog[number], given.size
        kernel = launch.Kernel(spec, spec.defaults, device, device.context)
        text, binary = assembled(kernel, assembler, given.out)
        sizes, local = spec.global_size(size, size, kernel.params), kernel.local_size
        grid = tuple(g // x for g, x in zip(sizes, local, strict=True))
        told = found[f"kernel {number}"] = {"registers of OpenCL's": ptx.registers(kernel)}
        for name, file in (("by CUDA's driver", text), ("by ptxas alone", binary)):
            code = cupy.RawModule(path=str(file)).get_function("gemm")
            arrays = [cupy.ones((size, size), cupy.float32) for _ in range(3)]
            times = []
            for _ in range(12):
                start, end = cupy.cuda.Event(), cupy.cuda.Event()
                start.record()
                code((*grid, 1), (*local, 1), (*(np.int32(size) for _ in range(3)), *arrays))
                end.record()
                end.synchronize()
                times.append(cupy.cuda.get_elapsed_time(start, end) * 1e-3)
            rate = 2 * size**3 / statistics.median(times[2:]) * 1e-9
            right = bool((arrays[2] == size).all())
            told[name] = {"gflops": rate, "registers": code.num_regs, "ok": right}
    return found


def assembled(kernel: launch.Kernel, assembler: str, folder: Path) -> tuple[Path, Path]:
    """The driver's PTX of a kernel, and what ptxas makes of it, as files; what it said lies beside them."""
    stem = folder / f"kernel_{kernel.spec.number}"
    text, binary = stem.with_suffix(".ptx"), stem.with_suffix(".cubin")
    code = ptx.ptx(kernel)
    if code is None:
        raise RuntimeError(f"{kernel.device.name} shows no PTX")
    # where OpenCL's launches begin; CUDA's begin at 0 and leave these registers undefined
    text.write_text(re.sub(r"(mov\.b32\s+%r\d+), %envreg\d+", r"\1, 0", code))
    target = re.search(r"\.target (sm_\w+)", code)
    command = [assembler, "-v", f"-arch={target[1] if target else 'sm_90'}", str(text), "-o", str(binary)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    stem.with_suffix(".log").write_text(said)
    return text, binary


def tool(name: str) -> str:
    """Where a program of the CUDA toolkit lies: on the path, in the toolkit, or beside Triton."""
    folders = [Path("/usr/local/cuda/bin"), *(Path(p) / "triton/backends/nvidia/bin" for p in sys.path)]
    found = shutil.which(name) or next((str(f / name) for f in folders if (f / name).exists()), None)
    if found is None:
        raise RuntimeError(f"{name} was not found")
    return found


def innermost(code: str) -> dict[str, int]:
    """The instructions of that loop of a disassembled kernel in which the share of multiply-adds is largest, by name.

    A loop is what lies between a label and a jump back to it. Names keep the width of a load, as in LDS.128.
    """
    labels, names, loops = dict[str, int](), list[str](), list[Counter[str]]()
    for line in code.splitlines():
        if label := re.match(r"\s*(\.L_\w+):", line):
            labels[label[1]] = len(names)
        elif found := re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)(.*)", line):
            name, width = found[1].split(".")[0], re.search(r"\.(64|128)\b", found[1])
            names.append(name + (width[0] if width and name in ("LDS", "STS", "LDG", "STG") else ""))
            jump = re.search(r"(\.L_\w+)", found[2]) if name == "BRA" else None
            if jump and jump[1] in labels:
                loops.append(Counter(names[labels[jump[1]] :]))
    if not loops:
        raise RuntimeError("there is no loop in this code")
    return dict(max(loops, key=lambda found: found["FFMA"] / found.total()).most_common())


def measure_machine_code(device, given) -> dict:
    """What the inner loops of kernels consist of, as the assembler made them of the driver's PTX."""
    assembler, disassembler, found = tool("ptxas"), tool("nvdisasm"), {}
    for number in (2, 3, 4, 6, 7, 9, 11, 13):
        spec = gemmlab.catalog[number]
        kernel = launch.Kernel(spec, spec.fit(device.limits), device, device.context)
        _, binary = assembled(kernel, assembler, given.out)
        code = subprocess.run([disassembler, str(binary)], capture_output=True, text=True, check=True).stdout
        found[f"kernel {number}"] = {
            "params": kernel.params,
            "registers": ptx.in_log(binary.with_suffix(".log").read_text()),
            "registers of OpenCL's": ptx.registers(kernel),
            "loop": innermost(code),
        }
    return found


def parts_of(text: str) -> dict[str, str]:
    """A kernel's text; with its tiles loaded once only; and with each tile computed with twice. Their C is wrong."""
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


def measure_parts(device, given) -> dict:
    """Where the time of a kernel goes: without loading tiles, and by computing with each tile twice."""
    found: dict = {}
    size, flags = given.size, cl.mem_flags.READ_WRITE
    a, b, c = (cl.Buffer(device.context, flags, 4 * size * size) for _ in range(3))
    for x in (a, b):
        cl.enqueue_fill_buffer(device.timed_queue, x, np.float32(1), 0, 4 * size * size)
    for number in (3, 4, 6, 7):
        spec, seconds = gemmlab.catalog[number], {}
        texts = parts_of(sources.read(spec.file))
        arguments = [(spec, spec.fit(device.limits), device, device.context, text) for text in texts.values()]
        with ThreadPoolExecutor() as pool:
            kernels = list(pool.map(lambda given: launch.Kernel(*given), arguments))
        for name, kernel in zip(texts, kernels, strict=True):
            times = repeat(lambda kernel=kernel: kernel(size, size, size, a, b, c), 0.3)
            seconds[name] = statistics.median(times[1:] or times)
        work = 2 * size**3 * 1e-9
        found[f"kernel {number}"] = {name: work / t for name, t in seconds.items()} | {
            "computing alone": work / (seconds["computed twice"] - seconds["as it is"])
        }
    return {"GFLOPS": found}


EXPERIMENTS = {
    "variants": measure_variants,
    "cuda": measure_cuda,
    "exchanged": measure_exchanged,
    "peaks": measure_peaks,
    "loads": measure_loads,
    "lines": measure_lines,
    "clock": measure_clock,
    "machine code": measure_machine_code,
    "parts": measure_parts,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=200, help="no experiment is begun after so long (200)")
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--device", default=None)
    parser.add_argument("--only", default=",".join(EXPERIMENTS))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    device, start = find_device(given.device), time.monotonic()
    for name in given.only.split(","):
        file = given.out / f"{name}.json"
        if file.exists() or time.monotonic() - start > given.seconds:
            print(f"{name}: left out")
            continue
        begun = time.monotonic()
        try:
            found = EXPERIMENTS[name](device, given)
        except Exception:
            found = {"failed": traceback.format_exc()}
        found |= {"device": device.facts(), "took": time.monotonic() - begun}
        file.write_text(json.dumps(found, indent=1, default=str) + "\n", encoding="utf-8")
        print(f"{name}: {found['took']:.0f} s", json.dumps(found, default=str)[:1500], flush=True)


if __name__ == "__main__":
    main()
