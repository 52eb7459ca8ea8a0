"""The parts of a kernel whose warps share blocks of C: copies in stages, and fragments loaded ahead.

The 32 work-items of a warp are 8 x 4 and compute a block of 8*WPTM x 4*WPTN, so that what they load from local memory
at a time lies side by side. As kernels 15 and 16 of the ladder do, they start asynchronous copies of tiles to come
(where the device has no such copies, ordinary ones), and load what they need for the next step of k while they
multiply for this one.

With unit "warps" each work-item multiplies by itself. With "tensor" an instruction adds the product of a 16 x 4 and a
4 x 8 matrix of float64, which the work-items of the warp hold together, to a 16 x 8 block; complex matrices take four of
them. Elsewhere than on NVIDIA's devices the work-items show each other their elements and compute the same.
"""

from __future__ import annotations

from .configuration import INSTRUCTION, PRECISIONS, Configuration
from .shared import beginnings, factors, stored
from .text import Lines, fill, writes

AHEAD = True


def arithmetic(c: Configuration) -> Lines:
    """What the text needs before the kernel: copies, places, loads, and the instruction."""
    found = [*copies(c), "", *places(c), "", *load(c, "a"), "", *load(c, "b"), ""]
    return [*found, *instruction(c), ""] if c.tensor else found


@writes
def copies(c: Configuration) -> Lines:
    """Asynchronous copies, by NVIDIA's instruction, or ordinary ones."""
    kinds = sorted({(c.width(operand) * PRECISIONS[c.precision].size, c.width(operand)) for operand in "ab"})
    started, ordinary = [], []
    for size, width in kinds:
        how = "cg" if size == 16 else "ca"  # the first goes past the cache that it would only fill
        started += [
            f"#define COPY_{size}(to, from, there) \\",
            f'    asm volatile("cp.async.{how}.shared.global [%0], [%1], {size}, %2;" \\',
            f'                 :: "r"((uint)(size_t)(to)), "l"(from), "r"((there) ? {size} : 0) : "memory")',
        ]
        ordinary += [
            f"#define COPY_{size}(to, from, there) \\",
            f"    *(__local {c.type(width)}*)(to) = (there) ? *(const __global {c.type(width)}*)(from) : {c.zero(width)}",
        ]
    return fill(
        """
        // copy so many bytes from global to local memory, or zeroes where nothing is there
        #if defined(__NV_CL_C_VERSION)
        // only started; COPIED() closes a batch of copies, AWAIT(n) waits for all batches but the last n
        $started
        #define COPIED() asm volatile("cp.async.commit_group;" ::: "memory")
        #define AWAIT(batches) asm volatile("cp.async.wait_group %0;" :: "n"(batches) : "memory")
        #else
        $ordinary
        #define COPIED()
        #define AWAIT(batches)
        #endif
        """,
        started=started,
        ordinary=ordinary,
    )


