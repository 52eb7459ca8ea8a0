"""Registers of a kernel, as NVIDIA's compiler reports them: it does so only when it compiles.

`registers` therefore runs this file in a child process, which compiles a kernel again.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import Any

import pyopencl as cl

from gemmlab.ladder import Key
from gemmlab.opencl import launch
from gemmlab.opencl.devices import Device, find_device

#: Seconds that the compiler may take.
LIMIT = 60.0
#: Has the compiler log registers. Whoever is to find the kernel in a cache needs this, too.
VERBOSE = {"PYOPENCL_BUILD_OPTIONS": "-cl-nv-verbose"}


def registers(
    kernel: Key, params: dict[str, int], device: Device, cache: str = ""
) -> tuple[int, int] | None:
    """Registers per work-item, and bytes spilled to memory; None if the compiler does not say. The
    driver keeps the kernel in the folder `cache`; by default it keeps none.
    """
    if "nvidia" not in device.features:
        return None
    folder = {"CUDA_CACHE_PATH": cache} if cache else {"CUDA_CACHE_DISABLE": "1"}
    command = [sys.executable, __file__, json.dumps([kernel, params, device.index])]
    options: Any = {"env": {**os.environ, **VERBOSE, **folder}, "timeout": LIMIT}
    try:
        return in_log(subprocess.run(command, capture_output=True, text=True, **options).stdout)
    except subprocess.TimeoutExpired:
        return None


def in_log(log: str) -> tuple[int, int] | None:
    """Registers per work-item of `gemm`, and bytes spilled, in a build log of NVIDIA's compiler."""
    log = log[max(0, log.find("'gemm'")) :]  # a program may have other kernels
    used = re.search(r"Used (\d+) registers", log)
    spilled = re.search(r"(\d+) bytes spill stores", log)
    return (int(used[1]), int(spilled[1]) if spilled else 0) if used else None


def main() -> None:
    """Print the build log of a kernel with these parameters."""
    kernel, params, index = json.loads(sys.argv[1])
    device = find_device(index)
    program: Any = launch.kernel(kernel, params, device).opencl.get_info(cl.kernel_info.PROGRAM)
    print(program.get_build_info(device.cl, cl.program_build_info.LOG))


if __name__ == "__main__":
    main()
