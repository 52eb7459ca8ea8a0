"""The public names, for type checkers and editors: `__init__.py` loads them when they are used."""

from typing import Any

from .blas.explain import auto as auto
from .blas.products import cgemm as cgemm
from .blas.products import dgemm as dgemm
from .blas.products import gemm as gemm
from .blas.products import hgemm as hgemm
from .blas.products import matmul as matmul
from .blas.products import sgemm as sgemm
from .blas.products import zgemm as zgemm
from .caches import clear_caches as clear_caches
from .ladder import ParameterError as ParameterError
from .ladder import catalog as catalog
from .measurement.peaks import peaks as peaks
from .measurement.records import Result as Result
from .measurement.sweeps import sweep as sweep
from .measurement.timing import measure as measure
from .measurement.tuned import tune as tune
from .opencl.build import BuildError as BuildError
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
