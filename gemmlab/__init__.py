"""gemmlab: how a matrix product becomes fast on a GPU. Kernels to learn from, and to use.

    import gemmlab
    c = gemmlab.matmul(a, b)                      # NumPy in, NumPy out
    run = gemmlab.measure(kernel=3, m=512)        # is it right, how fast is it
    gemmlab.simulate(kernel=3, m=16, n=16, k=16)  # every access, and what is wrong
    gemmlab.Explorer(kernel=3)                    # the same with sliders, in a notebook

Names load when they are first used: importing the package touches no device and loads no widgets.
"""

from importlib import import_module
from types import FunctionType
from typing import Any

from . import environment
from .version import __version__

#: The module of each public name. Type checkers and editors read `__init__.pyi`, which imports the
#: same names.
_HOME = {
    "catalog": "ladder",
    "ParameterError": "ladder",
    "clear_caches": "caches",
    "matmul": "blas.products",
    "gemm": "blas.products",
    "sgemm": "blas.products",
    "dgemm": "blas.products",
    "cgemm": "blas.products",
    "zgemm": "blas.products",
    "hgemm": "blas.products",
    "devices": "opencl.devices",
    "doctor": "opencl.doctor",
    "default_device": "opencl.devices",
    "NoDeviceError": "opencl.devices",
    "kernel": "opencl.launch",
    "BuildError": "opencl.build",
    "auto": "blas.explain",
    "tune": "measurement.tuned",
    "measure": "measurement.timing",
    "Result": "measurement.records",
    "peaks": "measurement.peaks",
    "sweep": "measurement.sweeps",
    "trial": "sandbox.client",
    "simulate": "simulation",
    "Explorer": "widgets.explorer",
    "Stepper": "widgets.stepper",
    "Generator": "widgets.generator",
    "Difference": "widgets.lesson",
    "Prediction": "widgets.lesson",
    "Progress": "widgets.progress",
    "goal": "widgets.lesson",
    "verdict": "widgets.lesson",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'gemmlab' has no attribute {name!r}")
    try:
        value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("gemmlab"):
            raise
        command = environment.install_command(error.name)
        message = f"gemmlab.{name} needs {error.name}, which is not installed:\n  {command}"
        raise ModuleNotFoundError(message, name=error.name) from None
    if isinstance(value, FunctionType):
        value.__module__ = __name__  # where `help` says that it is, and where pickle looks for it
    globals()[name] = value
    return value


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext gemmlab` brings `%%gemm`, and starts the process for kernels."""
    import_module(".sandbox.client", __name__).shared_sandbox().warm()
    shell.register_magics(import_module(".widgets.magic", __name__).GemmMagics)
    import_module(".widgets.completion", __name__).install(shell)
    import_module(".widgets.without_device", __name__).install(shell)


def __dir__() -> list[str]:
    return sorted(__all__)
