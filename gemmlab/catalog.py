"""The kernels of the ladder as records: parameters, constraints, tile, work-group, memory. No device needed.

A record says in data what its file in ``kernels/`` says in OpenCL C; a test compares the two.
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral

from .rules import SQUARE, WIDTH_UP_TO_8, even, multiple
from .spec import KernelSpec, Limits, Param, ParameterError, Rule, Switch

__all__ = ["KernelSpec", "Limits", "Param", "ParameterError", "Rule", "Switch", "catalog", "find"]


_TS = Param("TS", 32, "side of the square tiles of A, B and C, in elements", (4, 8, 12, 16, 20, 24, 32))
_WPT = Param("WPT", 8, "elements of C a work-item computes, all in one row", (1, 2, 4, 8, 16))
_TSK = Param("TSK", 16, "depth of the tiles of A and B, in steps of k", (8, 16, 32))
_PAD = Param("PAD", 2, "floats added to each row of Bsub against bank conflicts", (0, 1, 2), least=0)
_TSM = Param("TSM", 128, "rows of the tile of C", (32, 64, 128, 160))
_TSN = Param("TSN", 128, "columns of the tile of C", (32, 64, 128, 160))
_WPTM = Param("WPTM", 8, "rows of C a work-item computes", (2, 4, 8, 10))
_WPTN = Param("WPTN", 8, "columns of C a work-item computes", (2, 4, 8, 10))
_WIDTH = Param("WIDTH", 4, "floats in a vector loaded from global memory: 1, 2, 4 or 8", (1, 2, 4, 8))
_UNROLL = Param("UNROLL", 4, "steps of k that the compiler lays out in one turn of the loop", (1, 4, 16))
_READONLY = Param("READONLY", 0, "1: load A and B through the read-only cache where the device can", (0, 1), least=0)
_SHUFFLE = Param(
    "SHUFFLE", 0, "1: share B among neighbours from register to register where the device can", (0, 1), least=0
)

_1 = KernelSpec(
    number=1,
    file="01_naive.cl",
    idea="one work-item computes one element of C",
    params=(replace(_TS, meaning="side of the square of C that a work-group covers, in elements"),),
    rules=(),
    tile=("TS", "TS"),
    step="1",
    local_size=("TS", "TS"),
    local_memory="0",
    global_loads="2",
    local_loads="0",
)
_2 = replace(
    _1,
    number=2,
    before=1,
    file="02_tiled.cl",
    idea="a work-group fetches tiles of A and B into local memory once, and shares them",
    params=(_TS,),
    step="TS",
    local_memory="2 * TS * TS * 4",
    global_loads="2 / TS",
    local_loads="2",
)
_3 = replace(
    _2,
    number=3,
    before=2,
    file="03_work_per_thread.cl",
    idea="a work-item computes WPT elements of C, so that one load of A serves WPT multiply-adds",
    params=(replace(_TS, choices=(*_TS.choices, 64)), _WPT),
    rules=(multiple("TS", "WPT"),),
    local_size=("TS", "TS // WPT"),
    local_loads="1 + 1 / WPT",
)
_4 = replace(
    _2,
    number=4,
    before=3,
    file="04_vector_types.cl",
    idea="vectors of WIDTH floats for load, compute and store",
    params=(replace(_TS, choices=(8, 16, 24, 32, 64)), replace(_WIDTH, meaning="floats in a vector: 1, 2, 4 or 8")),
    rules=(WIDTH_UP_TO_8, multiple("TS", "WIDTH")),
    local_size=("TS // WIDTH", "TS"),
    local_loads="1 + 1 / WIDTH",
)
_5 = replace(
    _3,
    number=5,
    before=3,
    file="05_rectangular_tiles.cl",
    idea="B transposed beforehand, tiles of depth TSK, local rows padded against bank conflicts",
    params=(
        Param("TS", 32, "side of the square tile of C, in elements", (8, 16, 32, 64)),
        _TSK,
        _WPT,
        _PAD,
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
_6 = replace(
    _5,
    number=6,
    before=5,
    file="06_register_blocking.cl",
    idea="a work-item computes a WPTM x WPTN block of C in registers",
    params=(_TSM, _TSN, _TSK, _WPTM, _WPTN, _PAD, _UNROLL),
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
_7 = replace(
    _6,
    number=7,
    before=6,
    file="07_wide_loads.cl",
    idea="the tiles come from global memory as vectors of WIDTH floats",
    params=(_TSM, _TSN, _TSK, _WPTM, _WPTN, _WIDTH, _UNROLL),
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
_8 = replace(
    _7,
    number=8,
    before=7,
    file="08_vendor_features.cl",
    idea="read-only loads, and shuffles between registers instead of local loads, where a device has them",
    params=(*_7.params[:-1], _READONLY, _SHUFFLE, _UNROLL),
    rules=(
        *_7.rules,
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
_9 = replace(
    _7,
    number=9,
    before=7,
    file="09_prefetch.cl",
    idea="the next tile is fetched into a second local buffer while the first is multiplied",
    local_memory="2 * TSK * (TSM + TSN) * 4",
)
_10 = replace(
    _9,
    number=10,
    before=9,
    file="10_any_size.cl",
    idea="TSM and TSN free of each other, and any size by padding",
    rules=(*_9.rules[1:7], even("TSM", "WIDTH"), _9.rules[7]),
)
_11 = replace(
    _1,
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

_12 = replace(
    _3,
    number=12,
    before=3,
    file="12_guarded.cl",
    idea="any size without a copy: what lies outside the matrix counts as zero",
    edges="guard",
)
_13 = replace(
    _10,
    number=13,
    before=10,
    file="13_shifted.cl",
    idea="any size without a copy: the last tiles move back until they lie inside C",
    params=(_TSM, _TSN, _TSK, _WPTM, _WPTN, _UNROLL),
    rules=(multiple("TSM", "WPTM"), multiple("TSN", "WPTN"), even("TSN"), even("TSM"), multiple("TSK", "UNROLL")),
    edges="shift",
)

_15 = replace(
    _9,
    number=15,
    before=9,
    file="15_warp_tiling.cl",
    idea="a compact block for each warp, read as vectors of 4; tiles that come without waiting; equal work for all",
    params=(
        replace(_TSM, choices=(32, 64, 128)),
        replace(_TSN, default=64, choices=(32, 64, 128)),
        replace(_TSK, choices=(8, 16)),
        replace(_WPTM, choices=(4, 8)),
        replace(_WPTN, choices=(4, 8)),
        Param("WARPM", 8, "rows of work-items in a warp of 32", (4, 8)),
        replace(_WIDTH, meaning="floats copied at once from global memory: 1 or 4", choices=(1, 4)),
        Param("STAGES", 2, "tiles of A and B in local memory: one in use, the others on their way", (2, 3)),
        Param("ORDER", 8, "rows of tiles that neighbouring work-groups go through together", (1, 8)),
        Param("GROUPS", 0, "work-groups that share all tiles equally; 0: one for each tile", (0, 16, 264), least=0),
        Param("TRANSPOSED", 1, "1: B is N x K; 0: B is K x N", (0, 1), least=0),
        Param("ASYNC", 1, "1: copy to local memory without waiting where the device can", (0, 1), least=0),
    ),
    rules=(
        multiple("TSM", "WPTM", "WARPM"),
        Rule("32 % WARPM == 0", "WARPM={WARPM} does not divide 32"),
        Rule(
            "TSN * WARPM % (WPTN * 32) == 0", "TSN={TSN} is not a multiple of WPTN={WPTN} times 32 over WARPM={WARPM}"
        ),
        *(Rule(f"{side} % 4 == 0", f"{side}={{{side}}} is not a multiple of 4") for side in ("WPTM", "WPTN")),
        Rule("(WIDTH - 1) * (WIDTH - 4) == 0", "WIDTH={WIDTH} is neither 1 nor 4"),
        *(
            Rule(
                f"{tile} * WIDTH % (WPTM * WPTN) == 0",
                f"{tile}={{{tile}}} times WIDTH={{WIDTH}} is not a multiple of WPTM={{WPTM}} times WPTN={{WPTN}}",
            )
            for tile in ("TSN", "TSM")
        ),
        even("TSN", "WIDTH"),
        even("TSM", "WIDTH"),
        Rule("STAGES > 1", "STAGES={STAGES} is less than 2"),
        Rule("TSK % 2 == 0", "TSK={TSK} is odd"),
        Rule(
            "(TSM * TSN) % (TSK * WPTM * WPTN) == 0",
            "TSM={TSM} times TSN={TSN} is not a multiple of TSK={TSK} times WPTM={WPTM} times WPTN={WPTN}",
        ),
        Rule("TRANSPOSED < 2", "TRANSPOSED={TRANSPOSED} is neither 0 nor 1"),
        Rule("ASYNC < 2", "ASYNC={ASYNC} is neither 0 nor 1"),
    ),
    local_size=("TSM // WPTM * (TSN // WPTN)", "1"),
    local_memory="STAGES * TSK * (TSM + TSN + 4 * (1 - TRANSPOSED)) * 4",
    b_transposed="TRANSPOSED",
    edges="guard",
    aligned=("WIDTH", "WIDTH if TRANSPOSED else 1"),
    pieces="2 * GROUPS * TSM * TSN",
    wide=True,
    switches=(
        Switch(
            "ASYNC",
            (("nvidia", "asynchronous copies (PTX cp.async)"),),
            "asynchronous",
            "cannot copy to local memory without waiting (compute capability 8.0)",
        ),
    ),
)
_16 = replace(
    _15,
    number=16,
    before=15,
    file="16_tensor_cores.cl",
    idea="one instruction multiplies small matrices; two TF32 numbers stand for a float",
    params=(
        replace(_TSM, choices=(32, 64, 128)),
        replace(_TSN, choices=(32, 64, 128)),
        replace(_TSK, default=8, choices=(8, 16, 32)),
        Param("WM", 64, "rows of a warp's block of C", (32, 64)),
        Param("WN", 64, "columns of a warp's block of C", (32, 64)),
        replace(_15.params[7], default=3),
        replace(
            _PAD, default=8, meaning="floats added to each row of Asub and Bsub against bank conflicts", choices=(0, 8)
        ),
        _15.params[8],
        Param("PARTS", 2, "numbers that stand for a float: 1 (plain TF32) or 2", (1, 2)),
        Param("EVERY", 1, "instructions after which a sum moves into a float; 0: at the end", (0, 1, 2, 8), least=0),
        Param("TENSOR", 1, "1: tensor cores where the device has them; 0: the same spelled out", (0, 1), least=0),
    ),
    rules=(
        multiple("TSM", "WM"),
        multiple("TSN", "WN"),
        *(Rule(f"{side} % 32 == 0", f"{side}={{{side}}} is not a multiple of 32") for side in ("WM", "WN")),
        Rule("TSK % 8 == 0", "TSK={TSK} is not a multiple of 8"),
        *(
            Rule(
                f"128 * {tile} % (WM * WN) == 0",
                f"128 times {tile}={{{tile}}} is not a multiple of WM={{WM}} times WN={{WN}}",
            )
            for tile in ("TSN", "TSM")
        ),
        *(
            Rule(
                f"(TSK * WM * WN) % (128 * {tile}) == 0",
                f"TSK={{TSK}} times WM={{WM}} times WN={{WN}} is not a multiple of 128 times {tile}={{{tile}}}",
            )
            for tile in ("TSN", "TSM")
        ),
        Rule("STAGES > 1", "STAGES={STAGES} is less than 2"),
        Rule("PAD % 4 == 0", "PAD={PAD} is not a multiple of 4"),
        Rule("(PARTS - 1) * (PARTS - 2) == 0", "PARTS={PARTS} is neither 1 nor 2"),
        Rule("TENSOR < 2", "TENSOR={TENSOR} is neither 0 nor 1"),
    ),
    local_size=("TSM // WM * (TSN // WN) * 32", "1"),
    local_memory="STAGES * TSK * (TSM + TSN + 2 * PAD) * 4",
    local_loads="1 / WM + 1 / WN",
    b_transposed="1",
    aligned=("4", "4"),
    pieces="",
    product_error="2**-10 if PARTS == 1 else 2**-21",
    switches=(
        Switch(
            "TENSOR",
            (("tensor", "tensor cores (PTX mma.sync)"),),
            "asynchronous",
            "has no tensor cores that take TF32 (compute capability 8.0)",
        ),
    ),
)
_17 = replace(
    _16,
    number=17,
    before=16,
    file="17_warpgroups.cl",
    idea="one instruction of four warps reads B from local memory and runs while they go on",
    params=(
        replace(_TSK, choices=(8, 16)),
        Param("STAGES", 3, "tiles of B in local memory: one in use, the others on their way", (3, 4)),
        _15.params[8],
        *(p for p in _16.params if p.name in ("PARTS", "TENSOR")),
    ),
    rules=(
        Rule("TSK % 8 == 0", "TSK={TSK} is not a multiple of 8"),
        Rule("STAGES > 2", "STAGES={STAGES} is less than 3"),
        *_16.rules[-2:],
    ),
    tile=("256", "128"),
    local_size=("256", "1"),
    local_memory="(STAGES + 2) * TSK * 130 * 4",
    global_loads="1 / 256 + 1 / 128",
    local_loads="0",
    b_transposed="0",
    switches=(
        Switch(
            "TENSOR",
            (("warpgroups", "tensor cores (PTX wgmma)"),),
            "warpgroups",
            "has no instructions for warpgroups (compute capability 9.0)",
        ),
    ),
)

#: Every kernel by its number: ``catalog[3]``.
catalog: dict[int, KernelSpec] = {
    s.number: s for s in (_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, _13, _15, _16, _17)
}


def find(kernel) -> KernelSpec:
    """The record of a kernel number. Raises ValueError with the known ones."""
    if isinstance(kernel, KernelSpec):
        return kernel
    if isinstance(kernel, bool) or not isinstance(kernel, Integral) or int(kernel) not in catalog:
        known = ", ".join(map(str, catalog))
        raise ValueError(f"kernel must be one of {known}, not {kernel!r}")
    return catalog[int(kernel)]
