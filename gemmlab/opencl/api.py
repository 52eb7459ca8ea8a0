"""PyOpenCL; in a browser's Python, which cannot have it, the same names over WebGPU.

PyOpenCL decides when it is imported whether it uses its database of launch code, so that is checked
before. All other modules import both from here.
"""

import sys

from .. import environment

if sys.platform == "emscripten":
    import clscope.webgpu as cl
    import clscope.webgpu.array as cla
    import clscope.webgpu.tools  # noqa: F401 (as cl.tools)
    from clscope.webgpu import CommandQueue, Context

    NO_DEVICE = (
        "this browser has no GPU that Python can use: Chrome and Edge offer one, from version 137"
    )
else:
    with environment.for_pyopencl():
        import pyopencl as cl
        import pyopencl.array as cla
        import pyopencl.tools  # noqa: F401 (as cl.tools)
        from pyopencl import CommandQueue, Context

    NO_DEVICE = (
        "no OpenCL device was found; `gemmlab.doctor()` in Python, or `python -m gemmlab doctor`, "
        "says what is missing"
    )

__all__ = ["NO_DEVICE", "CommandQueue", "Context", "cl", "cla"]
