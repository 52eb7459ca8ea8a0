"""The scheme "warps": asynchronous copies in stages, and fragments loaded one step ahead.

The 32 work-items of a warp are 8 x 4 and compute a block of 8*WPTM x 4*WPTN. Together they read few
different elements of local memory, and those are neighbours. As in kernel 16 of the ladder, tiles
are copied asynchronously. While a work-item multiplies for one step of k, it loads its fragments of
A and B for the next.

With unit "warps" each work-item multiplies by itself. With "tensor" one instruction multiplies the
16 x 4 and 4 x 8 elements that a warp holds, and adds the product to a 16 x 8 block; a complex
product takes four. Rounding is that of ordinary multiply-adds in float64. In float16 it multiplies
16 x 16 by 16 x 8 elements, and adds them up in float32.
"""

from __future__ import annotations

from textwrap import dedent

from ..ladder import sources
from . import split_k
from .epilogue import multiply_adds
from .schedule import BANKS_BYTES, Operand, Schedule
from .text import Lines, fill, over, times


def tools(s: Schedule) -> Lines:
    """Write what comes before the kernel: copies, indices in local memory, and the instruction."""
    lines = [*split_k.fence(), ""] if s.split_k > 1 else []
    lines += [*_copies(s), "", "// index of an element in its tile in local memory"]
    lines += [f"#define {x.name}_AT(k, {x.index}) ({_index(s, x)})" for x in s.operands]
    for x in s.operands:
        lines += ["", *_load_tile(s, x)]
    if s.unit == "tensor":
        lines += ["", *(_half_instruction(s) if s.element.half else fill(_DOUBLE_INSTRUCTION))]
    return lines


def _staged(s: Schedule, width: int = 1) -> str:
    """Return OpenCL's type of so many neighbours in local memory: float16 only as the bits of a
    number.
    """
    if s.element.half:
        return "ushort" if width == 1 else f"ushort{width}"
    return s.element.vector(width)


#: The name of a copy by its bytes: it says how many floats they are.
COPIES = {16: "COPY_4", 8: "COPY_2", 4: "COPY_1"}


def _copies(s: Schedule) -> Lines:
    """Write copies by an instruction of NVIDIA's devices, and ordinary ones."""
    ordinary = []
    for width in sorted({s.a.width, s.b.width}):
        if width * s.element.size in COPIES:
            vector, name = _staged(s, width), COPIES[width * s.element.size]
            value = f"(there) ? *(const __global {vector}*)(from) : ({vector})(0)"
            ordinary.append(f"#define {name}(to, from, there) *(__local {vector}*)(to) = {value}")
    return fill(
        """
        #if defined(__NV_CL_C_VERSION)
        $asynchronous
        #define COPY_2(to, from, there) \\
            asm volatile("{ .reg .pred p; setp.eq.s32 p, %2, 0; " \\
                         "cp.async.ca.shared.global [%0], [%1], 8, p; }" \\
                         :: "r"((uint)(size_t)(to)), "l"(from), "r"((int)(there)) : "memory")
        #else
        // copy from global to local memory; store zeroes if they are outside the matrix
        $ordinary
        #define COPIED()
        #define AWAIT(batches)
        #endif
        """,
        asynchronous=sources.read("production/copy_async.cl").splitlines(),
        ordinary=ordinary,
    )


def _row(x: Operand) -> str:
    """Return the length of a row of a tile in which k comes first."""
    return f"({x.tile_side} + {x.pitch - x.side})" if x.pitch > x.side else x.tile_side


