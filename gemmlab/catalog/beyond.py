"""Kernels 15 to 19: past the end of the tutorial, one idea each."""

from __future__ import annotations

from dataclasses import replace

from .ladder import TSK, TSM, TSN, UNROLL, WPTM, WPTN, AnySize
from .rules import multiple
from .spec import KernelSpec, Param, Parameters, Params, Rule, Rules, Switch

WARPM = Param("WARPM", 8, "rows of work-items in a warp of 32", (4, 8, 16, 32))
LWIDTH = Param("LWIDTH", 4, "floats in a vector loaded from local memory: 1 or 4", (1, 4))

STAGES = Param("STAGES", 3, "tiles of A and B in local memory: one in use, the others being filled", (2, 3, 4))
ORDER = Param("ORDER", 8, "rows of tiles in a band that neighbouring work-groups go through together (swizzle)", (1, 8))
GROUPS = Param(
    "GROUPS",
    0,
    "work-groups that share all tiles equally (Stream-K); 0: one work-group per tile",
    (0, 16, 264),
    least=0,
)
ASYNC = Param("ASYNC", 1, "1: copy to local memory asynchronously where the device can", (0, 1), least=0)
PARTS = Param("PARTS", 2, "TF32 numbers that stand for a float: 1 (plain TF32) or 2 (3xTF32)", (1, 2))
TENSOR = Param(
    "TENSOR",
    1,
    "1: tensor cores where the device has them; 0: the same products in ordinary arithmetic",
    (0, 1),
    least=0,
)
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

#: Whole warps in a tile, vectors of four in a work-item's block, and equal shares of both tiles for all work-items.
_WARPS = (
    Rule("32 % WARPM == 0", "WARPM={WARPM} does not divide 32"),
    multiple("TSM", "WPTM", "WARPM"),
    Rule("TSN * WARPM % (WPTN * 32) == 0", "TSN={TSN} is not a multiple of WPTN={WPTN} times 32 over WARPM={WARPM}"),
    Rule("WPTM % 4 + WPTN % 4 == 0", "WPTM={WPTM} and WPTN={WPTN} are not both multiples of 4"),
    Rule(
        "TSK * WPTM * WPTN % (TSM * 4) + TSK * WPTM * WPTN % (TSN * 4) == 0",
        "uneven shares of a tile: TSK={TSK} times WPTM={WPTM} times WPTN={WPTN} is not a multiple of TSM={TSM} times 4 "
        "and of TSN={TSN} times 4",
    ),
)


class WarpTiles(AnySize):
    """A compact block of C for each warp, read from local memory as vectors."""

    number, before, file = 15, 10, "15_warp_tiles.cl"
    params: Parameters = (
        replace(TSM, choices=(32, 64, 128, 256)),
        replace(TSN, choices=(32, 64, 128)),
        TSK,
        replace(WPTM, choices=(4, 8, 16)),
        replace(WPTN, choices=(4, 8)),
        WARPM,
        LWIDTH,
        UNROLL,
    )
    rules: Rules = (
        *_WARPS,
        Rule("(LWIDTH - 1) * (LWIDTH - 4) == 0", "LWIDTH={LWIDTH} is neither 1 nor 4"),
    )

    def local_size(self, p: Params) -> tuple[int, int]:
        return p["TSM"] // p["WPTM"] * (p["TSN"] // p["WPTN"]), 1


class AsyncCopies(WarpTiles):
    """What is needed next is fetched ahead: tiles by copies that are only started, fragments into registers."""

    number, before, file = 16, 15, "16_async_copies.cl"
    params: Parameters = (
        replace(TSM, default=256, choices=(64, 128, 256)),
        replace(TSN, choices=(32, 64, 128)),
        replace(TSK, default=8),
        replace(WPTM, default=16, choices=(8, 16)),
        STAGES,
        ASYNC,
    )
    rules: Rules = (
        Rule(
            "TSM % 64 + TSN % (4 * WPTM) == 0",
            "TSM={TSM} is not a multiple of 64, or TSN={TSN} is not one of 4 times WPTM={WPTM}",
        ),
        Rule(
            "TSK % 2 + TSK * WPTM * 2 % TSM + TSK * WPTM * 2 % TSN == 0",
            "TSK={TSK} is odd, or shares of a tile are uneven: TSK={TSK} times WPTM={WPTM} times 2 is not a multiple "
            "of TSM={TSM} and of TSN={TSN}",
        ),
        Rule(
            "((WPTM - 8) * (WPTM - 16) == 0) * (STAGES > 1) * (ASYNC < 2) == 1",
            "WPTM={WPTM} is neither 8 nor 16, STAGES={STAGES} is less than 2, or ASYNC={ASYNC} neither 0 nor 1",
        ),
    )
    switches: tuple[Switch, ...] = (ASYNCHRONOUS,)

    def local_size(self, p: Params) -> tuple[int, int]:
        return p["TSM"] // p["WPTM"] * (p["TSN"] // 8), 1

    def local_memory(self, p: Params) -> int:
        return 4 * p["STAGES"] * p["TSK"] * (p["TSM"] + p["TSN"])

    def local_loads(self, p: Params) -> float:
        return 1 / p["WPTM"] + 1 / 8


