"""Kernels 1 to 13: the tutorial's ladder, and what is done about the edges."""

from __future__ import annotations

from dataclasses import replace

from .spec import KernelSpec, Switch

NAIVE = KernelSpec("01_naive.cl", tile="TS, TS, 1", work_group="TS, TS", loads="2, 0")
TILED = KernelSpec(
    "02_tiled.cl",
    tile="TS, TS, TS",
    work_group="TS, TS",
    local_floats="2 * TS * TS",
    loads="2 / TS, 2",
)
WORK_PER_THREAD = replace(
    TILED,
    file="03_work_per_thread.cl",
    work_group="TS, TS // WPT",
    loads="2 / TS, 1 + 1 / WPT",
)
VECTOR_TYPES = replace(
    TILED,
    file="04_vector_types.cl",
    work_group="TS // WIDTH, TS",
    loads="2 / TS, 1 + 1 / WIDTH",
)
RECTANGULAR_TILES = replace(
    WORK_PER_THREAD,
    file="05_rectangular_tiles.cl",
    tile="TS, TS, TSK",
    local_floats="TSK * TS + TS * (TSK + PAD)",
    b_transposed=True,
)
REGISTER_BLOCKING = KernelSpec(
    "06_register_blocking.cl",
    tile="TSM, TSN, TSK",
    work_group="TSM // WPTM, TSN // WPTN",
    local_floats="TSK * TSM + TSN * (TSK + PAD)",
    loads="1 / TSM + 1 / TSN, 1 / WPTM + 1 / WPTN",
    b_transposed=True,
)
WIDE_LOADS = replace(REGISTER_BLOCKING, file="07_wide_loads.cl", local_floats="TSK * (TSM + TSN)")
VENDOR_FEATURES = replace(
    WIDE_LOADS,
    file="08_vendor_features.cl",
    switches=(
        Switch("READONLY", (("nvidia", "read-only loads (PTX ld.global.nc)"),)),
        Switch(
            "SHUFFLE",
            (("nvidia", "shuffles (PTX shfl.sync)"), ("shuffle", "shuffles (sub-groups)")),
        ),
    ),
)
PREFETCH = replace(REGISTER_BLOCKING, file="09_prefetch.cl", local_floats="2 * TSK * (TSM + TSN)")
REGISTER_ONLY = KernelSpec(
    "11_register_only.cl",
    tile="RX * GX, RY * GY, RK",
    work_group="GX, GY",
    loads="1 / RX + 1 / RY, 0",
)

#: The kernels of this module, in order.
LADDER = (
    NAIVE,
    TILED,
    WORK_PER_THREAD,
    VECTOR_TYPES,
    RECTANGULAR_TILES,
    REGISTER_BLOCKING,
    WIDE_LOADS,
    VENDOR_FEATURES,
    PREFETCH,
    replace(PREFETCH, file="10_any_size.cl"),
    REGISTER_ONLY,
    replace(WORK_PER_THREAD, file="12_guarded.cl", edges="guard"),
    replace(PREFETCH, file="13_shifted.cl", edges="shift"),
)
