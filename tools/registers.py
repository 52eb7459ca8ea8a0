"""Registers of a kernel, as NVIDIA's compiler reports them.

It does so only when it compiles. `registers` therefore runs this file in a child process, with the
caches that `own_cache` makes.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyopencl as cl

from gemmlab import environment
from gemmlab.catalog import Key
from gemmlab.opencl import launch
from gemmlab.opencl.devices import Device, find_device

#: Seconds that the compiler may take.
LIMIT = 60.0


@contextmanager
def own_cache() -> Iterator[None]:
    """Give NVIDIA's compiler an empty cache, also in child processes, and have it log registers."""
    with tempfile.TemporaryDirectory() as folder:
        options = {"CUDA_CACHE_PATH": folder, "PYOPENCL_BUILD_OPTIONS": "-cl-nv-verbose"}
        with environment.variables(options):
            yield


def registers(kernel: Key, params: dict[str, int], device: Device) -> tuple[int, int] | None:
    """Registers per work-item, and bytes spilled to memory; None if the compiler does not say.

    What was compiled stays in the cache.
    """
    if "nvidia" not in device.features:
        return None
    job = json.dumps([kernel, params, device.index])
    command = [sys.executable, __file__, job]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return None
    return in_log(done.stdout)


def in_log(log: str) -> tuple[int, int] | None:
    """Registers per work-item, and bytes spilled, in a build log of NVIDIA's compiler."""
    used = re.search(r"Used (\d+) registers", log)
    spilled = re.search(r"(\d+) bytes spill stores", log)
    return (int(used[1]), int(spilled[1]) if spilled else 0) if used else None


def main() -> None:
    """Print the build log of a kernel with these parameters."""
    kernel, params, index = json.loads(sys.argv[1])
    device = find_device(index)
    built = launch.kernel(kernel, params, device)
    program: Any = built.opencl.get_info(cl.kernel_info.PROGRAM)
    print(program.get_build_info(device.cl, cl.program_build_info.LOG))


if __name__ == "__main__":
    main()
