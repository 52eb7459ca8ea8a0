"""The scheme "items": tiles of A and B are staged in local memory, k first.

Each work-item computes rows and columns spread over the tile, as in kernels 6 to 10 of the ladder.
"""

from __future__ import annotations

from .epilogue import multiply_adds
from .schedule import Operand, Schedule
from .text import Lines, fill, over


def identifiers(s: Schedule) -> Lines:
    """Write which work-item this is, and where its work-group's tile begins."""
    return fill(
        """
        // identifiers
        const int tm = get_local_id(0);     // first row in the tile of C
        const int tn = get_local_id(1);     // first column in the tile of C
        const int tid = tn*RTSM + tm;       // number of the work-item
        const int m0 = get_group_id(0)*TSM; // first row of the tile of C
        const int n0 = get_group_id(1)*TSN; // first column of the tile of C
        """
    )


def local_memory(s: Schedule) -> Lines:
    """Write the tiles. One that is filled along k has longer rows, against bank conflicts."""
    buffers = "[2]" if s.stages == 2 else ""  # one to compute from, one to fill
    lines = ["// local memory"]
    for x in s.operands:
        row = f"{x.tile_side} + {x.pitch - x.side}" if x.k_contiguous else x.tile_side
        aligned = " __attribute__((aligned(128)))" if x.in_vectors else ""
        lines.append(f"__local {s.element.vector()} {x.name}tile{buffers}[TSK][{row}]{aligned};")
    return lines


def main_loop(s: Schedule) -> Lines:
    """Write the loop over k: with two buffers, loads of the next tiles overlap the
    multiplications.
    """
    if s.stages == 1:
        return fill(
            """
            for (int k0 = 0; k0 < K; k0 += TSK) {
                // load: the tiles
                $load

                // barrier: the tiles are complete
                barrier(CLK_LOCAL_MEM_FENCE);

                $multiply

                // barrier: the tiles are no longer needed
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            """,
            load=_load_tiles(s, "", "k0"),
            multiply=_multiply(s, ""),
        )
    return fill(
        """
        // load: the first tiles
        $first

        int now = 0;                        // the buffer to compute from
        for (int k0 = 0; k0 < K; k0 += TSK) {
            const int next = 1 - now;       // the buffer to fill
            const int k1 = k0 + TSK;        // first step of the next tiles

            // barrier: these tiles are complete, and the other buffer is no longer needed
            barrier(CLK_LOCAL_MEM_FENCE);

            // load: the next tiles into the other buffer, while we compute
            if (k1 < K) {
                $next
            }

            $multiply

            now = next;
        }
        """,
        first=_load_tiles(s, "[0]", "0"),
        next=_load_tiles(s, "[next]", "k1"),
        multiply=_multiply(s, "[now]"),
    )


def _load_tiles(s: Schedule, buffer: str, k0: str) -> Lines:
    """Load the tiles that begin with step k0 from global into local memory."""
    return [line for x in s.operands for line in _load_tile(s, x, buffer, k0)]


def _load_tile(s: Schedule, x: Operand, buffer: str, k0: str) -> Lines:
    """Load a tile, with zeroes beyond the end of the matrix: neighbouring work-items load
    neighbours, along m or n, or along k. A vector along k belongs to several steps.
    """
    position = f"{x.index}0 + i"
    step = "j" if k0 == "0" else f"{k0} + j"
    i, j = x.spread
    value = s.element.loaded(x.element(position, step), x.width)
    conditions = x.conditions(position, step if s.tail else "")
    if conditions:
        value = f"inside ? {value} : {s.element.zero(x.width)}"
    tile = f"{x.name}tile{buffer}"
    if x.in_vectors:
        stage = [f"*(__local {s.element.vector(x.width)}*)&{tile}[j][i] = {value};"]
    elif x.width == 1:
        stage = [f"{tile}[j][i] = {value};"]
    else:
        stage = [f"const {s.element.vector(x.width)} x = {value};"]
        numbers = "0123456789abcdef"  # OpenCL C's names for the components of a vector
        for later in range(x.width):
            row = f"j + {later}" if later else "j"
            first = later * s.element.components
            names = numbers[first : first + s.element.components]
            stage.append(f"{tile}[{row}][i] = x.s{names};")
    return fill(
        """
        for (int e = 0; e < TSK*$loads; e += ITEMS) {
            const int i = $i; // $what of the tile
            const int j = $j; // step of k
            $inside
            $stage
        }
        """,
        loads=over(x.tile_side, x.width),
        i=i,
        j=j,
        what=x.what,
        inside=[f"const int inside = {conditions};"] if conditions else [],
        stage=stage,
    )


def _multiply(s: Schedule, buffer: str) -> Lines:
    """Write the multiply-adds of a tile: an element is loaded once, and used for a row or a
    column.
    """
    return fill(
        """
        // compute
        #pragma unroll UNROLL
        for (int k = 0; k < TSK; k++) {
            $number a[WPTM];                  // each loaded once, used WPTN times
            for (int i = 0; i < WPTM; i++) {
                a[i] = Atile$buffer[k][tm + i*RTSM];
            }
            $number b[WPTN];                  // each loaded once, used WPTM times
            for (int j = 0; j < WPTN; j++) {
                b[j] = Btile$buffer[k][tn + j*RTSN];
            }
            $multiply_adds
        }
        """,
        number=s.element.vector(),
        buffer=buffer,
        multiply_adds=multiply_adds(s),
    )
