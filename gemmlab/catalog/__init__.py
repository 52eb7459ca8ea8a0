"""The kernels as records: parameters, rules, tiles, work-groups, memory. No device needed.

A record (`ladder`, `production`) says in Python what its file in ``kernels/`` says in OpenCL C; a test compares the
two.
"""

from __future__ import annotations

from numbers import Integral

from .ladder import LADDER
from .production import NARROW, PRODUCTION
from .spec import KernelSpec, Limits, Param, ParameterError, Rule, Switch

__all__ = ["NARROW", "KernelSpec", "Limits", "Param", "ParameterError", "Rule", "Switch", "catalog", "find"]


#: Every kernel by its number: ``catalog[3]``.
catalog: dict[int, KernelSpec] = {spec.number: spec for spec in (*LADDER, *PRODUCTION)}


def find(kernel: int | str | KernelSpec) -> KernelSpec:
    """The record of a kernel number. Raises ValueError with the known ones."""
    if isinstance(kernel, KernelSpec):
        return kernel
    if isinstance(kernel, str) and kernel == NARROW.number:
        return NARROW
    if isinstance(kernel, bool) or not isinstance(kernel, Integral) or int(kernel) not in catalog:
        known = ", ".join(map(str, catalog))
        raise ValueError(f"kernel must be one of {known}, not {kernel!r}")
    return catalog[int(kernel)]
