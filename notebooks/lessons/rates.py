"""The rate of whole calls, for chapters that compare ways to multiply."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyopencl as cl
import pyopencl.array as cla

from gemmlab import check, matmul, model
from gemmlab.measurement import clock
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
