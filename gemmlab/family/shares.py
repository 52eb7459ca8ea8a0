"""The parts of a kernel whose work-groups share tiles (split-K): each computes a share of the steps of k.

Each keeps its sums in a workspace and then counts itself. The one that finds all the others counted adds everything up,
always in the same order, and goes on to the store. Nobody waits, so that it does not matter which work-groups run at
the same time, nor which of them finishes last.
"""

from __future__ import annotations

from .configuration import Configuration
from .text import Lines, fill, writes


@writes
def fence(c: Configuration) -> Lines:
    """What keeps the order of stores between work-groups, which OpenCL 1.2 does not promise."""
    if c.shares == 1:
        return []
    return fill(
        """
        // memory fence: other work-groups see what was stored before it no later than what is stored after it
        #if defined(__NV_CL_C_VERSION)
        #define IN_ORDER() asm volatile("membar.gl;" ::: "memory")
        #else
        #define IN_ORDER() mem_fence(CLK_GLOBAL_MEM_FENCE)
        #endif

        """
    )


@writes
def arguments(c: Configuration) -> Lines:
    """The workspace: partial tiles, and for each tile a counter, which is 0 before and after."""
    return [f"__global {c.type()}* pieces, __global int* arrived,"] if c.shares > 1 else []


@writes
def own_steps(c: Configuration) -> Lines:
    """Let A, B and K be those of the work-group's share; nothing else in the text need know of it."""
    if c.shares == 1:
        return []
    return fill(
        """
        // which share of the steps of k; from here on A, B and K are its own
        const int share = get_group_id(2), steps = (K + TSK - 1)/TSK;
        const int from = (steps/SHARES*share + min(share, steps%SHARES))*TSK;
        const int upto = (steps/SHARES*(share + 1) + min(share + 1, steps%SHARES))*TSK;
        A += $a;
        B += $b;
        K = min(K, upto) - from;
        """,
        a="from" if c.along_k("a") else "(long)from*lda",
        b="from" if c.along_k("b") else "(long)from*ldb",
    )


@writes
def fix_up(c: Configuration, sums: tuple[str, ...]) -> Lines:
    """Keep the sums; the last work-group of a tile to come here adds up all of them, in the order of their steps.

    Args:
        sums: what makes up a sum of a work-item, as C: itself, or its real and its imaginary part.
    """
    if c.shares == 1:
        return []
    return fill(
        """
        // fix-up: keep the sums of this share
        #define PIECE(share, i, j) pieces[((long)(tile*SHARES + (share))*WPTM*WPTN + (j)*WPTM + i)*ITEMS + tid]
        const int tid = get_local_id(0);
        for (int j = 0; j < WPTN; j++)
            for (int i = 0; i < WPTM; i++) PIECE(share, i, j) = $total;
        IN_ORDER();
        // barrier: all of them are kept
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        __local int before; // how many work-groups came here before
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
        $added

        """,
        total=_together(sums, c),
        added=_added(c, sums),
    )


def _together(sums: tuple[str, ...], c: Configuration) -> str:
    """A sum as one number."""
    return sums[0] if len(sums) == 1 else f"({c.type()})({', '.join(sums)})"


@writes
def _added(c: Configuration, sums: tuple[str, ...]) -> Lines:
    """Two shares have one order only, since x + y = y + x: then one's own sums stay in their registers."""
    ends = [""] if len(sums) == 1 else [".x", ".y"]
    add = [f"{name} += PIECE({{}}, i, j){end};" for name, end in zip(sums, ends, strict=True)]
    if c.shares == 2:
        return fill(
            """
            for (int j = 0; j < WPTN; j++)
                for (int i = 0; i < WPTM; i++) {
                    $add
                }
            """,
            add=[line.format("1 - share") for line in add],
        )
    return fill(
        """
        for (int j = 0; j < WPTN; j++)
            for (int i = 0; i < WPTM; i++) $zeroes = 0;
        for (int s = 0; s < SHARES; s++)
            for (int j = 0; j < WPTN; j++)
                for (int i = 0; i < WPTM; i++) {
                    $add
                }
        """,
        zeroes=" = ".join(sums),
        add=[line.format("s") for line in add],
    )
