"""The parts of a kernel whose warps share blocks of C: copies in stages, and fragments loaded ahead.

The 32 work-items of a warp are 8 x 4 and compute a block of 8*WPTM x 4*WPTN. Together they read few different elements
of local memory, and those are neighbours. As in kernel 15 of the ladder, tiles to come are copied asynchronously, and
while a work-item multiplies for one step of k, it loads what it needs for the next (its fragments).

With unit "warps" each work-item multiplies by itself. With "tensor" the warp's work-items hold a 16 x 4 and a 4 x 8
matrix together, and one instruction adds their product to a 16 x 8 block; a complex product takes four of them. The
rounding is that of ordinary multiply-adds in float64.
"""

from __future__ import annotations

from .configuration import BANKS_BYTES, PRECISIONS, Configuration
from .shared import beginnings, factors, stored, stored_together
from .shares import fence, fix_up, own_steps
from .text import Lines, fill, writes

_STEP = 4  # steps of k of the tensor cores' instruction


@writes
def tools(c: Configuration) -> Lines:
    """What stands before the kernel: copies, places in local memory, loads, and the instruction."""
    found = [*fence(c), *copies(c), "", *places(c), "", *load(c, "a"), "", *load(c, "b"), ""]
    return [*found, *instruction(), ""] if c.unit == "tensor" else found


@writes
def copies(c: Configuration) -> Lines:
    """Asynchronous copies by an instruction of NVIDIA's devices; elsewhere ordinary ones."""
    started: Lines = []
    ordinary: Lines = []
    for width in sorted({c.width(operand) for operand in "ab"}):
        size, vector = width * PRECISIONS[c.precision].size, c.type(width)
        past = "cg" if size == 16 else "ca"  # the first goes past the cache of the multiprocessor
        macro = f"#define COPY_{size}(to, from, there)"
        started += [
            f'{macro} asm volatile("cp.async.{past}.shared.global [%0], [%1], {size}, %2;" \\',
            f'    :: "r"((uint)(size_t)(to)), "l"(from), "r"((there) ? {size} : 0) : "memory")',
        ]
        source = f"*(const __global {vector}*)(from)"
        ordinary.append(f"{macro} *(__local {vector}*)(to) = (there) ? {source} : {c.zero(width)}")
    return fill(
        """
        // copy: so many bytes from global to local memory, or zeroes where nothing is there
        #if defined(__NV_CL_C_VERSION) // only started; COPIED() closes a batch, AWAIT(n) waits for all but the last n
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
    """Where an element of a tile is in local memory."""
    place = _swizzled if c.unit == "tensor" else _padded
    return ["// where an element of a tile is in local memory", place(c, "a"), place(c, "b")]


def _padded(c: Configuration, operand: str) -> str:
    """k comes first. The rows of a tile that is filled along k are longer (see `Configuration.row`)."""
    index = _index(operand)
    return f"#define {operand.upper()}_AT(k, {index}) ((k)*{_row(c, operand)} + ({index}))"


def _swizzled(c: Configuration, operand: str) -> str:
    """The tile lies as its matrix does in global memory.

    A fragment takes 4 steps of k of each of 8 rows (or columns), and the banks deliver several of these rows at a time.
    Their elements would lie in the same banks, so that they change places within their line of the tile.
    """
    index = _index(operand)
    at_once = BANKS_BYTES // PRECISIONS[c.precision].size  # elements that the banks deliver
    rows = at_once // _STEP  # and from so many rows
    if not c.along_k(operand):
        return f"#define {operand.upper()}_AT(k, {index}) ((k)*{_side(operand)} + (({index}) ^ (k)%4*{rows}))"
    apart = max(1, at_once // c.depth)  # rows that are in different banks as they lie
    turn = f"({index}){f'/{apart}' * (apart > 1)}%{rows // apart}*4"
    k = f"((k) ^ {turn})" if rows > apart else "(k)"
    return f"#define {operand.upper()}_AT(k, {index}) (({index})*TSK + {k})"


def _index(operand: str) -> str:
    return {"a": "m", "b": "n"}[operand]


def _side(operand: str) -> str:
    return f"TS{_index(operand).upper()}"


def _row(c: Configuration, operand: str) -> str:
    longer = c.row(operand) - c.side(operand)
    return f"({_side(operand)} + {longer})" if longer else _side(operand)


@writes
def load(c: Configuration, operand: str) -> Lines:
    """The function that starts the copies of a tile. Neighbouring work-items copy neighbours in global memory."""
    name, index, width = operand.upper(), _index(operand), c.width(operand)
    size, element = index.upper(), "(e + tid)" + f"*{width}" * (width > 1)
    run = "TSK" if c.along_k(operand) else _side(operand)
    along, across = f"{element}%{run};", f"{element}/{run};"
    i, k = (across, along) if c.along_k(operand) else (along, across)
    down, right = ("k0 + k", f"({index}0 + {index})") if c.along_k(operand) else (f"{index}0 + {index}", "(k0 + k)")
    inside = [f"{index}0 + {index} < {size}"] * c.guards(operand) + ["k0 + k < K"] * c.tail
    return fill(
        """
        // load: copy the tile of $name that begins with step k0
        void load_$operand(__local $number* tile, const __global $number* $name, const int ld$operand,
                    const int ${index}0, const int k0, const int $size, const int K)
        {
            const int tid = get_local_id(0);
            #pragma unroll
            for (int e = 0; e < TSK*$elements; e += ITEMS) {
                const int $index = $i // $what of the tile
                const int k = $k // step of k
                COPY_$bytes(&tile[${name}_AT(k, $index)], &$name[$right*ld$operand + $down], $there);
            }
        }
        """,
        name=name,
        operand=operand,
        number=c.type(),
        index=index,
        size=size,
        elements=_side(operand) + f"/{width}" * (width > 1),
        i=i,
        k=k,
        what="row" if operand == "a" else "column",
        bytes=width * PRECISIONS[c.precision].size,
        right=right,
        down=down,
        there=" && ".join(inside) or "1",
    )


@writes
def instruction() -> Lines:
    """The instruction of the tensor cores; elsewhere the work-items show each other their elements and add up."""
    return fill(
        """
        // multiply: add 16 x 4 elements of A times 4 x 8 of B to two rows and two columns of sums per work-item, which
        // gives the elements of step t: rows g and g + 8 of A, and column g of B; see the PTX manual, "mma"
        #if defined(__NV_CL_C_VERSION)
        #define MMA(sum, i, j, upper, lower, b) asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 " \\
            "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};" \\
            : "+d"(sum[j][i]), "+d"(sum[j + 1][i]), "+d"(sum[j][i + 1]), "+d"(sum[j + 1][i + 1]) \\
            : "d"(upper), "d"(lower), "d"(b))
        #else // the work-items of a warp show each other their elements
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
    )


