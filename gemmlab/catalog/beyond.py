"""Kernels 15 to 19: past the end of the tutorial, one idea each."""

from __future__ import annotations

from dataclasses import replace

from .ladder import PREFETCH
from .spec import KernelSpec, Switch

#: Copies to local memory that do not keep a work-item waiting.
ASYNCHRONOUS = Switch(
    "ASYNC",
    (("nvidia", "asynchronous copies (PTX cp.async)"),),
    "asynchronous",
    "cannot copy to local memory without waiting (compute capability 8.0)",
)
#: Tensor cores, by an instruction of a warp.
MMA = Switch(
    "TENSOR",
    (("tensor", "tensor cores (PTX mma.sync)"),),
    "asynchronous",
    "has no tensor cores that take TF32 (compute capability 8.0)",
)
#: Tensor cores, by an instruction of a warpgroup.
WGMMA = Switch(
    "TENSOR",
    (("warpgroups", "tensor cores (PTX wgmma)"),),
    "warpgroups",
    "has no instructions for warpgroups (compute capability 9.0)",
)

#: The kernels of this module, in order.
BEYOND = (
    replace(PREFETCH, file="15_warp_tiles.cl", work_group="TSM // WPTM * (TSN // WPTN), 1"),
    KernelSpec(
        "16_async_copies.cl",
        tile="TSM, TSN, TSK",
        work_group="TSM // WPTM * (TSN // 8), 1",
        local_floats="STAGES * TSK * (TSM + TSN)",
        loads="1 / TSM + 1 / TSN, 1 / WPTM + 1 / 8",
        b_transposed=True,
        switches=(ASYNCHRONOUS,),
    ),
    KernelSpec(
        "17_stream_k.cl",
        tile="TSM, TSN, 8",
        work_group="TSM // 16 * (TSN // 8), 1",
        local_floats="3 * 8 * (TSM + TSN)",
        loads="1 / TSM + 1 / TSN, 1 / 16 + 1 / 8",
        workspace_floats="2 * GROUPS * TSM * TSN",  # two partial tiles for each work-group
        b_transposed=True,
        one_dimensional=True,
        fixup=True,
        switches=(ASYNCHRONOUS,),
    ),
    KernelSpec(
        "18_tensor_cores.cl",
        tile="TSM, TSN, TSK",
        work_group="TSM // 64 * (TSN // 64) * 32, 1",
        local_floats="STAGES * TSK * (TSM + TSN + 16)",
        loads="1 / TSM + 1 / TSN, 1 / 64 + 1 / 64",
        b_transposed=True,
        tensor=True,
        switches=(MMA,),
    ),
    KernelSpec(
        "19_warpgroups.cl",
        tile="TSM, 128, TSK",
        work_group="TSM, 1",
        local_floats="4 * TSK * 130",
        loads="1 / TSM + 1 / 128, 0",
        tensor=True,
        switches=(WGMMA,),
    ),
)
