"""The compiled text of a kernel, and the registers it uses. Only NVIDIA's compiler reports them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import Any

import pyopencl as cl

from .build import HIDDEN
from .devices import find_device
from .launch import Kernel

#: Kinds of instructions that `instructions` counts, and their PTX. A vector load counts once per
#: float.
KINDS = {
    "multiply-adds": r"fma\.rn\.f32",
    "local loads": r"ld\.shared(?:\.v(\d))?\.f32",
    "local stores": r"st\.shared(?:\.v(\d))?\.f32",
    "global loads": r"ld\.global(?:\.nc)?(?:\.v(\d))?\.f32",
    "global stores": r"st\.global(?:\.v(\d))?\.f32",
    "barriers": r"bar(?:rier)?\.sync",
}


def ptx(kernel: Kernel) -> str | None:
    """The PTX text of a compiled kernel on NVIDIA's OpenCL; None elsewhere, where binaries are not
    text.
    """
    if "nvidia" not in kernel.device.features:
        return None
    program: Any = kernel.opencl.get_info(cl.kernel_info.PROGRAM)
    return program.get_info(cl.program_info.BINARIES)[0].decode(errors="replace").rstrip("\0")


def instructions(text: str) -> dict[str, int]:
    """How many instructions of each of `KINDS` a PTX text contains; the body of a loop counts
    once.
    """
    found = {}
    for kind, pattern in KINDS.items():
        widths = [m.group(1) if m.re.groups else None for m in re.finditer(pattern, text)]
        found[kind] = sum(int(width or 1) for width in widths)
    return found


def registers(kernel: Kernel) -> tuple[int, int] | None:
    """Registers per work-item, and bytes spilled to memory, as NVIDIA's compiler reports them; None
    elsewhere.

    It reports them only when it compiles, so a child process compiles the kernel again without the
    driver's cache. For a text with hidden instructions (see `build`) the answer is None, since it
    would not count them.
    """
    if "nvidia" not in kernel.device.features or HIDDEN in kernel.source:
        return None
    job = json.dumps(
        {"device": kernel.device.index, "source": kernel.source, "options": kernel.options}
    )
    environment = {**os.environ, "CUDA_CACHE_DISABLE": "1", "PYOPENCL_NO_CACHE": "1"}
    command = [sys.executable, "-m", "gemmlab.opencl.ptx"]
    return in_log(
        subprocess.run(command, input=job, env=environment, capture_output=True, text=True).stdout
    )


def in_log(log: str) -> tuple[int, int] | None:
    """Registers per work-item, and bytes spilled, as a build log of NVIDIA's compiler names them,
    if it does.
    """
    used, spilled = (
        re.search(r"Used (\d+) registers", log),
        re.search(r"(\d+) bytes spill stores", log),
    )
    return (int(used[1]), int(spilled[1]) if spilled else 0) if used else None


def build_log(kernel: Kernel) -> str:
    """What the compiler said when it built a kernel; NVIDIA's says nothing when the kernel came
    from its cache.
    """
    program: Any = kernel.opencl.get_info(cl.kernel_info.PROGRAM)
    return program.get_build_info(kernel.device.cl, cl.program_build_info.LOG)


def _report() -> None:
    """What the child process does: print the build log of the job that it reads from standard
    input.
    """
    job = json.load(sys.stdin)
    device = find_device(job["device"])
    program = cl.Program(device.context, job["source"])
    program.build([*job["options"], "-cl-nv-verbose"], devices=[device.cl], cache_dir=False)  # type: ignore[arg-type]
    print(program.get_build_info(device.cl, cl.program_build_info.LOG))


if __name__ == "__main__":
    _report()
