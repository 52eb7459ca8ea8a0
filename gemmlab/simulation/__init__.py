"""What the simulator of `clscope` does not know: that a kernel computes C = A B.

    run = gemmlab.simulate(kernel=6, m=16, n=16, k=16)    # or with source=... an edited text
    run.verdict, run.findings                             # is it right, and what is wrong, in words
    run.counts, run.lines[112]                            # what it costs, in all and by line

`product` launches a kernel of the ladder on two matrices and compares; `reasons` says why a product
is wrong although no single step of the kernel is.
"""

from .product import LaunchError, shrunk, simulate
from .run import ProductRun

__all__ = ["LaunchError", "ProductRun", "shrunk", "simulate"]
