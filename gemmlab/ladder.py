"""The records of kernels 1 to 13: the tutorial's ladder, and what is done about the edges."""

from __future__ import annotations

from dataclasses import replace

from .rules import SQUARE, WIDTH_UP_TO_8, even, multiple
from .spec import KernelSpec, Param, Rule, Switch

TS = Param("TS", 32, "side of the square tiles of A, B and C, in elements", (4, 8, 12, 16, 20, 24, 32))
WPT = Param("WPT", 8, "elements of C a work-item computes, all in one row", (1, 2, 4, 8, 16))
TSK = Param("TSK", 16, "depth of the tiles of A and B, in steps of k", (8, 16, 32))
PAD = Param("PAD", 2, "floats added to each row of Btile against bank conflicts", (0, 1, 2), least=0)
TSM = Param("TSM", 128, "rows of the tile of C", (32, 64, 128, 160))
TSN = Param("TSN", 128, "columns of the tile of C", (32, 64, 128, 160))
WPTM = Param("WPTM", 8, "rows of C a work-item computes", (2, 4, 8, 10))
WPTN = Param("WPTN", 8, "columns of C a work-item computes", (2, 4, 8, 10))
WIDTH = Param("WIDTH", 4, "floats in a vector loaded from global memory: 1, 2, 4 or 8", (1, 2, 4, 8))
UNROLL = Param("UNROLL", 4, "steps of k that the compiler lays out in one turn of the loop", (1, 4, 16))
READONLY = Param("READONLY", 0, "1: load A and B through the read-only cache where the device can", (0, 1), least=0)
SHUFFLE = Param(
    "SHUFFLE", 0, "1: share B among neighbours from register to register where the device can", (0, 1), least=0
)

