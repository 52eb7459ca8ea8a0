"""The element types of BLAS: s, d, c and z."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..catalog import Limits
from ..opencl.devices import Device


class Precision(NamedTuple):
    """What a letter of BLAS stands for."""

    dtype: np.dtype  # NumPy's type of an element
    real: str  # OpenCL's type of its real part
    components: int  # real numbers in an element: 1, or 2 for a complex one

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    def vector(self, width: int = 1) -> str:
        """OpenCL's type of `width` consecutive elements."""
        numbers = width * self.components
        return self.real if numbers == 1 else f"{self.real}{numbers}"

    def zero(self, width: int = 1) -> str:
        """Zero in OpenCL C, as `width` elements."""
        zero = "0.0f" if self.real == "float" else "0.0"
        return zero if self.vector(width) == self.real else f"({self.vector(width)})({zero})"


PRECISIONS = {
    "s": Precision(np.dtype(np.float32), "float", 1),
    "d": Precision(np.dtype(np.float64), "double", 1),
    "c": Precision(np.dtype(np.complex64), "float", 2),
    "z": Precision(np.dtype(np.complex128), "double", 2),
}


def letter_of(dtype) -> str:
    """The letter of BLAS for a dtype of NumPy: s, d, c or z. Raises KeyError for any other."""
    return {precision.dtype: letter for letter, precision in PRECISIONS.items()}[np.dtype(dtype)]


def widest_vector(precision: str, limits: Limits) -> int:
    """Numbers that a vector may have on a device; a complex element counts as two."""
    components = PRECISIONS[precision].components
    if components == 1:
        return limits.vector
    real_bytes = PRECISIONS[precision].size // components
    return min(limits.vector, limits.complex_bytes // real_bytes)


def check_double(precision: str, device: Device) -> None:
    """Raise ValueError for a precision that the device's arithmetic lacks."""
    element = PRECISIONS[precision]
    if element.real == "double" and "double" not in device.features:
        instead = PRECISIONS[{"d": "s", "z": "c"}[precision]].dtype
        raise ValueError(
            f"{element.dtype} needs arithmetic in double precision, which {device} lacks; "
            f"{instead} runs there"
        )
