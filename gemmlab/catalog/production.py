"""The kernels that `matmul` runs on graphics processors: every idea of the ladder at once, for any size.

Each has one text with all its ideas, of which the compiler is given what the parameters need: see `KernelSpec.text`.
"""

from __future__ import annotations

from dataclasses import replace

from .beyond import ASYNC, ASYNCHRONOUS, GROUPS, MMA, ORDER, PARTS, STAGES, TENSOR, WGMMA
from .ladder import PAD, TSK, TSM, TSN, WIDTH, WPTM, WPTN, Prefetch
from .rules import even, multiple
from .spec import KernelSpec, Param, Parameters, Params, Rule, Rules, tiles_over

_STAGES = replace(STAGES, default=2, choices=(2, 3))
_SWITCHED = (
    Rule("(PARTS - 1) * (PARTS - 2) == 0", "PARTS={PARTS} is neither 1 nor 2"),
    Rule("TENSOR < 2", "TENSOR={TENSOR} is neither 0 nor 1"),
)


class WarpTiling(Prefetch):
    """A compact block for each warp, read as vectors of 4; tiles that come without waiting; equal work for all."""

    number, before, file = "warp_tiling", 17, "production/warp_tiling.cl"  # type: ignore[assignment]
    specialised = turns = True
    edges = "guard"
    wide = True
    takes_workspace = True
    params: Parameters = (
        replace(TSM, choices=(32, 64, 128)),
        replace(TSN, default=64, choices=(32, 64, 128)),
        replace(TSK, choices=(8, 16)),
        replace(WPTM, choices=(4, 8)),
        replace(WPTN, choices=(4, 8)),
        Param("WARPM", 8, "rows of work-items in a warp of 32", (4, 8)),
        replace(WIDTH, meaning="floats copied at once from global memory: 1 or 4", choices=(1, 4)),
        _STAGES,
        ORDER,
        GROUPS,
        Param(
            "LAST",
            1,
            "1: the last work-group to finish its part of a tile does the fix-up, where it can; 0: fixup.cl",
            (0, 1),
            least=0,
        ),
        Param("TRANSPOSED", 1, "1: B is N x K; 0: B is K x N", (0, 1), least=0),
        Param(
            "BATCHES", 1, "batches in which the copies of a tile are issued, spread over the multiply-adds", (1, 3, 7)
        ),
        Param(
            "SPLIT",
            0,
            "most rows or columns of an edge strip, whose elements are summed without tiles",
            (0, 8),
            least=0,
        ),
        Param("DOWN", 1, "vectors that a work-item copies per column of A's tile", (1, 4)),
        Param(
            "TAIL",
            0,
            "1: a separate loop for the steps of k after the last whole tiles of A and B; 0: zeroes fill them up",
            (0, 1),
            least=0,
        ),
        ASYNC,
    )
    rules: Rules = (
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
        Rule("(BATCHES > 0) * (BATCHES < TSK) == 1", "BATCHES={BATCHES} is not between 1 and TSK={TSK} minus 1"),
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
    )
    switches = (ASYNCHRONOUS,)

    def local_size(self, p: Params) -> tuple[int, int]:
        return p["TSM"] // p["WPTM"] * (p["TSN"] // p["WPTN"]), 1

    def local_memory(self, p: Params) -> int:
        return 4 * p["STAGES"] * p["TSK"] * (p["TSM"] + p["TSN"] + 4 * (1 - p["TRANSPOSED"]))

    def wants_transposed(self, p: Params) -> bool:
        return bool(p["TRANSPOSED"])

    def alignment(self, p: Params) -> tuple[int, int]:
        return p["WIDTH"], p["WIDTH"] if p["TRANSPOSED"] else 1

    def workspace(self, p: Params) -> int:
        """With GROUPS work-groups, two partial tiles and a counter for each of them."""
        return p["GROUPS"] * (2 * p["TSM"] * p["TSN"] + 1)

    def needs_fixup(self, p: Params, features: frozenset[str]) -> bool:
        """Where tiles are shared, unless the last work-group to finish one adds it up (LAST, on NVIDIA's devices)."""
        return bool(p["GROUPS"]) and not (p["LAST"] and "nvidia" in features)

    def tile_grid(self, m: int, n: int, p: Params) -> tuple[int, int]:
        """Rounded up, but for the rows and columns that SPLIT leaves to the edge strips."""
        rows, cols, _ = self.tiles(p)
        return max(1, tiles_over(m - p["SPLIT"], rows)), max(1, tiles_over(n - p["SPLIT"], cols))

    def edge_strips(self, m: int, n: int, p: Params) -> tuple[int, int]:
        """Rows below and columns beside the tiles, which are summed without tiles (SPLIT)."""
        if not p["SPLIT"]:
            return 0, 0
        (tile_rows, tile_cols, _), (rows, cols) = self.tiles(p), self.tile_grid(m, n, p)
        return max(0, m - rows * tile_rows), max(0, n - cols * tile_cols)

    def strip_groups(self, m: int, n: int, p: Params) -> int:
        """Work-groups that sum the edge strips: four rows or columns of C per work-item."""
        below, beside = self.edge_strips(m, n, p)
        across = 8 if self.wants_transposed(p) else self.local_size(p)[0] // 32
        return (tiles_over(n, 4 * across) if below else 0) + (tiles_over(m - below, 4 * 8) if beside else 0)

    def global_size(self, m: int, n: int, p: Params) -> tuple[int, int]:
        """Tiles are numbered along dimension 0: one work-group per tile, or GROUPS, and then those of the strips."""
        rows, cols = self.tile_grid(m, n, p)
        groups = p["GROUPS"] or rows * cols
        return (groups + self.strip_groups(m, n, p)) * self.local_size(p)[0], 1

    def macros(self, m: int, n: int, p: Params) -> dict[str, int]:
        """COUNT says how many rows or columns the strips have: sums for more of them would cost time."""
        count = max(self.edge_strips(m, n, p))
        return dict(p) if count in (0, p["SPLIT"]) else {**p, "COUNT": count}


