"""One case for Oclgrind:  oclgrind --data-races ... python sanitiser_child.py CASE

CASE is JSON: a `job` ("gemm", "transpose", "pad", "unpad", "range" or "axpby"), its `sizes`, and
for "gemm" the `kernel`, its `params`, and perhaps another `source`. Prints "right", or what is
wrong with the result.
"""

import json
import sys

import numpy as np
import pyopencl as cl

from gemmlab import check
from gemmlab.blas.plan import Builder, Matrix
from gemmlab.blas.problem import Layout, Problem
from gemmlab.catalog import find
from gemmlab.opencl import build, launch
from gemmlab.opencl.devices import default_device

# Optimised blocks of registers would abort Oclgrind's search for uninitialised reads.
build.OPTIONS += ("-cl-opt-disable",)


def upload(device, x: np.ndarray) -> Matrix:
    """A column-major copy in a buffer of exactly its size: one element more is out of bounds."""
    flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
    return Matrix(
        cl.Buffer(device.context, flags, hostbuf=np.ascontiguousarray(x.T)),
        Layout.compact(*x.shape),
    )


class Steps(Builder):
    """Steps whose temporary memory is made at once, in buffers of exactly their size: `made`."""

    def __init__(self, queue, device):
        super().__init__(queue, device)
        self.made: list[cl.Buffer] = []

    def memory(self, elements: int, itemsize: int | None = None) -> cl.Buffer:
        size_bytes = elements * (itemsize or self.dtype.itemsize)
        self.made.append(cl.Buffer(self.queue.context, cl.mem_flags.READ_WRITE, size_bytes))
        return self.made[-1]


def download(steps: Steps, x: Matrix) -> np.ndarray:
    host = np.full((x.layout.cols, x.layout.rows), np.nan, np.float32)
    cl.enqueue_copy(steps.queue, host, x.buffer)
    return host.T


def gemm(steps: Steps, sizes, kernel, params, source=None):
    """Any sizes: what does not fit goes through pad and unpad, under the same eyes."""
    device, (m, n, k) = steps.device, sizes
    a, b = check.exact_inputs(m, n, k)
    built = launch.Kernel(find(kernel), params, device, device.context, source)
    operands = [upload(device, x).buffer for x in (a, b)]
    out = steps.new(Layout.compact(m, n))
    return steps.multiply(built, Problem.compact(m, n, k), *operands, out), a @ b


def transpose(steps: Steps, sizes):
    """Out of a larger matrix, and into columns at multiples of 4."""
    rows, cols = sizes
    x = check.exact_inputs(rows + 3, 1, cols + 2)[0]
    whole = upload(steps.device, x)
    block, ld = Layout(rows, cols, rows + 3, rows + 4, whole.layout.room), -(-cols // 4) * 4
    out = steps.transpose(Matrix(whole.buffer, block), Layout.compact(cols, rows, ld))
    padded = np.zeros((ld, rows), np.float32)
    padded[:cols] = x[1 : rows + 1, 1 : cols + 1].T
    return Matrix(out.buffer, Layout.compact(ld, rows)), padded


def find_strange(steps: Steps, sizes):
    """range: 1 where there is an infinity in the last element, 0 where there is none."""
    x = check.exact_inputs(sizes[0], 1, sizes[1])[0]
    y = x.copy()
    y[-1, -1] = np.inf
    found = []
    for z in (x, y):
        look = Steps(steps.queue, steps.device)
        look.look_for_unsplittable(upload(steps.device, z))
        look.plan()(steps.queue)
        flag = np.empty(1, np.int32)
        cl.enqueue_copy(steps.queue, flag, look.made[-1])
        found.append(flag[0])
    return upload(steps.device, np.float32([found])), np.float32([[0, 1]])


def pad(steps: Steps, sizes):
    rows, cols, to_rows, to_cols = sizes
    x = check.exact_inputs(rows, 1, cols)[0]
    padded = np.pad(x, ((0, to_rows - rows), (0, to_cols - cols)))
    return steps.pad(upload(steps.device, x), Layout.compact(to_rows, to_cols)), padded


def unpad(steps: Steps, sizes):
    rows, cols, from_rows, from_cols = sizes
    x = check.exact_inputs(from_rows, 1, from_cols)[0]
    return steps.unpad(upload(steps.device, x), steps.new(Layout.compact(rows, cols))), x[
        :rows, :cols
    ]


def axpby(steps: Steps, sizes):
    """With a zero factor the array behind it is uninitialised memory, which must not be read."""
    size, alpha, beta = sizes
    x, y = check.exact_inputs(size, 1, 1)[0], check.exact_inputs(size, 1, 1, seed=1)[0]
    line = Layout.compact(size, 1)
    left, right = (
        upload(steps.device, v) if f else steps.new(line) for v, f in ((x, alpha), (y, beta))
    )
    return steps.axpby(alpha, left, beta, right, steps.new(line)), alpha * x + beta * y


def main(case: dict) -> str:
    device = default_device()
    if "oclgrind" not in device.platform.lower():
        return f"not under Oclgrind but on {device}"
    steps = Steps(device.queue, device)
    jobs = {"gemm": gemm, "transpose": transpose, "pad": pad, "unpad": unpad, "axpby": axpby}
    out, want = (jobs | {"range": find_strange})[case.pop("job")](steps, **case)
    steps.plan()(steps.queue)
    verdict = check.compare(download(steps, out), want, 0.0)
    return "right" if verdict.ok else str(verdict)


if __name__ == "__main__":
    print(main(json.loads(sys.argv[1])))