class StreamK(AsyncCopies):
    """Equal work for all work-groups, and tiles in an order that suits the L2 cache."""

    number, before, file = 17, 16, "17_stream_k.cl"
    takes_workspace = True
    params: Parameters = (
        replace(TSM, default=256, choices=(64, 128, 256)),
        replace(TSN, choices=(64, 128)),
        replace(ORDER, default=16, choices=(1, 4, 8, 16)),
        replace(GROUPS, default=132, choices=(0, 5, 16, 132, 264)),
        ASYNC,
    )
    rules: Rules = (
        Rule(
            "(TSM % 64 + TSN % 64 + 256 % TSM + 256 % TSN == 0) * (ASYNC < 2) == 1",
            "TSM={TSM} or TSN={TSN} is none of 64, 128 and 256, or ASYNC={ASYNC} is neither 0 nor 1",
        ),
    )

    def tiles(self, p: Params) -> tuple[int, int, int]:
        return p["TSM"], p["TSN"], 8

    def local_size(self, p: Params) -> tuple[int, int]:
        return p["TSM"] // 16 * (p["TSN"] // 8), 1

    def local_memory(self, p: Params) -> int:
        return 4 * 3 * 8 * (p["TSM"] + p["TSN"])

    def local_loads(self, p: Params) -> float:
        return 1 / 16 + 1 / 8

    def workspace(self, p: Params) -> int:
        """Two partial tiles for each of GROUPS work-groups."""
        return 2 * p["GROUPS"] * p["TSM"] * p["TSN"]

    def needs_fixup(self, p: Params, features: frozenset[str]) -> bool:
        """Where tiles are shared."""
        return bool(p["GROUPS"])

    def global_size(self, m: int, n: int, p: Params) -> tuple[int, int]:
        """Work-groups are numbered along dimension 0: GROUPS, or one per tile."""
        rows, cols = self.tile_grid(m, n, p)
        return (p["GROUPS"] or rows * cols) * self.local_size(p)[0], 1


class TensorCores(WarpTiles):
    """One instruction multiplies small matrices of TF32; two such numbers stand for a float."""

    number, before, file = 18, 16, "18_tensor_cores.cl"
    tensor = True
    params: Parameters = (
        replace(TSM, choices=(64, 128)),
        replace(TSN, choices=(64, 128)),
        replace(TSK, default=8, choices=(8, 16)),
        STAGES,
        PARTS,
        TENSOR,
    )
    rules: Rules = (
        Rule(
            "TSM % 64 + TSN % 64 + TSK % 8 == 0",
            "TSM={TSM} or TSN={TSN} is not a multiple of 64, or TSK={TSK} is not one of 8",
        ),
        Rule(
            "TSK * 32 % TSM + TSK * 32 % TSN == 0",
            "uneven shares of a tile: TSK={TSK} times 32 is not a multiple of TSM={TSM} and of TSN={TSN}",
        ),
        Rule(
            "(STAGES > 1) * (TENSOR < 2) * (PARTS > 0) * (PARTS < 3) == 1",
            "STAGES={STAGES} is less than 2, TENSOR={TENSOR} neither 0 nor 1, or PARTS={PARTS} neither 1 nor 2",
        ),
    )
    switches = (MMA,)

    def local_size(self, p: Params) -> tuple[int, int]:
        return p["TSM"] // 64 * (p["TSN"] // 64) * 32, 1

    def local_memory(self, p: Params) -> int:
        return 4 * p["STAGES"] * p["TSK"] * (p["TSM"] + p["TSN"] + 16)

    def local_loads(self, p: Params) -> float:
        return 1 / 64 + 1 / 64

    def product_error(self, p: Params) -> float:
        return 2.0**-10 if p["PARTS"] == 1 else 2.0**-21


class Warpgroups(TensorCores):
    """One instruction of four warps reads B from local memory and runs while they go on."""

    number, before, file = 19, 18, "19_warpgroups.cl"
    params: Parameters = (
        replace(TSM, default=256, meaning="rows of the tile of C: 128 for each warpgroup", choices=(128, 256)),
        replace(TSK, choices=(8, 16)),
        PARTS,
        TENSOR,
    )
    rules: Rules = (
        Rule(
            "TSM % 128 + TSK % 8 + TSK * 32 % TSM == 0",
            "TSM={TSM} is not a multiple of 128, TSK={TSK} not one of 8, or TSK={TSK} times 32 not one of TSM={TSM}",
        ),
        Rule(
            "(TENSOR < 2) * (PARTS > 0) * (PARTS < 3) == 1",
            "TENSOR={TENSOR} is neither 0 nor 1, or PARTS={PARTS} neither 1 nor 2",
        ),
    )
    switches = (WGMMA,)

    def tiles(self, p: Params) -> tuple[int, int, int]:
        return p["TSM"], 128, p["TSK"]

    def local_size(self, p: Params) -> tuple[int, int]:
        return p["TSM"], 1

    def local_memory(self, p: Params) -> int:
        return 4 * 4 * p["TSK"] * 130

    def global_loads(self, p: Params) -> float:
        return 1 / p["TSM"] + 1 / 128

    def local_loads(self, p: Params) -> float:
        return 0.0

    def wants_transposed(self, p: Params) -> bool:
        return False


#: The kernels of this page, in order.
BEYOND: tuple[KernelSpec, ...] = (WarpTiles(), AsyncCopies(), StreamK(), TensorCores(), Warpgroups())
