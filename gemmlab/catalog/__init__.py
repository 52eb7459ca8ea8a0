"""The kernels as records: parameters, rules, tiles, work-groups, memory. No device needed.

A record (`ladder`, `production`) says in Python what its file in ``kernels/`` says in OpenCL C; a test compares the
two.
"""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral

from .beyond import BEYOND
from .ladder import LADDER
from .production import NARROW, PRODUCTION
from .spec import KernelSpec, Key, Limits, Param, ParameterError, Rule, Switch

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


#: Every kernel by its number, ``catalog[3]``, and those of production by their names, ``catalog["warp_tiling"]``.
catalog: dict[Key, KernelSpec] = {spec.number: spec for spec in (*LADDER, *BEYOND, *PRODUCTION)}


def find(kernel: Key | KernelSpec) -> KernelSpec:
    """The record of a kernel by its number or name. Raises ValueError with the known ones."""
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
    """Numbers and names in the order of the catalog; numbers that it does not have come in between."""
    return sorted(kernels, key=lambda k: (isinstance(k, str), list(catalog).index(k) if isinstance(k, str) else k))