class TensorCores(Prefetch):
    """One instruction multiplies small matrices; two TF32 numbers stand for a float."""

    number, before, file = "tensor_cores", "warp_tiling", "production/tensor_cores.cl"  # type: ignore[assignment]
    specialised = True
    edges = "guard"
    wide = True
    tensor = True
    params: Parameters = (
        replace(TSM, choices=(32, 64, 128)),
        replace(TSN, choices=(32, 64, 128)),
        replace(TSK, default=8, choices=(8, 16, 32)),
        Param("WM", 64, "rows of a warp's block of C", (32, 64)),
        Param("WN", 64, "columns of a warp's block of C", (32, 64)),
        replace(_STAGES, default=3),
        replace(
            PAD, default=8, meaning="floats added to each row of Atile and Btile against bank conflicts", choices=(0, 8)
        ),
        ORDER,
        PARTS,
        Param(
            "EVERY",
            1,
            "promotion interval, in units of 8 steps of k: when a sum moves into a float; 0: only at the end",
            (0, 1, 2, 8),
            least=0,
        ),
        TENSOR,
    )
    rules: Rules = (
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
    )
    switches = (MMA,)

    def local_size(self, p: Params) -> tuple[int, int]:
        return p["TSM"] // p["WM"] * (p["TSN"] // p["WN"]) * 32, 1

    def local_memory(self, p: Params) -> int:
        return 4 * p["STAGES"] * p["TSK"] * (p["TSM"] + p["TSN"] + 2 * p["PAD"])

    def local_loads(self, p: Params) -> float:
        return 1 / p["WM"] + 1 / p["WN"]

    def alignment(self, p: Params) -> tuple[int, int]:
        return 4, 4

    def product_error(self, p: Params) -> float:
        return 2.0**-10 if p["PARTS"] == 1 else 2.0**-21

    def global_size(self, m: int, n: int, p: Params) -> tuple[int, int]:
        """Tiles are numbered along dimension 0, one work-group per tile."""
        rows, cols = self.tile_grid(m, n, p)
        return rows * cols * self.local_size(p)[0], 1


