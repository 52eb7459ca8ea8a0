"""The parameters of a product's kernel, `gemm`: whether it may be launched with what a product
passes. No device is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

SIZES, MATRICES = ("M", "N", "K"), ("A", "B", "C")
#: OpenCL C's integer types, which sizes may have.
INTEGERS = frozenset(
    f"{prefix}{name}" for prefix in ("", "u") for name in ("char", "short", "int", "long")
)
#: Scalar types of which vectors exist.
_SCALARS = INTEGERS | {"half", "float", "double"}


class Parameter(NamedTuple):
    """A parameter of a kernel.

    `type` is written without qualifiers, such as "int", "float4" or "float*", and preferably
    without names that a typedef or a macro makes: an unknown name passes for the right elements of
    a matrix. `space` is "global", "constant", "local" or "private".
    """

    name: str
    type: str
    space: str = "private"

    def __str__(self) -> str:
        """Its declaration."""
        space = "" if self.space == "private" else f"__{self.space} "
        return f"{space}{self.type} {self.name}"


def problem(parameters: Sequence[Parameter], workspace: bool = False) -> str:
    """Why a kernel with these parameters must not be launched as a product, in words; an empty
    string if it may be.

    A product passes the sizes M, N and K, then the buffers of A, B and C, which hold float32, then
    with `workspace` a buffer for partial tiles. Parameters may have other names, but not these
    names in an order that contradicts the arguments.
    """
    wanted = [*SIZES, *MATRICES, *["pieces"] * workspace]
    expected = f"the arguments are {', '.join(wanted)}, in this order"
    names = [p.name for p in parameters]
    if len(names) != len(wanted):
        return f"gemm has {len(names)} parameters instead of {len(wanted)}: {expected}"
    if sorted(names) == sorted(wanted) and not _is_consistent(names):
        return f"gemm has the parameters {', '.join(names)}, but {expected}"
    at = misfit(parameters)
    if at is None:
        return ""
    what = f"parameter {at + 1} of gemm is `{parameters[at]}`"
    needs = _needs(parameters[at], wanted[at])
    return f"{what}, but must be {needs}, as it is {_ROLES[wanted[at]]}: {expected}"


def misfit(parameters: Sequence[Parameter]) -> int | None:
    """The index of the first parameter whose type is not that of a product's argument, or None."""
    roles = (*SIZES, *MATRICES, "pieces")
    pairs = enumerate(zip(parameters, roles, strict=False))
    return next((at for at, (parameter, role) in pairs if _needs(parameter, role)), None)


_ROLES = {
    **{name: f"the size {name}" for name in SIZES},
    **{name: f"the matrix {name}" for name in MATRICES},
    "pieces": "memory for partial tiles",
}


def _is_consistent(names: Sequence[str]) -> bool:
    """Whether a product's names may be a kernel's own names for its parameters, in this order.

    Row-major matrices make the kernel compute the transpose of C from those of B and A, and any
    letter may be a size: M x K is the result of M x N times N x K.
    """
    sizes, matrices = tuple(names[:3]), tuple(names[3:6])
    return set(sizes) == set(SIZES) and (
        matrices == MATRICES or (matrices == ("B", "A", "C") and sizes == ("N", "M", "K"))
    )


def _needs(parameter: Parameter, role: str) -> str:
    """What a parameter must be instead of what it is; an empty string if it may remain so."""
    if role in SIZES:
        return "" if parameter.type in INTEGERS else "an integer, such as int"
    is_read = role in ("A", "B")
    spaces = ("global", "constant") if is_read else ("global",)
    pointed, star, rest = parameter.type.partition("*")
    other = pointed.strip().rstrip("0123456789") in _SCALARS - {"float"} and role in MATRICES
    if star and not rest and parameter.space in spaces and not other:
        return ""
    return f"`{'const ' * is_read}__global float*`"