@writes
def begin(c: Configuration) -> Lines:
    """Who am I; and what a work-group and a work-item keep."""
    # Neighbouring lanes share a row, and lanes two apart a column: then wide loads are served for a warp at once.
    g, t = ("lane/4", "lane%4") if c.unit == "tensor" else ("lane/2%8", "lane/16*2 + lane%2")
    return fill(
        """
        // identifiers
        const int lane = get_local_id(0)%32, warp = get_local_id(0)/32; // number in the warp, and of the warp
        const int g = $g;                    // row of the work-item in the warp, from 0 to 7
        const int t = $t;                    // its column, from 0 to 3
        const int wm = warp%(TSM/WM)*WM;         // first row of the warp's block in the tile of C
        const int wn = warp/(TSM/WM)*WN;         // first column of the warp's block

        // which tile: down a band of ORDER rows of tiles, then on to the next column of the band
        const int tile = get_group_id(1)*get_num_groups(0) + get_group_id(0), columns = get_num_groups(1);
        const int band = tile/(ORDER*columns)*ORDER;
        const int rows = min(ORDER, (int)get_num_groups(0) - band);
        const int m0 = (band + tile%(ORDER*columns)%rows)*TSM; // first row of the tile of C
        const int n0 = tile%(ORDER*columns)/rows*TSN;          // first column of the tile of C
        $beginnings
        $own_steps

        // local memory: a stage to compute from, and the others to fill
        __local $element Atile[STAGES][TSK*$row_a] __attribute__((aligned(128)));
        __local $element Btile[STAGES][TSK*$row_b] __attribute__((aligned(128)));
        $shown

        // accumulators
        $number $sums;
        for (int j = 0; j < WPTN; j++)
            for (int i = 0; i < WPTM; i++) $zeroes = $zero;
        """,
        g=g,
        t=t,
        beginnings=beginnings(c),
        own_steps=own_steps(c),
        element=c.type(),
        row_a=_row(c, "a"),
        row_b=_row(c, "b"),
        shown=_SHOWN if c.unit == "tensor" else [],
        number="double" if c.unit == "tensor" else c.type(),
        sums=", ".join(f"{name}[WPTN][WPTM]" for name in _sums(c)),
        zeroes=" = ".join(f"{name}[j][i]" for name in _sums(c)),
        zero="0.0" if c.unit == "tensor" else c.zero(),
    )


_SHOWN = ["#if !defined(__NV_CL_C_VERSION)", "__local double4 shown[ITEMS]; // what a warp multiplies", "#endif"]