K1 = KernelSpec(
    number=1,
    file="01_naive.cl",
    idea="one work-item computes one element of C",
    params=(replace(TS, meaning="side of the square of C that a work-group covers, in elements"),),
    rules=(),
    tile=("TS", "TS"),
    step="1",
    local_size=("TS", "TS"),
    local_memory="0",
    global_loads="2",
    local_loads="0",
)
K2 = replace(
    K1,
    number=2,
    before=1,
    file="02_tiled.cl",
    idea="a work-group fetches tiles of A and B into local memory once, and shares them",
    params=(TS,),
    step="TS",
    local_memory="2 * TS * TS * 4",
    global_loads="2 / TS",
    local_loads="2",
)
K3 = replace(
    K2,
    number=3,
    before=2,
    file="03_work_per_thread.cl",
    idea="a work-item computes WPT elements of C, so that one load of A serves WPT multiply-adds",
    params=(replace(TS, choices=(*TS.choices, 64)), WPT),
    rules=(multiple("TS", "WPT"),),
    local_size=("TS", "TS // WPT"),
    local_loads="1 + 1 / WPT",
)
K4 = replace(
    K2,
    number=4,
    before=3,
    file="04_vector_types.cl",
    idea="vectors of WIDTH floats for load, compute and store",
    params=(replace(TS, choices=(8, 16, 24, 32, 64)), replace(WIDTH, meaning="floats in a vector: 1, 2, 4 or 8")),
    rules=(WIDTH_UP_TO_8, multiple("TS", "WIDTH")),
    local_size=("TS // WIDTH", "TS"),
    local_loads="1 + 1 / WIDTH",
)
K5 = replace(
    K3,
    number=5,
    before=3,
    file="05_rectangular_tiles.cl",
    idea="B transposed beforehand, tiles of depth TSK, local rows padded against bank conflicts",
    params=(
        Param("TS", 32, "side of the square tile of C, in elements", (8, 16, 32, 64)),
        TSK,
        WPT,
        PAD,
    ),
    rules=(
        multiple("TS", "WPT"),
        Rule(
            "TSK % (TS / WPT) == 0", "TSK={TSK} is not a multiple of the columns of work-items, TS={TS} over WPT={WPT}"
        ),
    ),
    step="TSK",
    local_memory="(TSK * TS + TS * (TSK + PAD)) * 4",
    b_transposed="1",
)
K6 = replace(
    K5,
    number=6,
    before=5,
    file="06_register_blocking.cl",
    idea="a work-item computes a WPTM x WPTN block of C in registers",
    params=(TSM, TSN, TSK, WPTM, WPTN, PAD, UNROLL),
    rules=(
        SQUARE,
        multiple("TSM", "WPTM"),
        multiple("TSN", "WPTN"),
        even("TSN"),
        multiple("TSK", "UNROLL"),
    ),
    tile=("TSM", "TSN"),
    local_size=("TSM // WPTM", "TSN // WPTN"),
    local_memory="(TSK * TSM + TSN * (TSK + PAD)) * 4",
    global_loads="1 / TSM + 1 / TSN",
    local_loads="1 / WPTM + 1 / WPTN",
)
K7 = replace(
    K6,
    number=7,
    before=6,
    file="07_wide_loads.cl",
    idea="the tiles come from global memory as vectors of WIDTH floats",
    params=(TSM, TSN, TSK, WPTM, WPTN, WIDTH, UNROLL),
    rules=(
        SQUARE,
        WIDTH_UP_TO_8,
        multiple("TSM", "WPTM"),
        multiple("TSN", "WPTN"),
        multiple("TSM", "WIDTH"),
        multiple("TSN", "WIDTH"),
        even("TSN", "WIDTH"),
        multiple("TSK", "UNROLL"),
    ),
    local_memory="TSK * (TSM + TSN) * 4",
)
K8 = replace(
    K7,
    number=8,
    before=7,
    file="08_vendor_features.cl",
    idea="read-only loads, and shuffles between registers instead of local loads, where a device has them",
    params=(*K7.params[:-1], READONLY, SHUFFLE, UNROLL),
    rules=(
        *K7.rules,
        Rule("READONLY < 2", "READONLY={READONLY} is neither 0 nor 1"),
        Rule("SHUFFLE < 2", "SHUFFLE={SHUFFLE} is neither 0 nor 1"),
        Rule(
            "SHUFFLE * WPTN <= TSM / WPTM",
            "SHUFFLE={SHUFFLE} needs WPTN={WPTN} to be at most TSM={TSM} over WPTM={WPTM}",
        ),
        Rule("SHUFFLE * 32 % (TSM / WPTM) == 0", "SHUFFLE={SHUFFLE} needs TSM={TSM} over WPTM={WPTM} to divide 32"),
    ),
    switches=(
        Switch("READONLY", (("nvidia", "read-only loads (PTX ld.global.nc)"),)),
        Switch("SHUFFLE", (("nvidia", "shuffles (PTX shfl.sync)"), ("shuffle", "shuffles (sub-groups)"))),
    ),
)
K9 = replace(
    K7,
    number=9,
    before=7,
    file="09_prefetch.cl",
    idea="the next tile is fetched into a second local buffer while the first is multiplied",
    local_memory="2 * TSK * (TSM + TSN) * 4",
)
K10 = replace(
    K9,
    number=10,
    before=9,
    file="10_any_size.cl",
    idea="TSM and TSN free of each other, and any size by padding",
    rules=(*K9.rules[1:7], even("TSM", "WIDTH"), K9.rules[7]),
)
K11 = replace(
    K1,
    number=11,
    before=10,
    file="11_register_only.cl",
    idea="blocks straight from global memory into registers, no local memory",
    params=(
        Param("RX", 8, "rows of C a work-item computes", (4, 8, 16, 32, 48)),
        Param("RY", 4, "columns of C a work-item computes", (2, 4, 8, 12)),
        Param("RK", 1, "steps of k in one turn of the loop", (1, 2, 4)),
        Param("WIDTH", 4, "floats in a vector: 1, 2, 4, 8 or 16", (1, 2, 4, 8, 16)),
        Param("GX", 8, "rows of work-items in a work-group", (1, 2, 4, 8, 16)),
        Param("GY", 8, "columns of work-items", (1, 4, 8, 16)),
        Param("TRANSPOSED", 1, "1: B is N x K; 0: B is K x N", (0, 1), least=0),
    ),
    rules=(
        Rule("16 % WIDTH == 0", "WIDTH={WIDTH} is none of 1, 2, 4, 8 and 16"),
        multiple("RX", "WIDTH"),
        Rule("TRANSPOSED < 2", "TRANSPOSED={TRANSPOSED} is neither 0 nor 1"),
    ),
    tile=("RX * GX", "RY * GY"),
    step="RK",
    local_size=("GX", "GY"),
    global_loads="1 / RX + 1 / RY",
    b_transposed="TRANSPOSED",
)

K12 = replace(
    K3,
    number=12,
    before=3,
    file="12_guarded.cl",
    idea="any size without a copy: what lies outside the matrix counts as zero",
    edges="guard",
)
K13 = replace(
    K10,
    number=13,
    before=10,
    file="13_shifted.cl",
    idea="any size without a copy: the last tiles move back until they lie inside C",
    params=(TSM, TSN, TSK, WPTM, WPTN, UNROLL),
    rules=(multiple("TSM", "WPTM"), multiple("TSN", "WPTN"), even("TSN"), even("TSM"), multiple("TSK", "UNROLL")),
    edges="shift",
)
