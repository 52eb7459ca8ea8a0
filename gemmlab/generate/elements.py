"""The element types of BLAS: s, d, c and z, and float16.

Float16 is only a format of numbers in memory: sums and factors are float32, and kernels convert
where they load and store. So they need no arithmetic in float16, which most OpenCL devices lack.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ..ladder import Limits

if TYPE_CHECKING:
    from ..opencl.devices import Device


class Element(NamedTuple):
    """What a letter of BLAS stands for."""

    dtype: np.dtype  # NumPy's type of an element of A and B
    result: np.dtype  # NumPy's type of an element of C
    real: str  # OpenCL's type of a real number in registers
    components: int  # real numbers in an element: 1, or 2 for a complex one
    half: bool  # whether A and B are float16
    size: int  # bytes of an element of A and B
    sum_size: int  # bytes of an element in registers
    stored: str  # OpenCL's type of an element of A and B in memory
    stored_result: str  # OpenCL's type of an element of C in memory

    @classmethod
    def of(cls, name: str, result: str = "") -> Element:
        """Return the precision with these types of NumPy; the result has by default that of A and
        B.
        """
        dtype, c_type = np.dtype(name), np.dtype(result or name)
        components = 2 if dtype.kind == "c" else 1
        half = dtype == np.float16
        sum_size = 4 if half else dtype.itemsize
        real = "double" if sum_size // components == 8 else "float"
        number = real if components == 1 else f"{real}2"
        stored, stored_result = ("half" if x == np.float16 else number for x in (dtype, c_type))
        return cls(
            dtype, c_type, real, components, half, dtype.itemsize, sum_size, stored, stored_result
        )

    def vector(self, width: int = 1) -> str:
        """Return OpenCL's type of `width` consecutive elements in registers."""
        numbers = width * self.components
        return self.real if numbers == 1 else f"{self.real}{numbers}"

    def zero(self, width: int = 1) -> str:
        """Return zero in OpenCL C, as `width` elements."""
        zero = "0.0f" if self.real == "float" else "0.0"
        return zero if self.vector(width) == self.real else f"({self.vector(width)})({zero})"

    def loaded(self, element: str, width: int = 1) -> str:
        """Return `width` elements of A or B from this one on, in OpenCL C, aligned as a vector of
        them.
        """
        if self.half:
            return f"vload_half{'' if width == 1 else width}(0, &{element})"
        return element if width == 1 else f"*(const __global {self.vector(width)}*)&{element}"


#: By the letters of BLAS. As in OpenBLAS, "sh" stores the product of float16 as float32.
ELEMENTS = {
    "s": Element.of("float32"),
    "d": Element.of("float64"),
    "c": Element.of("complex64"),
    "z": Element.of("complex128"),
    "h": Element.of("float16"),
    "sh": Element.of("float16", "float32"),
}


def letter_of(dtype: DTypeLike, result: DTypeLike | None = None) -> str:
    """Return the letter of BLAS for two dtypes of NumPy, of operands and result; KeyError if there
    is none.
    """
    types = np.dtype(dtype), np.dtype(dtype if result is None else result)
    return {(one.dtype, one.result): letter for letter, one in ELEMENTS.items()}[types]


def results_of(dtype: np.dtype) -> tuple[np.dtype, ...]:
    """Return the types that a product of such elements may have, that of the elements first."""
    return tuple(one.result for one in ELEMENTS.values() if one.dtype == dtype)


def widest_vector(precision: str, limits: Limits) -> int:
    """Return numbers that a vector may have on a device; a complex element counts as two."""
    real_bytes = ELEMENTS[precision].sum_size // ELEMENTS[precision].components
    return min(limits.vector, limits.vector_bytes // real_bytes)


def check_double(precision: str, device: Device) -> None:
    """Raise ValueError for a precision that the device's arithmetic lacks."""
    element = ELEMENTS[precision]
    if element.real == "double" and "double" not in device.features:
        instead = ELEMENTS[{"d": "s", "z": "c"}[precision]].dtype
        how = " (or set RUSTICL_FEATURES=fp64)" if "rusticl" in str(device).lower() else ""
        raise ValueError(
            f"{element.dtype} needs arithmetic in double precision, which {device} lacks; "
            f"{instead} runs there{how}"
        )
