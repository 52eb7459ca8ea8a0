"""Rates on the reader's device: of whole calls, and of a transposition (chapter 5)."""

from __future__ import annotations

import statistics
from functools import partial
from typing import Any

import numpy as np

from gemmlab import check, matmul, model
from gemmlab.ladder import sources
from gemmlab.ladder.spec import round_up
from gemmlab.measurement import clock
from gemmlab.opencl import cl, cla
from gemmlab.opencl.build import build
from gemmlab.opencl.devices import Device


def rate(sizes: tuple[int, int, int], device: Device, seconds: float = 0.1, **options) -> float:
    """GFLOPS of whole calls of `matmul` on device arrays of float32. `sizes` are M, N and K of the
    column-major product: the row-major one is N x K by K x M.
    """
    m, n, k = sizes
    queue = cl.CommandQueue(device.context, device.cl)  # profiling, as on other queues, takes time
    numbers = check.random_inputs(256, 1, 256, kind="normal")[0]
    a, b = (cla.to_device(queue, np.resize(numbers, shape)) for shape in ((n, k), (k, m)))

    spent = clock.call_seconds(partial(matmul, a, b, **options), queue.finish, seconds)
    return model.gflops(m, n, k, spent)


def transposition(size: int, coalesced: bool, device: Device) -> float:
    """The bandwidth of transposing a square matrix of float32, in GB/s (bytes read plus bytes
    written), by `transpose.cl`, or by `transpose_naive.cl`, which has no tile in local memory. The
    size is rounded up to a multiple of 32. Raises RuntimeError if the result is wrong.
    """
    size = round_up(size, 32)
    name = "transpose" if coalesced else "transpose_naive"
    text = sources.read(f"support/{name}.cl")
    built = build(device, device.context, f"{name}.cl", text, {}, name)
    x = np.random.default_rng(0).random((size, size), np.float32)
    flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
    source = cl.Buffer(device.context, flags, hostbuf=x)
    target = cl.Buffer(device.context, cl.mem_flags.WRITE_ONLY, x.nbytes)
    arguments: tuple[Any, ...] = (size, size), (16, 16), size, size, source, target
    if coalesced:
        arguments = (size, size // 4), (32, 8), size, size, size, 0, source, size, target
    seconds = clock.launch_seconds(lambda: built(device.timed_queue, *arguments))
    y = np.empty_like(x)
    cl.enqueue_copy(device.timed_queue, y, target)
    if not (y == x.T).all():
        raise RuntimeError(f"{name}.cl gives a wrong result on {device}")
    return 2 * x.nbytes / statistics.median(seconds) * 1e-9
