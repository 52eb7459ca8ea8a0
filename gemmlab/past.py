"""The records of kernels 15 to 17: past the end of the tutorial."""

from __future__ import annotations

from dataclasses import replace

from .ladder import K9, PAD, TSK, TSM, TSN, WIDTH, WPTM, WPTN
from .rules import even, multiple
from .spec import Param, Rule, Switch

STAGES = Param("STAGES", 2, "tiles of A and B in local memory: one in use, the others on their way", (2, 3))
ORDER = Param("ORDER", 8, "rows of tiles that neighbouring work-groups go through together", (1, 8))
PARTS = Param("PARTS", 2, "numbers that stand for a float: 1 (plain TF32) or 2", (1, 2))
TENSOR = Param("TENSOR", 1, "1: tensor cores where the device has them; 0: the same spelled out", (0, 1), least=0)
_SWITCHED = (
    Rule("(PARTS - 1) * (PARTS - 2) == 0", "PARTS={PARTS} is neither 1 nor 2"),
    Rule("TENSOR < 2", "TENSOR={TENSOR} is neither 0 nor 1"),
)

K15 = replace(
    K9,
    number=15,
    before=9,
    file="15_warp_tiling.cl",
    idea="a compact block for each warp, read as vectors of 4; tiles that come without waiting; equal work for all",
    params=(
        replace(TSM, choices=(32, 64, 128)),
        replace(TSN, default=64, choices=(32, 64, 128)),
        replace(TSK, choices=(8, 16)),
        replace(WPTM, choices=(4, 8)),
        replace(WPTN, choices=(4, 8)),
        Param("WARPM", 8, "rows of work-items in a warp of 32", (4, 8)),
        replace(WIDTH, meaning="floats copied at once from global memory: 1 or 4", choices=(1, 4)),
        STAGES,
        ORDER,
        Param("GROUPS", 0, "work-groups that share all tiles equally; 0: one for each tile", (0, 16, 264), least=0),
        Param(
            "LAST",
            1,
            "1: the last work-group to come adds a tile's pieces up, where it can; 0: join.cl",
            (0, 1),
            least=0,
        ),
        Param("TRANSPOSED", 1, "1: B is N x K; 0: B is K x N", (0, 1), least=0),
        Param(
            "BATCHES", 1, "a tile's copies are asked for in so many batches, spread over the multiply-adds", (1, 3, 7)
        ),
        Param(
            "SPLIT",
            0,
            "so many rows or columns behind the last whole tiles get no tiles: a sum for each element",
            (0, 8),
            least=0,
        ),
        Param("DOWN", 1, "vectors of a column of A's tile that a work-item copies", (1, 4)),
        Param(
            "TAIL",
            0,
            "1: the steps of k behind the last whole tiles of A and B in a loop of their own; 0: with zeroes",
            (0, 1),
            least=0,
        ),
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
        Rule(
            "(TSK * WPTM * WPTN) % (TSN * WIDTH * DOWN) == 0",
            "TSK={TSK} times WPTM={WPTM} times WPTN={WPTN} is not a multiple of TSN={TSN} times WIDTH={WIDTH} times "
            "DOWN={DOWN}",
        ),
        Rule("TSM % (WIDTH * DOWN) == 0", "TSM={TSM} is not a multiple of WIDTH={WIDTH} times DOWN={DOWN}"),
        even("TSM", "WIDTH"),
        Rule("STAGES > 1", "STAGES={STAGES} is less than 2"),
        Rule("TSK % 2 == 0", "TSK={TSK} is odd"),
        Rule(
            "(TSM * TSN) % (TSK * WPTM * WPTN) == 0",
            "TSM={TSM} times TSN={TSN} is not a multiple of TSK={TSK} times WPTM={WPTM} times WPTN={WPTN}",
        ),
        Rule("(8 * WPTM * WPTN) % TSM == 0", "8 times WPTM={WPTM} times WPTN={WPTN} is not a multiple of TSM={TSM}"),
        Rule("(BATCHES > 0) * (BATCHES < TSK) == 1", "BATCHES={BATCHES} is not from 1 to TSK={TSK} less one"),
        Rule("(SPLIT < TSM) * (SPLIT < TSN) == 1", "SPLIT={SPLIT} is not below TSM={TSM} and TSN={TSN}"),
        Rule(
            "STAGES * TSK * WPTM * WPTN >= SPLIT * TSN",
            "STAGES={STAGES} times TSK={TSK} times WPTM={WPTM} times WPTN={WPTN} is less than SPLIT={SPLIT} times "
            "TSN={TSN}",
        ),
        Rule("TAIL < 2", "TAIL={TAIL} is neither 0 nor 1"),
        Rule("TRANSPOSED < 2", "TRANSPOSED={TRANSPOSED} is neither 0 nor 1"),
        Rule("GROUPS < 65536", "GROUPS={GROUPS} is not below 65536"),
        Rule("LAST < 2", "LAST={LAST} is neither 0 nor 1"),
        Rule("ASYNC < 2", "ASYNC={ASYNC} is neither 0 nor 1"),
    ),
    local_size=("TSM // WPTM * (TSN // WPTN)", "1"),
    local_memory="STAGES * TSK * (TSM + TSN + 4 * (1 - TRANSPOSED)) * 4",
    b_transposed="TRANSPOSED",
    edges="guard",
    aligned=("WIDTH", "WIDTH if TRANSPOSED else 1"),
    pieces="GROUPS * (2 * TSM * TSN + 1)",
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
K16 = replace(
    K15,
    number=16,
    before=15,
    file="16_tensor_cores.cl",
    idea="one instruction multiplies small matrices; two TF32 numbers stand for a float",
    params=(
        replace(TSM, choices=(32, 64, 128)),
        replace(TSN, choices=(32, 64, 128)),
        replace(TSK, default=8, choices=(8, 16, 32)),
        Param("WM", 64, "rows of a warp's block of C", (32, 64)),
        Param("WN", 64, "columns of a warp's block of C", (32, 64)),
        replace(STAGES, default=3),
        replace(
            PAD, default=8, meaning="floats added to each row of Atile and Btile against bank conflicts", choices=(0, 8)
        ),
        ORDER,
        PARTS,
        Param("EVERY", 1, "instructions after which a sum moves into a float; 0: at the end", (0, 1, 2, 8), least=0),
        TENSOR,
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
        *_SWITCHED,
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
K17 = replace(
    K16,
    number=17,
    before=16,
    file="17_warpgroups.cl",
    idea="one instruction of four warps reads B from local memory and runs while they go on",
    params=(
        replace(TSK, choices=(8, 16)),
        Param("STAGES", 3, "tiles of B in local memory: one in use, the others on their way", (3, 4)),
        ORDER,
        PARTS,
        TENSOR,
    ),
    rules=(
        Rule("TSK % 8 == 0", "TSK={TSK} is not a multiple of 8"),
        Rule("STAGES > 2", "STAGES={STAGES} is less than 3"),
        *_SWITCHED,
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
