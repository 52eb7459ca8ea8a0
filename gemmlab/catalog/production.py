"""The kernels that `matmul` runs on GPUs: every idea of the ladder at once, for any size.

Each is assembled from the parts that its parameters need: see `KernelSpec.text`.
"""

from __future__ import annotations

from .beyond import ASYNCHRONOUS, MMA, WGMMA
from .spec import KernelSpec, Params, tiles_over


class WarpTiling(KernelSpec):
    """Tiles, and strips at the edges that need no tiles (SPLIT)."""

    def tile_grid(self, m: int, n: int, p: Params) -> tuple[int, int]:
        """Rounded up, except for the rows and columns that SPLIT leaves to the edge strips."""
        rows, cols, _ = self.tiles(p)
        return max(1, tiles_over(m - p["SPLIT"], rows)), max(1, tiles_over(n - p["SPLIT"], cols))

    def edge_strips(self, m: int, n: int, p: Params) -> tuple[int, int]:
        """Rows below the tiles and columns to their right, which need no tiles (SPLIT)."""
        if not p["SPLIT"]:
            return 0, 0
        (tile_rows, tile_cols, _), (rows, cols) = self.tiles(p), self.tile_grid(m, n, p)
        return max(0, m - rows * tile_rows), max(0, n - cols * tile_cols)

    def strip_groups(self, m: int, n: int, p: Params) -> int:
        """Work-groups that sum the edge strips: four rows or columns of C per work-item."""
        below, right = self.edge_strips(m, n, p)
        across = 8 if self.wants_transposed(p) else self.local_size(p)[0] // 32
        for_rows = tiles_over(n, 4 * across) if below else 0
        for_columns = tiles_over(m - below, 4 * 8) if right else 0
        return for_rows + for_columns

    def global_size(self, m: int, n: int, p: Params) -> tuple[int, int]:
        """The work-groups of the edge strips come after those of the tiles."""
        items, _ = super().global_size(m, n, p)
        return items + self.strip_groups(m, n, p) * self.local_size(p)[0], 1

    def macros(self, m: int, n: int, p: Params) -> dict[str, int]:
        """COUNT is how many rows or columns the strips have: more sums would cost time."""
        count = max(self.edge_strips(m, n, p))
        return dict(p) if count in (0, p["SPLIT"]) else {**p, "COUNT": count}


#: For results with few rows or columns. It is no step of the ladder and not listed in the catalog.
NARROW = KernelSpec(
    "production/narrow.cl",
    tile="(LINES, 8 * WPT, TSK) if ROWS else (32 * WIDTH * WPT, LINES, TSK)",
    work_group="256, 1",
    local_floats="LINES * TSK + 256 * min(LINES * WPT * (1 if ROWS else WIDTH), 8) + 1",
    alignments="(1, WIDTH) if ROWS else (WIDTH, 1)",
    loads=(
        "1 / (LINES if ROWS else 32 * WIDTH * WPT) + 1 / (8 * WPT if ROWS else LINES), "
        "1 / (WPT if ROWS else WPT * WIDTH)"
    ),
    # two partial tiles and a counter for each work-group
    workspace_floats="GROUPS * (2 * LINES * WPT * (8 if ROWS else 32 * WIDTH) + 1)",
    edges="guard",
    wide=True,
    one_dimensional=True,
)

#: The kernels of this module, in order.
PRODUCTION = (
    WarpTiling(
        "production/warp_tiling.cl",
        tile="TSM, TSN, TSK",
        work_group="TSM // WPTM * (TSN // WPTN), 1",
        local_floats="STAGES * TSK * (TSM + TSN + 4 * (1 - TRANSPOSED))",
        loads="1 / TSM + 1 / TSN, 1 / WPTM + 1 / WPTN",
        alignments="WIDTH, WIDTH if TRANSPOSED else 1",
        # two partial tiles and a counter for each work-group
        workspace_floats="GROUPS * (2 * TSM * TSN + 1)",
        turns=True,
        edges="guard",
        wide=True,
        one_dimensional=True,
        fixup=True,
        switches=(ASYNCHRONOUS,),
    ),
    KernelSpec(
        "production/tensor_cores.cl",
        tile="TSM, TSN, TSK",
        work_group="TSM // WM * (TSN // WN) * 32, 1",
        local_floats="STAGES * TSK * (TSM + TSN + 2 * PAD)",
        loads="1 / TSM + 1 / TSN, 1 / WM + 1 / WN",
        alignments="4, 4",
        b_transposed=True,
        edges="guard",
        wide=True,
        tensor=True,
        one_dimensional=True,
        switches=(MMA,),
    ),
    KernelSpec(
        "production/warpgroups.cl",
        tile="256, 128, TSK",
        work_group="256, 1",
        local_floats="(STAGES + 2) * TSK * 130",
        loads="1 / 256 + 1 / 128, 0",
        alignments="4, 4",
        edges="guard",
        wide=True,
        tensor=True,
        one_dimensional=True,
        switches=(WGMMA,),
    ),
)
