"""The scheme "warpgroups": four warps multiply float16 with one instruction of Hopper's.

A work-group's tile of C has 64 rows for each warpgroup. The instruction (wgmma) takes 16 steps of k
of both matrices from local memory by itself, and adds to sums in registers. It reads tiles in the
swizzled layouts that descriptors name; they are those of `warps`, whose other parts serve here,
too. OpenCL's compiler does not know the instruction: see `opencl.build.HIDDEN`.
"""

from __future__ import annotations

from . import warps
from .schedule import Schedule
from .text import Lines, fill
from .warps import FIRST_TILES, NEXT_TILES, identifiers, local_memory

__all__ = ["identifiers", "local_memory", "main_loop", "tools"]

#: What a descriptor calls a swizzled layout, by the halves that are neighbours.
_SWIZZLES = {64: 1, 32: 2, 16: 3}
#: Registers in a line of the text.
_LINE = 16


def tools(s: Schedule) -> Lines:
    """Write the instruction, its fences and its descriptors; elsewhere the same products in plain
    C.
    """
    columns = s.tile[1]
    registers = [f"%{number}" for number in range(columns // 2)]
    listed = [", ".join(registers[i : i + _LINE]) for i in range(0, len(registers), _LINE)]
    sums = [f"SUMS({j})" for j in range(0, columns // 4, 2)]
    outputs = [", ".join(sums[i : i + 8]) for i in range(0, len(sums), 8)]
    transposed = ", ".join("0" if x.k_contiguous else "1" for x in s.operands)
    where = []
    for x in s.operands:
        run = s.depth if x.k_contiguous else min(x.side, 64)
        leading, stride = (1, run) if x.k_contiguous else (s.depth * run // 8, run)
        code = f"(ulong){leading} << 16 | (ulong){stride} << 32 | (ulong){_SWIZZLES[run]} << 62"
        where += [
            f"#define WHERE_{x.name}(at) \\",
            f"    ((ulong)((uint)(size_t)(at) >> 4 & 0x3fff) | {code})",
        ]
    own = fill(
        """
        #if defined(__NV_CL_C_VERSION)
        // fences: copies are visible to the instruction; a batch begins, ends, is complete
        #define SHOW() asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
        #define BEGIN() asm volatile("//@ wgmma.fence.sync.aligned;" ::: "memory")
        #define END() asm volatile("//@ wgmma.commit_group.sync.aligned;" ::: "memory")
        #define FINISH() asm volatile("//@ wgmma.wait_group.sync.aligned 0;" ::: "memory")
        // descriptors: an address, the distances of blocks in units of 16 bytes, and the swizzle
        $where
        // multiply: add 64 x 16 elements of A times 16 x TSN of B to the sums of a warpgroup
        #define SUMS(j) "+f"(acc[j][0]), "+f"(acc[j + 1][0]), "+f"(acc[j][1]), "+f"(acc[j + 1][1])
        #define MULTIPLY(stage, k) asm volatile("//@ {.reg .pred p; setp.ne.b32 p, 1, 0; " \\
            "wgmma.mma_async.sync.aligned.m64n${columns}k16.f32.f16.f16 {" \\
            $listed
            "}, %$a, %$b, p, 1, 1, $transposed;}" : \\
            $outputs
            : "l"(WHERE_A(&Atile[stage][A_AT(k, warp/4*64)])), \\
              "l"(WHERE_B(&Btile[stage][B_AT(k, 0)])))
        #else // the same products in ordinary arithmetic
        #define SHOW()
        #define BEGIN()
        #define END()
        #define FINISH()
        #define AT(tile, index) vload_half(index, (const __local half*)(tile))
        #define MULTIPLY(stage, k) \\
            for (int l = k; l < (k) + 16; l++) \\
                for (int j = 0; j < WPTN; j++) \\
                    for (int i = 0; i < WPTM; i++) \\
                        acc[j][i] += AT(Atile[stage], A_AT(l, wm + i*8 + g)) \\
                                     *AT(Btile[stage], B_AT(l, wn + j/2*8 + t*2 + j%2))
        #endif
        """,
        where=where,
        columns=columns,
        listed=[
            f'"{line}{", " if i + 1 < len(listed) else ""}" \\' for i, line in enumerate(listed)
        ],
        a=columns // 2,
        b=columns // 2 + 1,
        transposed=transposed,
        outputs=[
            f"{line}{', ' if i + 1 < len(outputs) else ' '}\\" for i, line in enumerate(outputs)
        ],
    )
    return [*warps.tools(s), "", *own]


def main_loop(s: Schedule) -> Lines:
    """Write the loop over k: the next tiles are copied while the instruction runs."""
    return fill(
        """
        $first_tiles

        for (int k0 = 0, now = 0; k0 < K; k0 += TSK) { // now is the stage to compute from
            const int last = now > 0 ? now - 1 : STAGES - 1; // the stage to fill: it was used last
            const int k1 = k0 + (STAGES - 1)*TSK;            // the first step of the tiles for it

            // barrier: these tiles are complete, and those of the stage to fill no longer needed
            AWAIT(STAGES - 2);
            SHOW();
            barrier(CLK_LOCAL_MEM_FENCE);

            // compute
            BEGIN();
            #pragma unroll
            for (int k = 0; k < TSK; k += 16) {
                MULTIPLY(now, k);
            }
            END();

            // load: meanwhile the tiles for the stage that is free
            if (k1 < K) {
                $next_tiles
            }
            COPIED();
            FINISH();
            now = now + 1 < STAGES ? now + 1 : 0;
        }
        """,
        first_tiles=fill(FIRST_TILES),
        next_tiles=fill(NEXT_TILES),
    )
