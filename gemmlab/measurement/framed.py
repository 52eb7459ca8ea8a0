"""A product of a kernel, with a frame around C that shows what is written outside of it."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from ..blas.choose import Choice
from ..blas.plan import PlanBuilder, build, multiply_in_passes
from ..blas.product import Product
from ..blas.run import session_of
from ..generate.candidates import Sizes
from ..ladder.spec import round_up
from ..opencl import cl
from ..opencl.devices import Device
from ..opencl.launch import Kernel
from . import clock

#: Bytes of memory with a pattern before and after C.
FRAME = 16384
_PATTERN = np.array(-7.25e-19, np.float32)


@dataclass(frozen=True)
class Chosen:
    """A choice of `matmul` outside the catalog, to be measured as a `Kernel` is."""

    choice: Choice
    params: dict[str, int]
    build_seconds: float
    path: str = "plain"
    multiples: Sizes = (1, 1, 1)

    @classmethod
    def of(cls, choice: Choice, device: Device, sizes: Sizes) -> Chosen:
        """The choice, compiled."""
        start, session = time.perf_counter(), session_of(device.timed_queue, device)
        build(Product.compact(*sizes), choice, session.queue, device, session.kernel)
        return cls(choice, choice.params, time.perf_counter() - start)


def upload(device: Device, x: np.ndarray) -> cl.Buffer:
    """A copy of a column-major matrix on the device."""
    flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
    return cl.Buffer(device.context, flags, hostbuf=x.T)


class FramedProduct:
    """One product of compact column-major matrices on the device, with a frame around its C; `a`
    and `b` are the buffers of A (M x K) and B (K x N).
    """

    def __init__(
        self,
        kernel: Kernel | Chosen,
        device: Device,
        sizes: Sizes,
        a: cl.Buffer,
        b: cl.Buffer,
    ):
        self.device: Device = device
        m, n, _ = sizes
        rows, cols, _ = map(round_up, sizes, kernel.multiples)
        self.frame: Frame = Frame(device, rows, cols)
        c = self.frame.inside
        if (rows, cols) != (m, n):  # the kernel writes whole tiles; C is cut out of them
            c = cl.Buffer(device.context, cl.mem_flags.READ_WRITE, 4 * m * n)
        self.problem: Product = Product.compact(*sizes, a, b, c)
        self._session = session = session_of(device.timed_queue, device)
        if isinstance(kernel, Kernel):
            passes = PlanBuilder(session.queue, device)
            multiply_in_passes(passes, self.problem, kernel, self.frame.inside)
            self._plan = passes.finish()
        else:
            self._plan = build(self.problem, kernel.choice, session.queue, device, session.kernel)

    @classmethod
    def of(
        cls, kernel: Kernel | Chosen, device: Device, a: np.ndarray, b: np.ndarray
    ) -> FramedProduct:
        """The product of a (m x k) and b (k x n), column-major."""
        sizes = a.shape[0], b.shape[1], a.shape[1]
        return cls(kernel, device, sizes, upload(device, a), upload(device, b))

    def run(self, times: int = 1) -> dict[str, float]:
        """Multiply; the mean milliseconds of each pass on the device, by name."""
        milliseconds: dict[str, float] = {}
        for name, event in [pair for _ in range(times) for pair in self._session.run(self._plan)]:
            milliseconds.setdefault(name, 0.0)
            milliseconds[name] += 1e3 * clock.device_seconds(event) / times
        return milliseconds

    def result(self) -> np.ndarray:
        """C on the host: m x n, column-major."""
        c = self.problem.c
        host = np.empty((c.cols, c.rows), np.float32)
        cl.enqueue_copy(self.device.queue, host, c.buffer)
        return host.T


class Frame:
    """A buffer for a C of rows x cols, filled with NaN, inside a larger one filled with a pattern.

    An element of C that is never written stays NaN, and damage to the pattern shows that the kernel
    wrote outside C.
    """

    def __init__(self, device: Device, rows: int, cols: int):
        self._queue, self._bytes = device.queue, 4 * rows * cols
        size = self._bytes + 2 * FRAME
        self._outside = cl.Buffer(device.context, cl.mem_flags.READ_WRITE, size)
        self.inside: cl.Buffer = self._outside[FRAME : FRAME + self._bytes]
        cl.enqueue_fill_buffer(self._queue, self._outside, _PATTERN, 0, size)
        nan = np.array(np.nan, np.float32)
        cl.enqueue_fill_buffer(self._queue, self._outside, nan, FRAME, self._bytes)
        self._queue.finish()

    def is_intact(self) -> bool:
        edges = np.empty((2, FRAME // 4), np.float32)
        for edge, start in zip(edges, (0, FRAME + self._bytes), strict=True):
            cl.enqueue_copy(self._queue, edge, self._outside, src_offset=start)
        return bool((edges == _PATTERN).all())