def _sums(c: Configuration) -> tuple[str, ...]:
    """The names of the accumulators; those of tensor cores have the real and the imaginary parts apart."""
    return ("re", "im") if c.unit == "tensor" and c.parts == 2 else ("acc",)


@writes
def steps(c: Configuration) -> Lines:
    """The loop over k: while a work-item multiplies, fragments and tiles to come are on their way."""
    step = _STEP if c.unit == "tensor" else 1
    return fill(
        """
        // load: the first tiles
        for (int k0 = 0; k0 < (STAGES - 1)*TSK; k0 += TSK) {
            if (k0 < K) {
                $first
            }
            COPIED();
        }
        AWAIT(STAGES - 2);
        barrier(CLK_LOCAL_MEM_FENCE);

        // fragments: what this work-item multiplies now, and what it multiplies next
        $declared
        $fragments

        for (int k0 = 0, now = 0; k0 < K; k0 += TSK) { // now is the stage to compute from
            const int following = now + 1 < STAGES ? now + 1 : 0; // the stage after it
            const int last = now > 0 ? now - 1 : STAGES - 1; // the stage to fill, whose tiles nobody needs any more
            const int k1 = k0 + (STAGES - 1)*TSK;            // the first step of the tiles for it

            #pragma unroll
            for (int k = 0; k < TSK; k += $step) {
                const int of = k/$step%2, next = 1 - of; // which fragments to multiply, and which to fill
                const int ahead = (k + $step)%TSK; // the step to fill them for: at last the first of the next tiles
                const int stage = ahead > 0 || k0 + TSK >= K ? now : following; // in the end nobody needs them
                if (ahead == 0) {
                    // barrier: the next tiles are complete, and nobody needs these any more
                    AWAIT(STAGES - 2);
                    barrier(CLK_LOCAL_MEM_FENCE);
                }
                $ahead
                if (k == 0 && k1 < K) {
                    $more
                }
                if (k == 0) COPIED();
                $multiply
            }
            now = following;
        }
        """,
        first=_loads("k0/TSK", "k0"),
        declared=declared(c),
        fragments=fragments(c, "0", "0", "0"),
        step=step,
        ahead=fragments(c, "stage", "ahead", "next"),
        more=_loads("last", "k1"),
        multiply=multiply(c),
    )


@writes
def _loads(stage: str, k0: str) -> Lines:
    return [
        f"load_a(Atile[{stage}], A, lda, m0, {k0}, M, K);",
        f"load_b(Btile[{stage}], B, ldb, n0, {k0}, N, K);",
    ]


@writes
def declared(c: Configuration) -> Lines:
    """Fragments for two steps."""
    aligned = "" if c.unit == "tensor" else " __attribute__((aligned(16)))"
    return [f"{c.type()} a[2][WPTM]{aligned}, b[2][{_columns(c)}]{aligned};"]


def _columns(c: Configuration) -> str:
    """Elements of B in a fragment: the instruction takes one for every two columns of C."""
    return "WPTN/2" if c.unit == "tensor" else "WPTN"


@writes
def fragments(c: Configuration, stage: str, k: str, to: str) -> Lines:
    """Load what a work-item multiplies in a step, in vectors if it multiplies by itself.

    Without `volatile` the compiler would move these loads to where their values are needed.

    Args:
        stage: from which stage, as C.
        k: the step in its tiles, as C.
        to: 0 or 1, which of the fragments to fill, as C.
    """
    if c.unit == "tensor":
        t = "t" if k == "0" else f"{k} + t"
        width, a, b = 1, f"A_AT({t}, wm + i*8 + g)", f"B_AT({t}, wn + j*8 + g)"
    else:
        width = c.neighbours
        lane = f"*{width}" * (width > 1)
        a, b = f"A_AT({k}, wm + i*8 + g{lane})", f"B_AT({k}, wn + j*4 + t{lane})"
    up = f" += {width}" if width > 1 else "++"
    return fill(
        """
        for (int i = 0; i < WPTM; i$up) {
            $a_here = *(const volatile __local $vector*)&Atile[$stage][$a];
        }
        for (int j = 0; j < $columns; j$up) {
            $b_here = *(const volatile __local $vector*)&Btile[$stage][$b];
        }
        """,
        vector=c.type(width),
        up=up,
        stage=stage,
        a=a,
        b=b,
        a_here=_as(c, f"a[{to}][i]", width),
        b_here=_as(c, f"b[{to}][j]", width),
        columns=_columns(c),
    )


def _as(c: Configuration, element: str, width: int) -> str:
    """An element and its neighbours as a vector."""
    return f"*({c.type(width)}*)&{element}" if width > 1 else element


