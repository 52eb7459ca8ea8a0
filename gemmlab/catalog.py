"""The kernels as records: parameters, constraints, tile, work-group, memory. No device needed.

A record (`ladder`, `past`) says in data what its file in ``kernels/`` says in OpenCL C; a test compares the two.
"""

from __future__ import annotations

from numbers import Integral

from .ladder import K1, K2, K3, K4, K5, K6, K7, K8, K9, K10, K11, K12, K13
from .past import K15, K16, K17
from .spec import KernelSpec, Limits, Param, ParameterError, Rule, Switch

__all__ = ["KernelSpec", "Limits", "Param", "ParameterError", "Rule", "Switch", "catalog", "find"]


#: Every kernel by its number: ``catalog[3]``.
catalog: dict[int, KernelSpec] = {
    s.number: s for s in (K1, K2, K3, K4, K5, K6, K7, K8, K9, K10, K11, K12, K13, K15, K16, K17)
}


def find(kernel) -> KernelSpec:
    """The record of a kernel number. Raises ValueError with the known ones."""
    if isinstance(kernel, KernelSpec):
        return kernel
    if isinstance(kernel, bool) or not isinstance(kernel, Integral) or int(kernel) not in catalog:
        known = ", ".join(map(str, catalog))
        raise ValueError(f"kernel must be one of {known}, not {kernel!r}")
    return catalog[int(kernel)]
