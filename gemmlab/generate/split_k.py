"""Split-K: work-groups share a tile, each with part of the steps of k.

Each stores its sums in a workspace and then increments the tile's counter. The last one to do so
adds up all of them, always in the same order, and stores the tile. Nobody waits, so it does not
matter which work-groups run at the same time, nor which one finishes last.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ladder import sources
from .schedule import Schedule
from .text import Lines, fill


def fence() -> Lines:
    """Return what orders stores between work-groups, which OpenCL 1.2 does not guarantee."""
    return [
        "#if defined(__NV_CL_C_VERSION)",
        *sources.read("production/fence.cl").splitlines(),
        "#else",
        "#define IN_ORDER() mem_fence(CLK_GLOBAL_MEM_FENCE)",
        "#endif",
    ]


def own_steps(s: Schedule) -> Lines:
    """Make A, B and K those of the work-group's share; no other part of the text depends on it."""
    return fill(
        """
        // which share of the steps of k; from here on A, B and K are those of the share
        const int share = get_group_id(2), steps = (K + TSK - 1)/TSK;
        const int from = (steps/SHARES*share + min(share, steps%SHARES))*TSK;
        const int upto = (steps/SHARES*(share + 1) + min(share + 1, steps%SHARES))*TSK;
        A += $a;
        B += $b;
        K = min(K, upto) - from;
        """,
        a="from" if s.a.k_contiguous else "(long)from*lda",
        b="from" if s.b.k_contiguous else "(long)from*ldb",
    )


def fix_up(sums: Sequence[str], total: str) -> Lines:
    """Store the sums, each `total` as one number; the last work-group of a tile adds up all."""
    components = ("",) if len(sums) == 1 else (".x", ".y")
    return fill(
        """
        // fix-up: store the sums of this share
        #define PIECE(share, i, j) \\
            pieces[((long)(tile*SHARES + (share))*WPTM*WPTN + (j)*WPTM + i)*ITEMS + tid]
        const int tid = get_local_id(0);
        for (int j = 0; j < WPTN; j++)
            for (int i = 0; i < WPTM; i++) PIECE(share, i, j) = $total;
        IN_ORDER();
        // barrier: all of them are stored
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        __local int before; // how many work-groups of this tile came here before
        if (tid == 0) {
            before = atomic_inc(&arrived[tile]);
            if (before == SHARES - 1) arrived[tile] = 0; // for the next launch
        }
        // barrier: all work-items know
        barrier(CLK_LOCAL_MEM_FENCE);
        if (before < SHARES - 1) {
            return;
        }
        // the last one adds them up
        IN_ORDER();
        for (int j = 0; j < WPTN; j++)
            for (int i = 0; i < WPTM; i++) $zeroes = 0;
        for (int s = 0; s < SHARES; s++)
            for (int j = 0; j < WPTN; j++)
                for (int i = 0; i < WPTM; i++) {
                    $add
                }
        """,
        total=total,
        zeroes=" = ".join(sums),
        add=[
            f"{each} += PIECE(s, i, j){component};"
            for each, component in zip(sums, components, strict=True)
        ],
    )
