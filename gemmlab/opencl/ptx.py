"""What NVIDIA's compiler made of a kernel, as PTX text."""

from __future__ import annotations

import re
from typing import Any

from .api import cl
from .launch import Kernel

#: Kinds of instructions that `instructions` counts, and their PTX. A vector load counts once per
#: float.
KINDS = {
    "multiply-adds": r"fma\.rn\.f32",
    "local loads": r"ld\.shared(?:\.v(\d))?\.f32",
    "local stores": r"st\.shared(?:\.v(\d))?\.f32",
    "global loads": r"ld\.global(?:\.nc)?(?:\.v(\d))?\.f32",
    "global stores": r"st\.global(?:\.v(\d))?\.f32",
    "barriers": r"bar(?:rier)?\.sync",
}


def ptx(kernel: Kernel) -> str | None:
    """Return the PTX text of a compiled kernel; None where NVIDIA's compiler is not in use."""
    if "nvidia" not in kernel.device.features:
        return None
    program: Any = kernel.opencl.get_info(cl.kernel_info.PROGRAM)
    return program.get_info(cl.program_info.BINARIES)[0].decode(errors="replace").rstrip("\0")


def instructions(text: str) -> dict[str, int]:
    """Return how many instructions of each of `KINDS` a PTX text contains."""
    counts = {}
    for kind, pattern in KINDS.items():
        widths = [m.group(1) if m.re.groups else None for m in re.finditer(pattern, text)]
        counts[kind] = sum(int(width or 1) for width in widths)
    return counts
