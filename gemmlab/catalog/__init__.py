"""Every kernel: its parameters and rules, its tiles, work-groups and memory. No device needed.

Parameters and rules are read from the header of the kernel's file (`header`); the rest is stated in
`ladder`, `beyond` and `production`.
"""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral

from .beyond import BEYOND
from .header import Param, Rule
from .ladder import LADDER
from .production import NARROW, PRODUCTION
from .spec import KernelSpec, Key, Limits, ParameterError, Switch

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
catalog: dict[Key, KernelSpec] = {spec.number: spec for spec in (*LADDER, *BEYOND, *PRODUCTION)}


def find(kernel: Key | KernelSpec) -> KernelSpec:
    """A kernel by its number or name. Raises ValueError with those that exist."""
    if isinstance(kernel, KernelSpec):
        return kernel
    key = int(kernel) if isinstance(kernel, Integral) and not isinstance(kernel, bool) else kernel
    if isinstance(key, str) and key == NARROW.number:
        return NARROW
    if isinstance(key, bool) or not isinstance(key, int | str) or key not in catalog:
        raise ValueError(f"kernel must be one of {', '.join(map(repr, catalog))}, not {kernel!r}")
    return catalog[key]


def key(text: str) -> Key:
    """The key of a kernel as a text spells it, such as "3" or "warp_tiling"; it need not exist."""
    return int(text) if text.isdigit() else text


def in_order(kernels: Iterable[Key]) -> list[Key]:
    """Numbers in ascending order, also those of no kernel; then names in the catalog's order."""
    names = list(catalog)

    def position(kernel: Key) -> tuple[bool, int]:
        if isinstance(kernel, str):
            return True, names.index(kernel)
        return False, kernel

    return sorted(kernels, key=position)
