"""Every kernel: its parameters and rules, its tiles, work-groups and memory. No device needed.

Parameters and rules are read from the header of the kernel's file (`header`); `kernels` states the
rest.
"""

from __future__ import annotations

from collections.abc import Collection
from numbers import Integral

from .header import Param, Rule
from .kernels import LADDER, NARROW, PRODUCTION
from .spec import KernelSpec, Key, Limits, ParameterError, Switch, key

__all__ = [
    "NARROW",
    "KernelSpec",
    "Key",
    "Limits",
    "Param",
    "ParameterError",
    "Rule",
    "Switch",
    "catalog",
    "find",
    "in_order",
    "key",
]


#: Every kernel: ``catalog[3]``, or by its name in production, ``catalog["warp_tiling"]``.
catalog: dict[Key, KernelSpec] = {spec.number: spec for spec in (*LADDER, *PRODUCTION)}


def find(kernel: Key | KernelSpec) -> KernelSpec:
    """A kernel by its number or name. Raises ValueError with those that exist."""
    if isinstance(kernel, KernelSpec):
        return kernel
    listed = {**catalog, NARROW.number: NARROW}
    one = int(kernel) if isinstance(kernel, Integral) and not isinstance(kernel, bool) else kernel
    if isinstance(one, bool) or not isinstance(one, int | str) or one not in listed:
        raise ValueError(f"kernel must be one of {', '.join(map(repr, catalog))}, not {kernel!r}")
    return listed[one]


def in_order(kernels: Collection[Key]) -> list[Key]:
    """Numbers in ascending order, also those of no kernel; then names in the catalog's order."""
    numbers = sorted(kernel for kernel in kernels if not isinstance(kernel, str))
    return [*numbers, *(name for name in catalog if isinstance(name, str) and name in kernels)]
