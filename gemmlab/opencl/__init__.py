"""Runtimes, devices, compiling and launching.

PyOpenCL decides when it is imported whether it uses its database of launch code, so that is checked
before. Other subpackages import PyOpenCL from here.
"""

from .. import environment

with environment.for_pyopencl():
    import pyopencl as cl
    import pyopencl.array as cla
    import pyopencl.tools  # noqa: F401 (as cl.tools)

__all__ = ["cl", "cla"]