@writes
def multiply(c: Configuration) -> Lines:
    """The multiply-adds of a step."""
    if c.unit == "tensor":
        return _by_tensor_cores(c)
    if c.parts == 2:
        return _by_parts(c)
    return fill(
        """
        for (int j = 0; j < WPTN; j++) {
            for (int i = 0; i < WPTM; i++) {
                acc[j][i] += a[of][i]*b[of][j];
            }
        }
        """
    )


def _signs(c: Configuration) -> tuple[int, int]:
    """The signs that the imaginary parts of A and B get."""
    return -1 if c.conjugates("a") else 1, -1 if c.conjugates("b") else 1


@writes
def _by_parts(c: Configuration) -> Lines:
    """Complex numbers: each part of a number of B, real or imaginary, meets all rows before the next part does.

    Registers are read from two banks, and a multiply-add takes another cycle if its three operands lie in one of them.
    One that stays in its place need not be read again. And no sum waits for itself.
    """
    of_a, of_b = _signs(c)
    return fill(
        """
        for (int j = 0; j < WPTN; j++) {
            for (int i = 0; i < WPTM; i++) acc[j][i].x += a[of][i].x*b[of][j].x;
            for (int i = 0; i < WPTM; i++) acc[j][i].y $yx= a[of][i].y*b[of][j].x;
            for (int i = WPTM - 1; i >= 0; i--) acc[j][i].x $yy= a[of][i].y*b[of][j].y;
            for (int i = WPTM - 1; i >= 0; i--) acc[j][i].y $xy= a[of][i].x*b[of][j].y;
        }
        """,
        yx=_signed(of_a),
        yy=_signed(-of_a * of_b),
        xy=_signed(of_b),
    )


def _signed(sign: int) -> str:
    return "-" if sign < 0 else "+"


@writes
def _by_tensor_cores(c: Configuration) -> Lines:
    """Complex numbers take an instruction for each product of parts; signs conjugate.

    The two that add to the same sums are far apart, so that the second need not wait for the first.
    """
    if c.parts == 1:
        return _for_all_blocks(["MMA(acc, i, j, a[of][i], a[of][i + 1], b[of][j/2]);"])
    of_a, of_b = _signs(c)
    with_real = [_product("re", "x", "x", 1), _product("im", "x", "y", of_b)]
    with_imaginary = [_product("re", "y", "y", -of_a * of_b), _product("im", "y", "x", of_a)]
    return [*_for_all_blocks(with_real), *_for_all_blocks(with_imaginary)]


def _product(sums: str, of_a: str, of_b: str, sign: int) -> str:
    """Add (or subtract) the product of a part of A, "x" or "y", and one of B."""
    upper, lower = (f"{'-' * (sign < 0)}a[of][{i}].{of_a}" for i in ("i", "i + 1"))
    return f"MMA({sums}, i, j, {upper}, {lower}, b[of][j/2].{of_b});"


@writes
def _for_all_blocks(products: Lines) -> Lines:
    return fill(
        """
        for (int j = 0; j < WPTN; j += 2)
            for (int i = 0; i < WPTM; i += 2) {
                $products
            }
        """,
        products=products,
    )


@writes
def store(c: Configuration) -> Lines:
    """C = alpha sum + beta C0, element by element, where C has one."""
    inside = [f"{index} < {size}" for operand, index, size in ("amM", "bnN") if c.guards(operand)]
    sums = tuple(f"{name}[j][i]" for name in _sums(c))
    total = sums[0] if len(sums) == 1 else f"(double2)({', '.join(sums)})"
    m, n = _own(c)
    element = stored_together(c, "m", "n", inside) if c.stored > 1 else stored(c, total, "m", "n", inside)
    return fill(
        """
        $fix_up
        // store
        $factors
        for (int j = 0; j < WPTN; j++) {
            for (int i = 0; i < WPTM; i$up) {
                const int m = m0 + wm + $m;
                const int n = n0 + wn + $n;
                $element
            }
        }
        """,
        fix_up=fix_up(c, sums),
        factors=factors(c),
        up=f" += {c.stored}" if c.stored > 1 else "++",
        m=m,
        n=n,
        element=element,
    )


def _own(c: Configuration) -> tuple[str, str]:
    """Which row and column of its warp's block a work-item's element is."""
    if c.unit == "tensor":
        return "i*8 + g", "j/2*8 + t*2 + j%2"
    if c.neighbours == 1:
        return "i*8 + g", "j*4 + t"
    near = c.neighbours
    return f"i/{near}*{8 * near} + g*{near} + i%{near}", f"j/{near}*{4 * near} + t*{near} + j%{near}"
