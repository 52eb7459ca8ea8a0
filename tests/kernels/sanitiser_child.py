"""One product for Oclgrind:  oclgrind --data-races ... python sanitiser_child.py CASE

CASE is JSON: the `sizes`, the `kernel`, its `params`, and perhaps another `source`. Prints "right",
or what is wrong with the result.
"""

import json
import sys

import numpy as np
import pyopencl as cl

from gemmlab import check
from gemmlab.blas.plan import PlanBuilder, multiply_in_passes
from gemmlab.blas.product import Product
from gemmlab.blas.run import session_of
from gemmlab.ladder import find
from gemmlab.measurement.framed import upload
from gemmlab.opencl import build, launch
from gemmlab.opencl.devices import default_device

# Optimised blocks of registers would abort Oclgrind's search for uninitialised reads.
build.OPTIONS += ("-cl-opt-disable",)


class Exact(PlanBuilder):
    """Commands with temporary memory of exactly their size: one element more is out of bounds."""

    def memory(self, elements: int, itemsize: int | None = None) -> cl.Buffer:
        size_bytes = elements * (itemsize or self.dtype.itemsize)
        return cl.Buffer(self.queue.context, cl.mem_flags.READ_WRITE, size_bytes)


def main(sizes, kernel, params, source=None) -> str:
    """Any sizes: what does not fit goes through pad, transpose and unpad, under the same eyes."""
    device, (m, n, k) = default_device(), sizes
    if "oclgrind" not in device.platform.lower():
        return f"not under Oclgrind but on {device}"
    plan = Exact(device.queue, device)
    a, b = check.exact_inputs(m, n, k)
    built = launch.Kernel(find(kernel), params, device, device.context, source)
    operands = [upload(device, x) for x in (a, b)]
    out = plan.memory(m * n)
    multiply_in_passes(plan, Product.compact(m, n, k, *operands, out), built)
    session_of(device.queue, device).run(plan.finish())
    host = np.full((n, m), np.nan, np.float32)
    cl.enqueue_copy(plan.queue, host, out)
    verdict = check.exact(host.T, a, b)
    return "right" if verdict.ok else str(verdict)


if __name__ == "__main__":
    print(main(**json.loads(sys.argv[1])))