class Warpgroups(TensorCores):
    """One instruction of four warps reads B from local memory and runs while they go on."""

    number, before, file = "warpgroups", "tensor_cores", "production/warpgroups.cl"
    params: Parameters = (
        replace(TSK, choices=(8, 16)),
        Param("STAGES", 3, "tiles of B in local memory: one in use, the others being filled", (3, 4)),
        ORDER,
        PARTS,
        TENSOR,
    )
    rules: Rules = (
        Rule("TSK % 8 == 0", "TSK={TSK} is not a multiple of 8"),
        Rule("STAGES > 2", "STAGES={STAGES} is less than 3"),
        *_SWITCHED,
    )
    switches = (WGMMA,)

    def tiles(self, p: Params) -> tuple[int, int, int]:
        return 256, 128, p["TSK"]

    def local_size(self, p: Params) -> tuple[int, int]:
        return 256, 1

    def local_memory(self, p: Params) -> int:
        return 4 * (p["STAGES"] + 2) * p["TSK"] * 130

    def global_loads(self, p: Params) -> float:
        return 1 / 256 + 1 / 128

    def local_loads(self, p: Params) -> float:
        return 0.0

    def wants_transposed(self, p: Params) -> bool:
        return False


class Narrow(KernelSpec):
    """Few rows or columns: the long operand is read once, at the speed of memory."""

    number, file = "narrow", "production/narrow.cl"
    specialised = True
    name = "narrow"
    edges = "guard"
    wide = True
    takes_workspace = True
    params: Parameters = (
        Param("LINES", 4, "columns of C that a tile has, or rows if ROWS is 1", (1, 2, 4, 8, 16)),
        Param("ROWS", 0, "1: C has few rows; 0: C has few columns", (0, 1), least=0),
        Param("TSK", 256, "steps of k for which the lines of the short operand wait in local memory", (128, 256, 512)),
        Param("WPT", 1, "loads of the long operand that a work-item makes at a time", (1, 2, 4)),
        Param("WIDTH", 4, "floats of the long operand in a load: 1 or 4", (1, 4)),
        Param(
            "GROUPS", 0, "work-groups that share all tiles equally; 0: one work-group per tile", (0, 16, 264), least=0
        ),
    )
    rules: Rules = (
        Rule("ROWS < 2", "ROWS={ROWS} is neither 0 nor 1"),
        Rule("(WIDTH - 1) * (WIDTH - 4) == 0", "WIDTH={WIDTH} is neither 1 nor 4"),
        Rule(
            "TSK % (8 + ROWS * (32 * WIDTH - 8)) == 0",
            "TSK={TSK} is not a multiple of 8, or with ROWS={ROWS} of 32 times WIDTH={WIDTH}",
        ),
        Rule("LINES < 33", "LINES={LINES} is more than 32"),
        Rule("GROUPS < 65536", "GROUPS={GROUPS} is not below 65536"),
    )

    def tiles(self, p: Params) -> tuple[int, int, int]:
        return (p["LINES"], 8 * p["WPT"], p["TSK"]) if p["ROWS"] else (32 * p["WIDTH"] * p["WPT"], p["LINES"], p["TSK"])

    def local_size(self, p: Params) -> tuple[int, int]:
        return 256, 1

    def local_memory(self, p: Params) -> int:
        own = p["LINES"] * p["WPT"] * (1 if p["ROWS"] else p["WIDTH"])
        return 4 * (p["LINES"] * p["TSK"] + 256 * min(own, 8) + 1)

    def global_loads(self, p: Params) -> float:
        rows, cols, _ = self.tiles(p)
        return 1 / rows + 1 / cols

    def local_loads(self, p: Params) -> float:
        return 1 / (p["WPT"] * (1 if p["ROWS"] else p["WIDTH"]))

    def alignment(self, p: Params) -> tuple[int, int]:
        return (1, p["WIDTH"]) if p["ROWS"] else (p["WIDTH"], 1)

    def workspace(self, p: Params) -> int:
        """With GROUPS work-groups, two partial tiles and a counter for each of them."""
        rows, cols, _ = self.tiles(p)
        return p["GROUPS"] * (2 * rows * cols + 1)

    def global_size(self, m: int, n: int, p: Params) -> tuple[int, int]:
        """Tiles are numbered along dimension 0: one work-group per tile, or GROUPS."""
        rows, cols = self.tile_grid(m, n, p)
        return (p["GROUPS"] or rows * cols) * 256, 1


#: For results with few rows or columns. It is no step of the ladder, so that it stands beside the catalog.
NARROW = Narrow()

#: The kernels of this page, in order.
PRODUCTION: tuple[KernelSpec, ...] = (WarpTiling(), TensorCores(), Warpgroups())
