"""gemmlab: how a matrix product becomes fast on a GPU. Kernels to learn from, and to use.

    import gemmlab
    c = gemmlab.matmul(a, b)                      # NumPy in, NumPy out
    run = gemmlab.measure(kernel=3, m=512)        # is it right, how fast is it
    gemmlab.simulate(kernel=3, m=16, n=16, k=16)  # what does it do: every access, and what is wrong with it
    gemmlab.Explorer(kernel=3)                    # the same with sliders, in a notebook

Names load when they are first used: importing the package touches no device and loads no widgets.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from .catalog import ParameterError, catalog  # light, and eager: the record must win over the module's name

__version__ = "0.1.0"

#: Where each public name lives.
_HOME = {
    "matmul": "blas",
    "sgemm": "blas",
    "transpose": "reshape",
    "pad": "reshape",
    "unpad": "reshape",
    "devices": "device",
    "default_device": "device",
    "NoDeviceError": "device",
    "kernel": "launch",
    "BuildError": "build",
    "measure": "bench",
    "Result": "record",
    "peaks": "ceiling",
    "sweep": "curves",
    "trial": "live",
    "simulate": "simt",
    "Explorer": "widgets.explorer",
    "Stepper": "widgets.stepper",
    "Difference": "widgets.lesson",
    "Prediction": "widgets.lesson",
    "verdict": "widgets.lesson",
}

__all__ = ["__version__", "catalog", "ParameterError", *_HOME]

if TYPE_CHECKING:
    from .bench import measure
    from .blas import matmul, sgemm
    from .build import BuildError
    from .ceiling import peaks
    from .curves import sweep
    from .device import NoDeviceError, default_device, devices
    from .launch import kernel
    from .live import trial
    from .record import Result
    from .reshape import pad, transpose, unpad
    from .simt import simulate
    from .widgets.explorer import Explorer
    from .widgets.lesson import Difference, Prediction, verdict
    from .widgets.stepper import Stepper


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module 'gemmlab' has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def load_ipython_extension(shell) -> None:
    """`%load_ext gemmlab` brings `%%gemm`, a cell that is a kernel."""
    shell.register_magics(import_module(".widgets.magic", __name__).GemmMagics)


def __dir__():
    return sorted(__all__)
