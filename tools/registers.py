"""Registers of a kernel, as NVIDIA's compiler reports them: it does so only when it compiles.

`registers` runs this file in a child process, which compiles a kernel again without the driver's
cache.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import Any

import pyopencl as cl

from gemmlab.opencl.build import HIDDEN
from gemmlab.opencl.devices import find_device
from gemmlab.opencl.launch import Kernel


def registers(kernel: Kernel) -> tuple[int, int] | None:
    """Registers per work-item, and bytes spilled to memory; None elsewhere, and for a text with
    hidden instructions (see `opencl.build`), which the compiler would not count.
    """
    if "nvidia" not in kernel.device.features or HIDDEN in kernel.source:
        return None
    job = {"device": kernel.device.index, "source": kernel.source, "options": kernel.options}
    environment = {**os.environ, "CUDA_CACHE_DISABLE": "1", "PYOPENCL_NO_CACHE": "1"}
    command = [sys.executable, __file__]
    done = subprocess.run(
        command, input=json.dumps(job), env=environment, capture_output=True, text=True
    )
    return in_log(done.stdout)


def in_log(log: str) -> tuple[int, int] | None:
    """Registers per work-item, and bytes spilled, in a build log of NVIDIA's compiler."""
    used = re.search(r"Used (\d+) registers", log)
    spilled = re.search(r"(\d+) bytes spill stores", log)
    return (int(used[1]), int(spilled[1]) if spilled else 0) if used else None


def build_log(kernel: Kernel) -> str:
    """The compiler's log; NVIDIA's is empty if the kernel came from its cache."""
    program: Any = kernel.opencl.get_info(cl.kernel_info.PROGRAM)
    return program.get_build_info(kernel.device.cl, cl.program_build_info.LOG)


def main() -> None:
    """Print the build log of the job on standard input."""
    job = json.load(sys.stdin)
    device = find_device(job["device"])
    program = cl.Program(device.context, job["source"])
    program.build([*job["options"], "-cl-nv-verbose"], devices=[device.cl], cache_dir=False)  # type: ignore[arg-type]
    print(program.get_build_info(device.cl, cl.program_build_info.LOG))


if __name__ == "__main__":
    main()
