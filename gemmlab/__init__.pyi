"""The public names, for type checkers and editors: `__init__.py` loads them when they are used."""

from collections.abc import Mapping
from typing import Any, Literal, Protocol, overload

import numpy as np

from .blas.arrays import Number, Operand, Transposition
from .blas.explain import auto as auto
from .blas.product import Edges
from .caches import clear_caches as clear_caches
from .generate.candidates import Precision
from .ladder import Key
from .ladder import ParameterError as ParameterError
from .ladder import catalog as catalog
from .measurement.peaks import peaks as peaks
from .measurement.records import Result as Result
from .measurement.sweeps import sweep as sweep
from .measurement.timing import measure as measure
from .measurement.tuned import tune as tune
from .opencl.build import BuildError as BuildError
from .opencl.devices import Device
from .opencl.devices import NoDeviceError as NoDeviceError
from .opencl.devices import default_device as default_device
from .opencl.devices import devices as devices
from .opencl.doctor import doctor as doctor
from .opencl.launch import kernel as kernel
from .sandbox.client import trial as trial
from .simulation import simulate as simulate
from .version import __version__ as __version__
from .widgets.explorer import Explorer as Explorer
from .widgets.generator import Generator as Generator
from .widgets.lesson import Difference as Difference
from .widgets.lesson import Prediction as Prediction
from .widgets.lesson import goal as goal
from .widgets.lesson import verdict as verdict
from .widgets.progress import Progress as Progress
from .widgets.stepper import Stepper as Stepper

def load_ipython_extension(shell: Any) -> None: ...

class _DLPack(Protocol):
    def __dlpack__(self) -> Any: ...

class _ArrayInterface(Protocol):
    @property
    def __array_interface__(self) -> Any: ...

#: What NumPy can read, such as a tensor of PyTorch.
_Readable = np.ndarray[Any, Any] | _DLPack | _ArrayInterface

@overload
def matmul(
    a: Operand,
    b: Operand,
    out: Operand | None = None,
    *,
    kernel: Key = "auto",
    params: Mapping[str, int] | None = None,
    device: Device | int | str | None = None,
    edges: Edges = "auto",
    precision: Precision = "float32",
) -> Operand: ...
@overload
def matmul(
    a: _Readable,
    b: _Readable,
    out: np.ndarray[Any, Any] | None = None,
    *,
    kernel: Key = "auto",
    params: Mapping[str, int] | None = None,
    device: Device | int | str | None = None,
    edges: Edges = "auto",
    precision: Precision = "float32",
) -> np.ndarray[Any, Any]: ...
@overload
def gemm(
    alpha: Number,
    a: Operand,
    b: Operand,
    beta: Number = 0.0,
    c: Operand | None = None,
    trans_a: Transposition = 0,
    trans_b: Transposition = 0,
    *,
    overwrite_c: bool | Literal[0, 1] = False,
    kernel: Key = "auto",
    params: Mapping[str, int] | None = None,
    device: Device | int | str | None = None,
    edges: Edges = "auto",
) -> Operand: ...
@overload
def gemm(
    alpha: Number,
    a: _Readable,
    b: _Readable,
    beta: Number = 0.0,
    c: _Readable | None = None,
    trans_a: Transposition = 0,
    trans_b: Transposition = 0,
    *,
    overwrite_c: bool | Literal[0, 1] = False,
    kernel: Key = "auto",
    params: Mapping[str, int] | None = None,
    device: Device | int | str | None = None,
    edges: Edges = "auto",
) -> np.ndarray[Any, Any]: ...

sgemm = gemm
dgemm = gemm
cgemm = gemm
zgemm = gemm
hgemm = gemm