@writes
def places(c: Configuration) -> Lines:
    """Where the element of a row and a step of k lies in a tile.

    For tensor cores a tile lies as its matrix does in global memory, and 4 steps of k of several neighbours are read
    at a time. So that these are in different banks, the neighbours change places: within the row, by a few bits of
    its number (a swizzle). Otherwise k comes first, and longer rows keep stores along k apart.
    """
    lines = ["// where an element of a tile lies in local memory"]
    at_once = 128 // PRECISIONS[c.precision].size  # elements that the banks serve at a time
    apart = at_once // 4  # neighbours whose 4 steps of k these are
    for operand, index in (("a", "m"), ("b", "n")):
        name, side = operand.upper(), f"TS{index.upper()}"
        if not c.tensor:
            gap = c.row(operand) - c.side(operand)
            place = f"(k)*{f'({side} + {gap})' if gap else side} + {index}"
        elif not c.along_k(operand):
            place = f"(k)*{side} + (({index}) ^ (k)%4*{apart})"
        else:
            rows = max(1, at_once // c.depth)  # of k that the banks hold side by side
            bits = f"({index}){f'/{rows}' * (rows > 1)}%{apart // rows}*4"
            place = f"({index})*TSK + " + (f"((k) ^ {bits})" if apart > rows else "(k)")
        lines.append(f"#define {name}_AT(k, {index}) ({place})")
    return lines


@writes
def load(c: Configuration, operand: str) -> Lines:
    """The function that starts the copies of a tile. Neighbouring work-items copy neighbours in memory."""
    name, width, index = operand.upper(), c.width(operand), {"a": "m", "b": "n"}[operand]
    size, side = index.upper(), f"TS{index.upper()}"
    run = "TSK" if c.along_k(operand) else side
    first = "(e + tid)" if width == 1 else f"(e + tid)*{width}"
    along, across = f"{first}%{run}", f"{first}/{run}"
    i, k = (across, along) if c.along_k(operand) else (along, across)
    place = f"({index}0 + {index})*ld{operand} + k0 + k" if c.along_k(operand) else f"(k0 + k)*ld{operand} + {index}0 + {index}"
    inside = [f"{index}0 + {index} < {size}"] * c.guards(operand) + ["k0 + k < K"] * c.tail
    return fill(
        """
        // load: copy the tile of $name from step k0 on
        void load_$operand(__local $number* tile, const __global $number* $name, const int ld$operand,
                    const int ${index}0, const int k0, const int $size, const int K)
        {
            const int tid = get_local_id(0);
            for (int e = 0; e < TSK*$side$each; e += ITEMS) {
                const int $index = $i; // $what of the tile
                const int k = $k; // step of k
                COPY_$bytes(&tile[${name}_AT(k, $index)], &$name[$place], $there);
            }
        }
        """,
        name=name,
        operand=operand,
        number=c.type(),
        index=index,
        size=size,
        side=side,
        each=f"/{width}" * (width > 1),
        i=i,
        k=k,
        what="row" if operand == "a" else "column",
        bytes=width * PRECISIONS[c.precision].size,
        place=place,
        there=" && ".join(inside) or "1",
    )


@writes
def instruction(c: Configuration) -> Lines:
    """The instruction of the tensor cores, and the same in ordinary arithmetic."""
    rows, _, depth = INSTRUCTION
    sums, of_a, of_b = rows // 4, rows * depth // 32, depth // 4
    names = ["sum" + str(i) for i in range(sums)]
    numbers = [f"%{i}" for i in range(sums + of_a + of_b)]
    d = ", ".join(numbers[:sums])
    a, b = ", ".join(numbers[sums : sums + of_a]), ", ".join(numbers[sums + of_a :])
    half = rows // 8
    ins = [f'"d"(a[{q}][(i) + {h}])' for q in range(depth // 4) for h in range(half)]
    ins += [f'"d"(b[{q}][(j)/2])' for q in range(depth // 4)]
    outs = [f'"+d"(sum[(j) + {x}][(i) + {h}])' for h in range(half) for x in range(2)]
    emulated = [
        "#define MMA(sum, i, j, a, b) \\",
        f"    for (int q = 0; q < {depth // 4}; q++) {{ \\",
        f"        for (int h = 0; h < {half}; h++) {{ \\",
        "            barrier(CLK_LOCAL_MEM_FENCE); \\",
        "            shown[get_local_id(0)] = (double2)(a[q][(i) + h], b[q][(j)/2]); \\",
        "            barrier(CLK_LOCAL_MEM_FENCE); \\",
        "            for (int l = 0; l < 4; l++) { \\",
        "                sum[j][(i) + h] += shown[warp*32 + g*4 + l].x*shown[warp*32 + t*8 + l].y; \\",
        "                sum[(j) + 1][(i) + h] += shown[warp*32 + g*4 + l].x*shown[warp*32 + t*8 + 4 + l].y; \\",
        "            } \\",
        "        } \\",
        "    }",
    ]
    return [
        "// multiply: sum + a b, for a block of C",
        "#if defined(__NV_CL_C_VERSION)",
        "#define MMA(sum, i, j, a, b) \\",
        f'    asm("mma.sync.aligned.m{rows}n8k{depth}.row.col.f64.f64.f64.f64 {{{d}}}, {{{a}}}, {{{b}}}, {{{d}}};" \\',
        f"        : {', '.join(outs)} \\",
        f"        : {', '.join(ins)})",
        "#else",
        *emulated,
        "#endif",
    ]


@writes
def begin(c: Configuration) -> Lines:
    """Who am I; and what a work-group and a work-item keep."""
    lane = ("lane/4", "lane%4") if c.tensor else ("lane%8", "lane/8")
    return fill(
        """
        // identifiers
        const int lane = get_local_id(0)%32;                 // number of the work-item in its warp
        const int warp = get_local_id(0)/32;                 // number of the warp
        const int g = $g;                              // its row in the warp
        const int t = $t;                              // its column in the warp
        const int wm = warp%(TSM/(8*WPTM))*8*WPTM;           // first row of the warp's block in the tile of C
        const int wn = warp/(TSM/(8*WPTM))*4*WPTN;           // its first column
        const int m0 = get_group_id(0)*TSM;                  // first row of the tile of C
        const int n0 = get_group_id(1)*TSN;                  // first column of the tile of C
        $beginnings

        // local memory: a stage to compute from, and the others to fill
        __local $number Atile[STAGES][TSK*$row_a] __attribute__((aligned(16)));
        __local $number Btile[STAGES][TSK*$row_b] __attribute__((aligned(16)));
        $shown

        // accumulators
        $sums
        for (int j = 0; j < WPTN; j++) {
            for (int i = 0; i < WPTM; i++) {
                $zeroes
            }
        }
        """,
        g=lane[0],
        t=lane[1],
        beginnings=beginnings(c),
        number=c.type(),
        shown=["#if !defined(__NV_CL_C_VERSION)", "__local double2 shown[ITEMS];", "#endif"] * c.tensor,
        row_a=_row(c, "a"),
        row_b=_row(c, "b"),
        sums=[f"{c.type() if not c.tensor else 'double'} {name}[WPTN][WPTM];" for name in _sums(c)],
        zeroes=[f"{name}[j][i] = {'0.0' if c.tensor else c.zero()};" for name in _sums(c)],
    )


def _row(c: Configuration, operand: str) -> str:
    gap, side = c.row(operand) - c.side(operand), {"a": "TSM", "b": "TSN"}[operand]
    return f"({side} + {gap})" if gap else side


def _sums(c: Configuration) -> tuple[str, ...]:
    """The names of the accumulators: tensor cores need real and imaginary parts apart."""
    return ("re", "im") if c.tensor and c.parts == 2 else ("acc",)


@writes
def steps(c: Configuration) -> Lines:
    """The loop over k."""
    return ahead(c) if AHEAD else plain(c)


def plain(c: Configuration) -> Lines:
    return fill(
        """
        // load: the first tiles
        for (int k0 = 0; k0 < (STAGES - 1)*TSK; k0 += TSK) {
            if (k0 < K) {
                $first
            }
            COPIED();
        }
        for (int k0 = 0; k0 < K; k0 += TSK) {
            const int now = k0/TSK%STAGES;
            const int next = (now + STAGES - 1)%STAGES;
            AWAIT(STAGES - 2);
            barrier(CLK_LOCAL_MEM_FENCE);
            if (k0 + (STAGES - 1)*TSK < K) {
                $more
            }
            COPIED();
            $declared
            #pragma unroll
            for (int k = 0; k < TSK; k += $step) {
                $fragments
                $multiply
            }
        }
        """,
        first=_loads("k0/TSK", "k0"),
        more=_loads("next", "k0 + (STAGES - 1)*TSK"),
        declared=declared(c),
        step=c.step,
        fragments=fragments(c, "now", "k", "0", volatile=False),
        multiply=multiply(c, "0"),
    )


def ahead(c: Configuration) -> Lines:
    return fill(
        """
        // load: the first tiles
        for (int k0 = 0; k0 < (STAGES - 1)*TSK; k0 += TSK) {
            if (k0 < K) {
                $first
            }
            COPIED();
        }

        // fragments: what this work-item multiplies in a step of k, and in the next one
        $declared
        AWAIT(STAGES - 2);
        barrier(CLK_LOCAL_MEM_FENCE);
        {
            $begun
        }

        for (int k0 = 0; k0 < K; k0 += TSK) {
            const int now = k0/TSK%STAGES;
            #pragma unroll
            for (int k = 0; k < TSK; k += $step) {
                const int this = k/$step%2;
                const int other = 1 - this;
                int from = now;
                if (k == TSK - $step) {
                    // barrier: the next tile is complete, and nobody needs this one any more
                    AWAIT(STAGES - 2);
                    barrier(CLK_LOCAL_MEM_FENCE);
                    from = (now + 1)%STAGES;
                }
                $fragments
                if (k == 0) {
                    if (k0 + (STAGES - 1)*TSK < K) {
                        $more
                    }
                    COPIED();
                }
                $multiply
            }
        }
        """,
        first=_loads("k0/TSK", "k0"),
        declared=declared(c),
        begun=fragments(c, "0", "0", "0"),
        step=c.step,
        fragments=fragments(c, "from", f"(k + {c.step})%TSK", "other"),
        more=_loads("(now + STAGES - 1)%STAGES", "k0 + (STAGES - 1)*TSK"),
        multiply=multiply(c, "this"),
    )


def _loads(stage: str, k0: str) -> Lines:
    return [
        f"load_a(Atile[{stage}], A, lda, m0, {k0}, M, K);",
        f"load_b(Btile[{stage}], B, ldb, n0, {k0}, N, K);",
    ]


def declared(c: Configuration) -> Lines:
    if not c.tensor:
        return [
            f"{c.type()} a[2][WPTM] __attribute__((aligned(16)));",
            f"{c.type()} b[2][WPTN] __attribute__((aligned(16)));",
        ]
    quarters = INSTRUCTION[2] // 4
    ends = ("_re", "_im") if c.parts == 2 else ("",)
    return [f"double a{end}[2][{quarters}][WPTM], b{end}[2][{quarters}][WPTN/2];" for end in ends]


@writes
def fragments(c: Configuration, stage: str, k: str, to: str, volatile: bool = True) -> Lines:
    """What a work-item multiplies in a step of k, from local memory into registers."""
    word = "volatile " if volatile else ""
    if not c.tensor:
        vector = c.type(c.vector)
        lines = []
        for operand, index, count, lane, apart in (("a", "i", "WPTM", "g", 8), ("b", "j", "WPTN", "t", 4)):
            at = f"{operand.upper()}_AT({k}, w{'mn'['ab'.index(operand)]} + {index}*{apart} + {lane}*{c.vector})"
            lines += [
                "#pragma unroll", f"for (int {index} = 0; {index} < {count}; {index} += {c.vector}) {{",
                f"    *({vector}*)&{operand}[{to}][{index}] = *(const {word}__local {vector}*)&{operand.upper()}tile[{stage}][{at}];",
                "}",
            ]
        return lines
    lines = []
    for operand, index, count in (("a", "i", "WPTM"), ("b", "j", "WPTN/2")):
        at = f"{operand.upper()}_AT({k} + q*4 + t, w{'mn'['ab'.index(operand)]} + {index}*8 + g)"
        source = f"{operand.upper()}tile[{stage}][{at}]"
        lines += ["#pragma unroll", f"for (int q = 0; q < {INSTRUCTION[2] // 4}; q++) {{", "    #pragma unroll", f"    for (int {index} = 0; {index} < {count}; {index}++) {{"]
        if c.parts == 1:
            lines.append(f"        {operand}[{to}][q][{index}] = *(const {word}__local double*)&{source};")
        else:
            sign = "-" * c.conjugates(operand)
            lines += [
                f"        const double2 x = *(const {word}__local double2*)&{source};",
                f"        {operand}_re[{to}][q][{index}] = x.x;",
                f"        {operand}_im[{to}][q][{index}] = {sign}x.y;",
            ]
        lines += ["    }", "}"]
    return lines


@writes
def multiply(c: Configuration, of: str) -> Lines:
    """The multiply-adds of a step."""
    rows = INSTRUCTION[0] // 8
    if c.tensor:
        if c.parts == 1:
            products = [f"MMA(acc, i, j, a[{of}], b[{of}]);"]
        else:
            products = [
                f"MMA(re, i, j, a_re[{of}], b_re[{of}]);",
                f"MMA(im, i, j, a_re[{of}], b_im[{of}]);",
                f"MMA(im, i, j, a_im[{of}], b_re[{of}]);",
                f"MMA(re, i, j, minus, b_im[{of}]);",
            ]
        lines = []
        if c.parts == 2:
            lines += [
                f"double minus[{INSTRUCTION[2] // 4}][WPTM];",
                "#pragma unroll", f"for (int q = 0; q < {INSTRUCTION[2] // 4}; q++) {{",
                "    #pragma unroll", "    for (int i = 0; i < WPTM; i++) {",
                f"        minus[q][i] = -a_im[{of}][q][i];",
                "    }",
                "}",
            ]
        return lines + [
            "#pragma unroll", "for (int j = 0; j < WPTN; j += 2) {",
            "    #pragma unroll", f"    for (int i = 0; i < WPTM; i += {rows}) {{",
            *(f"        {x}" for x in products),
            "    }",
            "}",
        ]
    product = f"acc[j][i] += a[{of}][i]*b[{of}][j];"
    if c.parts == 2:
        product = f"acc[j][i] = multiply_add(a[{of}][i], b[{of}][j], acc[j][i]);"
    return [
        "#pragma unroll", "for (int j = 0; j < WPTN; j++) {",
        "    #pragma unroll", "    for (int i = 0; i < WPTM; i++) {",
        f"        {product}",
        "    }",
        "}",
    ]


@writes
def store(c: Configuration) -> Lines:
    """C = alpha sum + beta C0, element by element, where C has one."""
    inside = [f"{index} < {size}" for operand, index, size in ("amM", "bnN") if c.guards(operand)]
    if c.tensor:
        m, n = "m0 + wm + i*8 + g", "n0 + wn + j/2*8 + t*2 + j%2"
    elif c.vector == 1:
        m, n = "m0 + wm + i*8 + g", "n0 + wn + j*4 + t"
    else:
        v = c.vector
        m, n = f"m0 + wm + i/{v}*{8 * v} + g*{v} + i%{v}", f"n0 + wn + j/{v}*{4 * v} + t*{v} + j%{v}"
    split = c.tensor and c.parts == 2
    return fill(
        """
        // store
        $factors
        for (int j = 0; j < WPTN; j++) {
            for (int i = 0; i < WPTM; i++) {
                const int m = $m;
                const int n = $n;
                $joined
                $element
            }
        }
        """,
        factors=factors(c),
        m=m,
        n=n,
        joined=["const double2 sum = (double2)(re[j][i], im[j][i]);"] * split,
        element=stored(c, "sum" if split else "acc[j][i]", "m", "n", inside),
    )
