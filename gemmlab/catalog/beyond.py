"""Kernels 15 to 19: past the end of the tutorial, one idea each."""

from __future__ import annotations

from dataclasses import replace

from .ladder import TSK, TSM, TSN, UNROLL, WPTM, WPTN, AnySize
from .rules import multiple
from .spec import KernelSpec, Param, Parameters, Params, Rule, Rules, Switch

WARPM = Param("WARPM", 8, "rows of work-items in a warp of 32", (4, 8, 16, 32))
LWIDTH = Param("LWIDTH", 4, "floats in a vector loaded from local memory: 1 or 4", (1, 4))
UNROLL = replace(UNROLL, default=16)

ORDER = Param("ORDER", 8, "rows of tiles in a band that neighbouring work-groups go through together (swizzle)", (1, 8))
#: Copies to local memory that do not keep a work-item waiting.
ASYNCHRONOUS = Switch(
    "ASYNC",
    (("nvidia", "asynchronous copies (PTX cp.async)"),),
    "asynchronous",
    "cannot copy to local memory without waiting (compute capability 8.0)",
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
        TSM,
        TSN,
        TSK,
        replace(WPTM, choices=(4, 8)),
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
    """Copies to local memory that are only started, several tiles ahead."""

    number, before, file = 16, 15, "16_async_copies.cl"
    params: Parameters = (
        replace(TSM, choices=(64, 128)),
        replace(TSN, choices=(32, 64, 128)),
        TSK,
        Param("STAGES", 3, "tiles of A and B in local memory: one in use, the others being filled", (2, 3, 4)),
        Param("ASYNC", 1, "1: copy to local memory asynchronously where the device can", (0, 1), least=0),
        UNROLL,
    )
    rules: Rules = (
        Rule("TSM % 64 + TSN % 32 == 0", "TSM={TSM} is not a multiple of 64, or TSN={TSN} is not one of 32"),
        Rule(
            "TSK * 16 % TSM + TSK * 16 % TSN == 0",
            "uneven shares of a tile: TSK={TSK} times 16 is not a multiple of TSM={TSM} and of TSN={TSN}",
        ),
        Rule("(STAGES > 1) * (ASYNC < 2) == 1", "STAGES={STAGES} is less than 2, or ASYNC={ASYNC} neither 0 nor 1"),
    )
    switches: tuple[Switch, ...] = (ASYNCHRONOUS,)

    def local_size(self, p: Params) -> tuple[int, int]:
        return p["TSM"] * p["TSN"] // 64, 1

    def local_memory(self, p: Params) -> int:
        return 4 * p["STAGES"] * p["TSK"] * (p["TSM"] + p["TSN"])

    def local_loads(self, p: Params) -> float:
        return 1 / 8 + 1 / 8


class StreamK(AsyncCopies):
    """Tiles in an order that suits the L2 cache, and equal work for all work-groups."""

    number, before, file = 17, 16, "17_stream_k.cl"
    takes_workspace = True
    params: Parameters = (
        *AsyncCopies.params[:2],
        ORDER,
        Param("GROUPS", 264, "work-groups that share all tiles equally (Stream-K); 0: one work-group per tile",
              (0, 16, 132, 264), least=0),
        UNROLL,
    )  # fmt: skip
    rules: Rules = (
        Rule(
            "TSM % 64 + TSN % 32 + 256 % TSM + 256 % TSN == 0",
            "TSM={TSM} is none of 64, 128 and 256, or TSN={TSN} none of these and 32",
        ),
    )
    switches = ()

    def tiles(self, p: Params) -> tuple[int, int, int]:
        return p["TSM"], p["TSN"], 16

    def local_memory(self, p: Params) -> int:
        return 4 * 3 * 16 * (p["TSM"] + p["TSN"])

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


#: The kernels of this page, in order.
BEYOND: tuple[KernelSpec, ...] = (WarpTiles(), AsyncCopies(), StreamK())
