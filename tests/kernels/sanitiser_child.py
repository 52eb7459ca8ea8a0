"""One case for Oclgrind, which runs this file:  oclgrind --data-races ... python sanitiser_child.py CASE

CASE is JSON: a `job` ("gemm", "transpose", "turn", "pad", "block", "unpad", "range" or "axpby"), its `sizes`, and
for "gemm" the `kernel`, its `params`, and perhaps another `source`. Prints "right" or what is wrong with the result.
"""

import json
import sys

import numpy as np
import pyopencl as cl
from gemmlab.blas.passes import Matrix, Session

from gemmlab import check
from gemmlab.blas.problem import Layout, Problem
from gemmlab.catalog import find
from gemmlab.opencl import build, launch
from gemmlab.opencl.devices import default_device

# Optimised blocks of registers would abort Oclgrind's search for uninitialised reads.
build.OPTIONS += ("-cl-opt-disable",)


def upload(device, x: np.ndarray) -> Matrix:
    """A column-major copy in a buffer of exactly its size, so that one element too far is out of bounds."""
    flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
    return Matrix(cl.Buffer(device.context, flags, hostbuf=np.ascontiguousarray(x.T)), Layout.compact(*x.shape))


def download(session: Session, x: Matrix) -> np.ndarray:
    host = np.full((x.layout.cols, x.layout.rows), np.nan, np.float32)
    cl.enqueue_copy(session.queue, host, x.buffer)
    return host.T


def gemm(session: Session, sizes, kernel, params, source=None):
    """Any sizes: what does not fit goes through pad and unpad, under the same eyes."""
    device, (m, n, k) = session.device, sizes
    a, b = check.exact_inputs(m, n, k)
    built = launch.Kernel(find(kernel), params, device, device.context, source)
    operands = [upload(device, x).buffer for x in (a, b)]
    out = session.new(Layout.compact(m, n))
    return session.multiply(built, Problem.compact(m, n, k), *operands, out), a @ b


def transpose(session: Session, sizes):
    x = check.exact_inputs(sizes[0], 1, sizes[1])[0]
    return session.transpose(upload(session.device, x), Layout.compact(*x.shape[::-1])), x.T


def turn(session: Session, sizes):
    """transpose, out of a larger matrix and into columns at multiples of 4."""
    rows, cols = sizes
    x = check.exact_inputs(rows + 3, 1, cols + 2)[0]
    whole = upload(session.device, x)
    block, ld = Layout(rows, cols, rows + 3, rows + 4, whole.layout.room), -(-cols // 4) * 4
    out = session.transpose(Matrix(whole.buffer, block), Layout.compact(cols, rows, ld))
    padded = np.zeros((ld, rows), np.float32)
    padded[:cols] = x[1 : rows + 1, 1 : cols + 1].T
    return Matrix(out.buffer, Layout.compact(ld, rows)), padded


def find_strange(session: Session, sizes):
    """range: 1 where there is an infinity in the last element, 0 where there is none."""
    x = check.exact_inputs(sizes[0], 1, sizes[1])[0]
    y = x.copy()
    y[-1, -1] = np.inf
    found = [session.has_unsplittable(upload(session.device, z)) for z in (x, y)]
    return upload(session.device, np.float32([found])), np.float32([[0, 1]])


def pad(session: Session, sizes):
    rows, cols, to_rows, to_cols = sizes
    x = check.exact_inputs(rows, 1, cols)[0]
    padded = np.pad(x, ((0, to_rows - rows), (0, to_cols - cols)))
    return session.pad(upload(session.device, x), Layout.compact(to_rows, to_cols)), padded


def block(session: Session, sizes):
    """pad, taking a block out of a larger matrix: its last rows and columns."""
    rows, cols, of_rows, of_cols = sizes
    x = check.exact_inputs(of_rows, 1, of_cols)[0]
    whole = upload(session.device, x)
    first = (of_cols - cols) * of_rows + of_rows - rows
    block = Matrix(whole.buffer, Layout(rows, cols, of_rows, first, whole.layout.room))
    return session.compact(block), x[of_rows - rows :, of_cols - cols :]


def unpad(session: Session, sizes):
    rows, cols, from_rows, from_cols = sizes
    x = check.exact_inputs(from_rows, 1, from_cols)[0]
    return session.unpad(upload(session.device, x), session.new(Layout.compact(rows, cols))), x[:rows, :cols]


def axpby(session: Session, sizes):
    """With a zero factor the array behind it is uninitialised memory, which must not be read."""
    size, alpha, beta = sizes
    x, y = check.exact_inputs(size, 1, 1)[0], check.exact_inputs(size, 1, 1, seed=1)[0]
    line = Layout.compact(size, 1)
    left, right = (upload(session.device, v) if f else session.new(line) for v, f in ((x, alpha), (y, beta)))
    return session.axpby(alpha, left, beta, right, session.new(line)), alpha * x + beta * y


def main(case: dict) -> str:
    device = default_device()
    if "oclgrind" not in device.platform.lower():
        return f"not under Oclgrind but on {device}"
    session = Session(device.queue, device, pooled=False)
    job = {"gemm": gemm, "transpose": transpose, "turn": turn, "pad": pad, "block": block, "unpad": unpad}
    job |= {"axpby": axpby, "range": find_strange}
    out, want = job[case.pop("job")](session, **case)
    verdict = check.compare(download(session, out), want, 0.0)
    return "right" if verdict.ok else str(verdict)


if __name__ == "__main__":
    print(main(json.loads(sys.argv[1])))
