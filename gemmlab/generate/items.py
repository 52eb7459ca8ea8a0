"""The scheme "items": tiles of A and B are staged in local memory, k first.

Each work-item computes rows and columns spread over the tile, as in kernels 6 to 12 of the ladder.
"""

from __future__ import annotations

from .schedule import Operand, Schedule
from .text import Lines, fill, over, times, writes


@writes
def identifiers(s: Schedule) -> Lines:
    """Which work-item this is, and where its work-group's tile begins."""
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


@writes
def local_memory(s: Schedule) -> Lines:
    """The tiles. One that is filled along k has longer rows, against bank conflicts."""
    buffers = "[2]" if s.stages == 2 else ""  # one to compute from, one to fill
    lines = ["// local memory"]
    for x in s.operands:
        vector = s.element.vector(1 if x.k_contiguous else x.width)
        row = over(x.tile_side, x.width)
        if x.k_contiguous:
            row = f"{x.tile_side} + {x.pitch - x.side}"
        lines.append(f"__local {vector} {x.name}tile{buffers}[TSK][{row}];")
    return [*lines, ""]


def main_loop(s: Schedule) -> Lines:
    """The loop over k."""
    return double_buffered(s) if s.stages == 2 else single_buffered(s)


@writes
def single_buffered(s: Schedule) -> Lines:
    """Tiles are multiplied before the next ones are loaded."""
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
        load=[*load_tile(s, s.a, "", "k0"), *load_tile(s, s.b, "", "k0")],
        multiply=multiply(s),
    )


@writes
def double_buffered(s: Schedule) -> Lines:
    """The next tiles are loaded while these are multiplied."""
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
        first=[*load_tile(s, s.a, "[0]", "0"), *load_tile(s, s.b, "[0]", "0")],
        next=[*load_tile(s, s.a, "[next]", "k1"), *load_tile(s, s.b, "[next]", "k1")],
        multiply=multiply(s),
    )


@writes
def load_tile(s: Schedule, x: Operand, buffer: str, k0: str) -> Lines:
    """Load the tile that begins with step k0 from global into local memory, with zeroes beyond the
    end of the matrix. Neighbouring work-items load neighbours: along m or n, or along k.
    """
    position = f"{x.index}0 + i"
    step = "j" if k0 == "0" else f"{k0} + j"
    run = over("TSK" if x.k_contiguous else x.tile_side, x.width)  # loads that are neighbours
    if x.width > 1:
        run = f"({run})"
    i = times(f"(e + tid)%{run}", x.width)
    j = f"(e + tid)/{run}"
    if x.k_contiguous:
        i, j = j, i
    element = s.element.loaded(x.element(position, step), x.width)
    conditions = x.conditions(position, step if s.tail else "")
    if conditions:
        element = f"inside ? {element} : {s.element.zero(x.width)}"
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
        what="row" if x.name == "A" else "column",
        inside=[f"const int inside = {conditions};"] if conditions else [],
        stage=stage(s, x, buffer, element),
    )


@writes
def stage(s: Schedule, x: Operand, buffer: str, value: str) -> Lines:
    """Store what was loaded into local memory; a vector along k belongs to several steps."""
    tile = f"{x.name}tile{buffer}"
    if not x.k_contiguous:
        return [f"{tile}[j][{over('i', x.width)}] = {value};"]
    if x.width == 1:
        return [f"{tile}[j][i] = {value};"]
    lines = [f"const {s.element.vector(x.width)} x = {value};"]
    numbers = "0123456789abcdef"  # OpenCL's names for the numbers of a vector
    for step in range(x.width):
        row = f"j + {step}" if step else "j"
        first = step * s.element.components
        lines.append(f"{tile}[{row}][i] = x.s{numbers[first : first + s.element.components]};")
    return lines


@writes
def multiply(s: Schedule) -> Lines:
    """The multiply-adds of a tile: an element is loaded once, and used for a row or a column."""
    multiply_add = "acc[j][i] += a[i]*b[j];"
    if s.element.components == 2:
        multiply_add = "acc[j][i] = multiply_add(a[i], b[j], acc[j][i]);"
    buffer = "[now]" if s.stages == 2 else ""
    pointer = f"const __local {s.element.vector()}*"
    views = []
    elements = []
    for x, position in ((s.a, "tm + i*RTSM"), (s.b, "tn + j*RTSN")):
        if x.width == 1 or x.k_contiguous:
            elements.append(f"{x.name}tile{buffer}[k][{position}]")
        else:  # the tile was stored as vectors
            views.append(f"{pointer} {x.name}now = ({pointer}){x.name}tile{buffer};")
            elements.append(f"{x.name}now[k*{x.tile_side} + {position}]")
    return fill(
        """
        // compute
        $views
        #pragma unroll UNROLL
        for (int k = 0; k < TSK; k++) {
            $number a[WPTM];                  // each loaded once, used WPTN times
            for (int i = 0; i < WPTM; i++) {
                a[i] = $a;
            }
            $number b[WPTN];                  // each loaded once, used WPTM times
            for (int j = 0; j < WPTN; j++) {
                b[j] = $b;
            }
            for (int j = 0; j < WPTN; j++) {
                for (int i = 0; i < WPTM; i++) {
                    $multiply_add
                }
            }
        }
        """,
        views=views,
        number=s.element.vector(),
        a=elements[0],
        b=elements[1],
        multiply_add=multiply_add,
    )
