"""The element types of BLAS: s, d, c and z, and float16.

Float16 is only a format of numbers in memory: sums and factors are float32, and kernels convert
where they load and store. So they need no arithmetic in float16, which most OpenCL devices lack.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..catalog import Limits
from ..opencl.devices import Device


class Precision(NamedTuple):
    """What a letter of BLAS stands for."""

    dtype: np.dtype  # NumPy's type of an element of A and B
    real: str  # OpenCL's type of a real number in registers
    components: int  # real numbers in an element: 1, or 2 for a complex one
    result: np.dtype  # NumPy's type of an element of C

    @property
    def half(self) -> bool:
        """Whether A and B are float16."""
        return self.dtype == np.float16

    @property
    def size(self) -> int:
        """Bytes of an element of A and B."""
        return self.dtype.itemsize

    @property
    def sum_size(self) -> int:
        """Bytes of an element in registers."""
        return self.components * (8 if self.real == "double" else 4)

    @property
    def stored(self) -> str:
        """OpenCL's type of an element of A and B in memory."""
        return "half" if self.half else self.vector()

    @property
    def stored_result(self) -> str:
        """OpenCL's type of an element of C in memory."""
        return "half" if self.result == np.float16 else self.vector()

    def vector(self, width: int = 1) -> str:
        """OpenCL's type of `width` consecutive elements in registers."""
        numbers = width * self.components
        return self.real if numbers == 1 else f"{self.real}{numbers}"

    def zero(self, width: int = 1) -> str:
        """Zero in OpenCL C, as `width` elements."""
        zero = "0.0f" if self.real == "float" else "0.0"
        return zero if self.vector(width) == self.real else f"({self.vector(width)})({zero})"

    def loaded(self, element: str, width: int = 1) -> str:
        """`width` elements of A or B from this one on, in OpenCL C, aligned as a vector of them."""
        if self.half:
            return f"vload_half{'' if width == 1 else width}(0, &{element})"
        return element if width == 1 else f"*(const __global {self.vector(width)}*)&{element}"

    def loaded_result(self, element: str) -> str:
        """An element of C in OpenCL C."""
        return f"vload_half(0, &{element})" if self.stored_result == "half" else element

    def stores(self, value: str, element: str) -> str:
        """The statement that stores a number as an element of C, in OpenCL C."""
        if self.stored_result == "half":
            return f"vstore_half({value}, 0, &{element});"
        return f"{element} = {value};"


_SINGLE, _DOUBLE, _COMPLEX, _COMPLEX_DOUBLE, _HALF = (
    np.dtype(name) for name in ("float32", "float64", "complex64", "complex128", "float16")
)
#: By the letters of BLAS. As in OpenBLAS, "sh" stores the product of float16 as float32.
PRECISIONS = {
    "s": Precision(_SINGLE, "float", 1, _SINGLE),
    "d": Precision(_DOUBLE, "double", 1, _DOUBLE),
    "c": Precision(_COMPLEX, "float", 2, _COMPLEX),
    "z": Precision(_COMPLEX_DOUBLE, "double", 2, _COMPLEX_DOUBLE),
    "h": Precision(_HALF, "float", 1, _HALF),
    "sh": Precision(_HALF, "float", 1, _SINGLE),
}


def letter_of(dtype, result=None) -> str:
    """The letter of BLAS for two dtypes of NumPy, of operands and result; KeyError if there is
    none.
    """
    types = np.dtype(dtype), np.dtype(dtype if result is None else result)
    return {(one.dtype, one.result): letter for letter, one in PRECISIONS.items()}[types]


def results_of(dtype: np.dtype) -> tuple[np.dtype, ...]:
    """The types that a product of such elements may have, that of the elements first."""
    return tuple(one.result for one in PRECISIONS.values() if one.dtype == dtype)


def widest_vector(precision: str, limits: Limits) -> int:
    """Numbers that a vector may have on a device; a complex element counts as two."""
    real_bytes = PRECISIONS[precision].sum_size // PRECISIONS[precision].components
    return min(limits.vector, limits.vector_bytes // real_bytes)


def check_double(precision: str, device: Device) -> None:
    """Raise ValueError for a precision that the device's arithmetic lacks."""
    element = PRECISIONS[precision]
    if element.real == "double" and "double" not in device.features:
        instead = PRECISIONS[{"d": "s", "z": "c"}[precision]].dtype
        how = " (or set RUSTICL_FEATURES=fp64)" if "rusticl" in str(device).lower() else ""
        raise ValueError(
            f"{element.dtype} needs arithmetic in double precision, which {device} lacks; "
            f"{instead} runs there{how}"
        )