def _index(s: Schedule, x: Operand) -> str:
    """Return the index of an element in its tile, in C. For tensor cores a tile is laid out as its
    matrix in global memory. Without the swizzle the 4 steps of k of each of 8 rows (or columns) of
    a fragment would be in the same banks; for float16 `ldmatrix` takes 16 bytes of each of 8 rows.
    """
    if not s.is_tensor:
        return f"(k)*{_row(x)} + ({x.index})"
    row, column, run, length = "k", x.index, x.side, x.tile_side
    if x.k_contiguous:
        row, column, run, length = x.index, "k", s.depth, "TSK"
    at_once = BANKS_BYTES // s.element.size  # elements that the banks deliver
    rows = at_once // s.mma_depth  # from so many rows
    apart = max(1, at_once // run)  # rows that are in different banks anyway
    if s.element.half:
        if not x.k_contiguous and run > 64:  # panels of 64 rows or columns
            return f"(({column})/64*TSK + ({row}))*64 + (({column})%64 ^ ({row})%8u*8)"
        swizzle = over(f"({row})%8u", apart) + "*8"
    elif x.k_contiguous:
        swizzle = over(f"({row})", apart) + f"%{rows // apart}*4"
    else:
        swizzle = f"(k)%4*{rows}"
    return f"({row})*{length} + (({column}) ^ {swizzle})"


def _load_tile(s: Schedule, x: Operand) -> Lines:
    """Write a function that starts the copies of a tile, neighbours by neighbouring work-items."""
    i, k = x.spread
    position, size = f"{x.index}0 + {x.index}", x.width * s.element.size
    there = x.conditions(position, "k0 + k" if s.tail else "") or "1"
    to, element = f"tile[{x.name}_AT(k, {x.index})]", x.element(position, "k0 + k")
    copy = f"{to} = {there} ? *(const __global ushort*)&{element} : 0;"
    if size in COPIES:  # not too short for an asynchronous copy
        copy = f"{COPIES[size]}(&{to}, &{element}, {there});"
    return fill(
        """
        // load: copy the tile of $name that begins with step k0
        void load_$operand(__local $staged* tile, const __global $stored* $name, const int $ld,
                    const int ${index}0, const int k0, const int $size, const int K)
        {
            const int tid = get_local_id(0);
            #pragma unroll
            for (int e = 0; e < TSK*$loads; e += ITEMS) {
                const int $index = $i; // $what of the tile
                const int k = $k; // step of k
                $copy
            }
        }
        """,
        **vars(x),
        operand=x.name.lower(),
        staged=_staged(s),
        stored=s.element.stored,
        loads=over(x.tile_side, x.width),
        i=i,
        k=k,
        copy=copy,
    )


#: The instruction for float64; elsewhere work-items exchange elements and add up.
_DOUBLE_INSTRUCTION = """
    // multiply: add 16 x 4 elements of A times 4 x 8 of B to two rows and columns of sums per
    // work-item, which gives the elements of step t: rows g and g + 8 of A, column g of B;
    // see "mma" in the PTX manual
    #if defined(__NV_CL_C_VERSION)
    #define MMA(sum, i, j, upper, lower, b) \\
        asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 " \\
        "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};" \\
        : "+d"(sum[j][i]), "+d"(sum[j + 1][i]), "+d"(sum[j][i + 1]), "+d"(sum[j + 1][i + 1]) \\
        : "d"(upper), "d"(lower), "d"(b))
    #else // the work-items of a warp exchange their elements through local memory
    #define MMA(sum, i, j, upper, lower, b) { \\
        barrier(CLK_LOCAL_MEM_FENCE); \\
        shown[get_local_id(0)] = (double4)(upper, lower, b, 0.0); \\
        barrier(CLK_LOCAL_MEM_FENCE); \\
        for (int l = 0; l < 8; l++) { \\
            sum[j + l/4][i] += shown[warp*32 + 4*g + l%4].x*shown[warp*32 + 8*t + l].z; \\
            sum[j + l/4][i + 1] += shown[warp*32 + 4*g + l%4].y*shown[warp*32 + 8*t + l].z; \\
        } \\
    }
    #endif
    """


def _half_instruction(s: Schedule) -> Lines:
    """Write the instruction for float16, and how a warp loads 16 x 16 elements of a tile:
    `ldmatrix` takes the address of 8 neighbours from each work-item, and transposes if these are
    not steps of k.
    """
    loads = []
    for x in s.operands:
        k, i = ("", " + lane%8") if x.k_contiguous else (" + lane%8", "")
        at = f"{x.name}_AT((k) + lane/16*8{k}, ({x.index}) + lane/8%2*8{i})"
        transposed = "" if x.k_contiguous else ".trans"
        loads.append(f"#define LOAD_{x.name}(first, second, tile, k, {x.index}) \\")
        loads.append(f'    LDMATRIX(first, second, "{transposed}", &tile[{at}])')
    return fill(
        """
        // fragments: steps 2*t, 2*t + 1, and the same + 8, of row (or column) g, and of g + 8
        #if defined(__NV_CL_C_VERSION)
        #define LDMATRIX(first, second, transposed, at) \\
            asm volatile("ldmatrix.sync.aligned.m8n8.x4" transposed ".shared.b16 " \\
            "{%0, %1, %2, %3}, [%4];" \\
            : "=r"(first[0]), "=r"(second[0]), "=r"(first[1]), "=r"(second[1]) \\
            : "r"((uint)(size_t)(at)) : "memory")
        $loads
        #else
        #define PAIR(tile, AT, k, i) (tile[AT(k, i)] | (uint)tile[AT((k) + 1, i)] << 16)
        #define LOAD(first, second, tile, AT, k, i) for (int l = 0; l < 2; l++) { \\
            first[l] = PAIR(tile, AT, (k) + 8*l + 2*t, (i) + g); \\
            second[l] = PAIR(tile, AT, (k) + 8*l + 2*t, (i) + g + 8); \\
        }
        #define LOAD_A(first, second, tile, k, m) LOAD(first, second, tile, A_AT, k, m)
        #define LOAD_B(first, second, tile, k, n) LOAD(first, second, tile, B_AT, k, n)
        #endif

        // multiply: add 16 x 16 elements of A times 16 x 8 of B to two rows and columns of sums per
        // work-item, which gives the fragments of rows g and g + 8 of A, and of column g of B
        #if defined(__NV_CL_C_VERSION)
        #define MMA(sum, i, j, upper, lower, b) \\
            asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " \\
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \\
            : "+f"(sum[j][i]), "+f"(sum[j + 1][i]), "+f"(sum[j][i + 1]), "+f"(sum[j + 1][i + 1]) \\
            : "r"(upper[0]), "r"(lower[0]), "r"(upper[1]), "r"(lower[1]), "r"(b[0]), "r"(b[1]))
        #else // the work-items of a warp exchange their elements through local memory
        #define SHOWN(lane, l) vload_half(l, (const __local half*)shown[warp*32 + (lane)])
        #define MMA(sum, i, j, upper, lower, b) { \\
            barrier(CLK_LOCAL_MEM_FENCE); \\
            shown[get_local_id(0)][0] = (uint2)(upper[0], upper[1]); \\
            shown[get_local_id(0)][1] = (uint2)(lower[0], lower[1]); \\
            shown[get_local_id(0)][2] = (uint2)(b[0], b[1]); \\
            barrier(CLK_LOCAL_MEM_FENCE); \\
            for (int l = 0; l < 32; l++) { \\
                sum[j + l/16][i] += SHOWN(4*g + l/4%4, l%4)*SHOWN(8*t + l/4, 8 + l%4); \\
                sum[j + l/16][i + 1] += SHOWN(4*g + l/4%4, 4 + l%4)*SHOWN(8*t + l/4, 8 + l%4); \\
            } \\
        }
        #endif
        """,
        loads=loads,
    )


def identifiers(s: Schedule) -> Lines:
    """Write which work-item this is, and where its work-group's tile and its warp's block begin.

    Without tensor cores neighbouring lanes share a row, and lanes two apart share a column: local
    memory then serves the wide loads of a whole warp at once.
    """
    tensor = s.is_tensor
    return fill(
        """
        // identifiers
        const int lane = get_local_id(0)%32, // number in the warp
                  warp = get_local_id(0)/32; // number of the warp
        const int g = $g; // row of the work-item in the warp, from 0 to 7
        const int t = $t; // its column, from 0 to 3
        const int wm = warp%(TSM/WM)*WM; // first row of the warp's block in the tile of C
        const int wn = $wn; // first column of the warp's block

        // which tile
        const int tile = get_group_id(1)*get_num_groups(0) + get_group_id(0);
        const int tiles_m = get_num_groups(0), tiles_n = get_num_groups(1);
        $tile_order
        """,
        tile_order=dedent(sources.read("production/tile_order.cl")).splitlines(),
        wn="0" if s.unit == "warpgroups" else "warp/(TSM/WM)*WN",
        g="lane/4" if tensor else "lane/2%8",
        t="lane%4" if tensor else "lane/16*2 + lane%2",
    )


def local_memory(s: Schedule) -> Lines:
    """Write the tiles in their stages. They begin at a line of local memory, which is faster."""
    lines = ["// local memory: a stage to compute from, and the others to fill"]
    alignment = (
        1024 if s.unit == "warpgroups" else 128
    )  # descriptors need whole patterns of the swizzle
    for x in s.operands:
        tile = f"{x.name}tile[STAGES][TSK*{_row(x)}]"
        lines.append(f"__local {_staged(s)} {tile} __attribute__((aligned({alignment})));")
    if s.unit == "tensor":
        shown = "uint2 shown[ITEMS][3]" if s.element.half else "double4 shown[ITEMS]"
        lines += ["#if !defined(__NV_CL_C_VERSION)", f"__local {shown}; // what a warp multiplies"]
        lines += ["#endif"]
    return lines


#: Starts the copies of all stages but one.
FIRST_TILES = """
    // load: the first tiles
    for (int k0 = 0; k0 < (STAGES - 1)*TSK; k0 += TSK) {
        if (k0 < K) {
            load_a(Atile[k0/TSK], A, lda, m0, k0, M, K);
            load_b(Btile[k0/TSK], B, ldb, n0, k0, N, K);
        }
        COPIED();
    }
    """
#: Starts the copies into the stage that is free.
NEXT_TILES = """
    load_a(Atile[last], A, lda, m0, k1, M, K);
    load_b(Btile[last], B, ldb, n0, k1, N, K);
    """


def main_loop(s: Schedule) -> Lines:
    """Write the loop over k: the next fragments and tiles are loaded while a work-item
    multiplies.
    """
    tensor = s.unit == "tensor"
    return fill(
        """
        $first_tiles
        AWAIT(STAGES - 2);
        barrier(CLK_LOCAL_MEM_FENCE);

        // fragments: what this work-item multiplies now, and what it multiplies next
        $number a[2][WPTM]$pairs$aligned, b[2][$columns]$pairs$aligned;
        $first_fragments

        for (int k0 = 0, now = 0; k0 < K; k0 += TSK) { // now is the stage to compute from
            const int following = now + 1 < STAGES ? now + 1 : 0; // the stage after it
            const int last = now > 0 ? now - 1 : STAGES - 1; // the stage to fill: it was used last
            const int k1 = k0 + (STAGES - 1)*TSK;            // the first step of the tiles for it

            #pragma unroll
            for (int k = 0; k < TSK; k += $step) {
                const int of = k/$step%2, next = 1 - of; // the fragments to multiply, and to fill
                const int ahead = (k + $step)%TSK; // the step to fill them for; 0: next tiles
                const int stage = ahead > 0 || k0 + TSK >= K ? now : following; // if there are any
                if (ahead == 0) {
                    // barrier: the next tiles are complete, and these are no longer needed
                    AWAIT(STAGES - 2);
                    barrier(CLK_LOCAL_MEM_FENCE);
                }
                $next_fragments
                if (k == 0 && k1 < K) {
                    $next_tiles
                }
                if (k == 0) COPIED();
                $multiply
            }
            now = following;
        }
        """,
        first_tiles=fill(FIRST_TILES),
        next_tiles=fill(NEXT_TILES),
        number="uint" if s.element.half else s.element.vector(),
        pairs="[2]" if s.element.half else "",
        aligned="" if tensor else " __attribute__((aligned(16)))",
        columns="WPTN/2" if tensor else "WPTN",  # an MMA takes one for every two columns of C
        first_fragments=_fragments(s, "0", "0", "0"),
        step=s.mma_depth if tensor else 1,
        next_fragments=_fragments(s, "stage", "ahead", "next"),
        multiply=_instructions(s) if tensor else multiply_adds(s, "[of]"),
    )


def _fragments(s: Schedule, stage: str, k: str, to: str) -> Lines:
    """Load what a work-item multiplies in step k of a stage, in vectors unless it is for tensor
    cores. Without `volatile` the compiler would move these loads to where their values are needed.
    """
    if s.element.half:
        return [
            "for (int i = 0; i < WPTM; i += 2)",
            f"    LOAD_A(a[{to}][i], a[{to}][i + 1], Atile[{stage}], {k}, wm + i*8);",
            "for (int j = 0; j < WPTN/2; j += 2)",
            f"    LOAD_B(b[{to}][j], b[{to}][j + 1], Btile[{stage}], {k}, wn + j*8);",
        ]
    width = s.fragment
    row, column, columns = f"i*8 + {times('g', width)}", f"j*4 + {times('t', width)}", "WPTN"
    if s.unit == "tensor":
        width, row, column, columns = 1, "i*8 + g", "j*8 + g", "WPTN/2"
        k = "t" if k == "0" else f"{k} + t"
    number = s.element.vector(width)
    lines = []
    for x, i, count, position in ((s.a, "i", "WPTM", row), (s.b, "j", columns, column)):
        name, cast = x.name.lower(), f"*({number}*)&" if width > 1 else ""
        at = f"{x.name}tile[{stage}][{x.name}_AT({k}, w{x.index} + {position})]"
        step = f"{i} += {width}" if width > 1 else f"{i}++"
        lines += [
            f"for (int {i} = 0; {i} < {count}; {step}) {{",
            f"    {cast}{name}[{to}][{i}] = *(const volatile __local {number}*)&{at};",
            "}",
        ]
    return lines


def _instructions(s: Schedule) -> Lines:
    """Write the instructions of a step for all blocks; for complex numbers one for each product of
    components. The two that add to the same sums are far apart, since the second has to wait for
    the first.
    """
    groups = [["MMA(acc, i, j, a[of][i], a[of][i + 1], b[of][j/2]);"]]
    if s.element.components == 2:
        mma = "MMA({0}, i, j, {1}a[of][i].{2}, {1}a[of][i + 1].{2}, b[of][j/2].{3});".format
        minus = {product: sign.strip("+") for product, sign in s.signs.items()}
        groups = [
            [mma("re", "", "x", "x"), mma("im", minus["xy"], "x", "y")],
            [mma("re", minus["yy"], "y", "y"), mma("im", minus["yx"], "y", "x")],
        ]
    loops = """
        for (int j = 0; j < WPTN; j += 2)
            for (int i = 0; i < WPTM; i += 2) {
                $instructions
            }
        """
    return [line for group in groups for line in fill(loops, instructions=group)]
