"""Every kernel: what its file does not state. Parameters and rules are read from the files."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

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

TILED = KernelSpec("02_tiled.cl", tile="TS, TS, TS")
WORK_PER_THREAD = replace(TILED, file="03_work_per_thread.cl", block="1, WPT")
REGISTER_BLOCKING = KernelSpec(
    "06_register_blocking.cl",
    tile="TSM, TSN, TSK",
    block="WPTM, WPTN",
    b_transposed=True,
)
WIDE_LOADS = replace(REGISTER_BLOCKING, file="07_wide_loads.cl")
PREFETCH = replace(REGISTER_BLOCKING, file="09_prefetch.cl")
ASYNC_COPIES = KernelSpec(
    "16_async_copies.cl",
    tile="TSM, TSN, TSK",
    block="WPTM, 8",
    b_transposed=True,
    warps=True,
    switches=(ASYNCHRONOUS,),
)
TENSOR_CORES = KernelSpec(
    "18_tensor_cores.cl",
    tile="TSM, TSN, TSK",
    block="64, 64",
    b_transposed=True,
    warps=True,
    tensor=True,
    switches=(MMA,),
)
WARPGROUPS = KernelSpec(
    "19_warpgroups.cl",
    tile="TSM, 128, TSK",
    block="",
    work_group="TSM, 1",
    tensor=True,
    switches=(WGMMA,),
)

#: The tutorial's ladder, what is done about the edges, and what is beyond the tutorial.
LADDER = (
    KernelSpec("01_naive.cl", tile="TS, TS, 1"),
    TILED,
    WORK_PER_THREAD,
    replace(TILED, file="04_vector_types.cl", block="WIDTH, 1"),
    replace(
        WORK_PER_THREAD,
        file="05_rectangular_tiles.cl",
        tile="TS, TS, TSK",
        b_transposed=True,
    ),
    REGISTER_BLOCKING,
    WIDE_LOADS,
    replace(
        WIDE_LOADS,
        file="08_vendor_features.cl",
        switches=(
            Switch("READONLY", (("nvidia", "read-only loads (PTX ld.global.nc)"),)),
            Switch(
                "SHUFFLE",
                (("nvidia", "shuffles (PTX shfl.sync)"), ("shuffle", "shuffles (sub-groups)")),
            ),
        ),
    ),
    PREFETCH,
    replace(PREFETCH, file="10_any_size.cl"),
    KernelSpec(
        "11_register_only.cl", tile="RX * GX, RY * GY, RK", block="RX, RY", work_group="GX, GY"
    ),
    replace(WORK_PER_THREAD, file="12_guarded.cl", edges="guard"),
    replace(PREFETCH, file="13_shifted.cl", edges="shift"),
    replace(PREFETCH, file="15_warp_tiles.cl", warps=True),
    ASYNC_COPIES,
    replace(
        ASYNC_COPIES,
        file="17_stream_k.cl",
        tile="TSM, TSN, 8",
        block="16, 8",
        workspace_floats="2 * GROUPS * TSM * TSN",  # two partial tiles for each work-group
        one_dimensional=True,
        fixup=True,
    ),
    TENSOR_CORES,
    WARPGROUPS,
)

_PRODUCTION: dict[str, Any] = {"edges": "guard", "wide": True, "one_dimensional": True}

#: For results with few rows or columns. It is no step of the ladder and not listed in the catalog.
NARROW = KernelSpec(
    "production/narrow.cl",
    tile="(LINES, 8 * WPT, TSK) if ROWS else (32 * WIDTH * WPT, LINES, TSK)",
    block="",
    work_group="256, 1",
    local_floats="LINES * TSK + 256 * min(LINES * WPT * (1 if ROWS else WIDTH), 8) + 1",
    alignments="(1, WIDTH) if ROWS else (WIDTH, 1)",
    # two partial tiles and a counter for each work-group
    workspace_floats="GROUPS * (2 * LINES * WPT * (8 if ROWS else 32 * WIDTH) + 1)",
    **_PRODUCTION,
)

#: What `matmul` runs on GPUs: every idea of the ladder at once, for any size. Each text is
#: assembled from the parts that its parameters need (see `KernelSpec.text`).
PRODUCTION = (
    KernelSpec(
        "production/warp_tiling.cl",
        tile="TSM, TSN, TSK",
        block="WPTM, WPTN",
        alignments="WIDTH, WIDTH if TRANSPOSED else 1",
        # two partial tiles and a counter for each work-group
        workspace_floats="GROUPS * (2 * TSM * TSN + 1)",
        warps=True,
        turns=True,
        fixup=True,
        adds_up=True,
        switches=(ASYNCHRONOUS,),
        **_PRODUCTION,
    ),
    replace(
        TENSOR_CORES,
        file="production/tensor_cores.cl",
        block="WM, WN",
        alignments="4, 4",
        **_PRODUCTION,
    ),
    replace(
        WARPGROUPS,
        file="production/warpgroups.cl",
        tile="256, 128, TSK",
        work_group="256, 1",
        alignments="4, 4",
        **_PRODUCTION,
    ),
)
