"""Writes the kernel of a configuration: one function for each idea, in the order in which the text shows them.

    header      what the kernel computes, costs and requires
    parameters  the numbers of the configuration, by the names that the ladder uses
    arithmetic  how complex numbers are multiplied
    signature   the kernel's arguments
    begin       identifiers, local memory, accumulators
    steps       the loop over k: load, barrier, compute, barrier; with two stages, load ahead
    load        a tile of A or of B, from global into local memory
    compute     the multiply-adds of a tile
    store       alpha, beta, and what of C exists

A kernel without local memory has a `begin`, `steps` and `store` of its own, in `direct`, and so has one of warps, in
`warps`; what work-groups need that share a tile is in `shares`. Every function takes the configuration and returns
lines; a decision about the configuration is made in one of them. `origins` says for each line of a text which function
wrote it.
"""

from __future__ import annotations

from collections.abc import Callable

from ..caches import cached
from . import direct, shares, warps
from .configuration import PRECISIONS, Configuration
from .shared import beginnings, factors, stored
from .text import Lines, Text, fill, writes


def write(configuration: Configuration, **instead: Callable[[Configuration], Lines]) -> Text:
    """The OpenCL C text of a kernel named ``gemm`` that does what the configuration says, and nothing else.

    Its arguments are M, N, K; alpha; A, B, and with beta also C0, each with the place of its first element and the
    distance of its columns, in elements; and C, which has no gaps, or as a part of a larger matrix has both as well
    (see `signature`).

    Args:
        configuration: what is needed.
        instead: functions of your own that write a part, such as ``store=mine``; see `parts` for their names.

    Raises:
        TypeError: for a part that no text has.
    """
    if instead:
        return Text.of(_kernel(configuration, parts(configuration) | _known(instead)))
    return _written(configuration)


def origins(configuration: Configuration) -> tuple[str, ...]:
    """For each line of `write(configuration)` the function that wrote it, as "module.function" of this package."""
    return write(configuration).writers


def parts(c: Configuration) -> dict[str, Callable[[Configuration], Lines]]:
    """The functions that write the parts of a text, by the parts' names, from top to bottom."""
    room = _room(c)
    return {
        "header": header,
        "parameters": parameters,
        "arithmetic": arithmetic,
        "signature": signature,
        "begin": room.begin if room else begin,
        "steps": room.steps if room else (steps, steps_ahead)[c.stages - 1],
        "store": room.store if room else store,
    }


def _room(c: Configuration):
    """The module with parts of their own for kernels without local memory, and for those of warps; or None."""
    if c.unit != "items":
        return warps
    return None if c.stages else direct


def _known(instead: dict) -> dict:
    """The same, if a text has all these parts."""
    unknown = sorted(instead.keys() - parts(Configuration()))
    if unknown:
        raise TypeError(f"a text has the parts {', '.join(parts(Configuration()))}, but not {', '.join(unknown)}")
    return instead


@cached(512)
def _written(c: Configuration) -> Text:
    return Text.of(_kernel(c, parts(c)))


@writes
def _kernel(c: Configuration, functions: dict[str, Callable[[Configuration], Lines]]) -> Lines:
    return fill(
        """
        $header

        $parameters

        $arithmetic
        $signature
        {
            $begin

            $steps

            $store
        }
        """,
        **{name: function(c) for name, function in functions.items()},
    )


# What the configuration's words mean in C.


def _size(operand: str) -> str:
    """The name of the size of C that the operand shares: M for A, N for B."""
    return {"a": "M", "b": "N"}[operand]


def _buffer(c: Configuration, which: str) -> str:
    """The index of a buffer, where there are several."""
    return f"[{which}]" if c.stages == 2 else ""


def _read(c: Configuration, operand: str, step: str, place: str) -> str:
    """An element of the operand's tile in local memory."""
    name = operand.upper()
    if c.along_k(operand) or c.width(operand) == 1:
        return f"{name}tile{_buffer(c, 'now')}[{step}][{place}]"
    return f"{name}now[{step}*TS{_size(operand)} + {place}]"


# The parts of a text, from top to bottom.


@writes
def header(c: Configuration) -> Lines:
    """What the kernel computes, what it costs, and what it requires."""
    real = PRECISIONS[c.precision].real
    kind = f"complex numbers of two {real}s" if c.parts == 2 else f"{real}s"
    return fill(
        """
        // $name
        //
        // Computes: C = alpha $product$added$each, of $kind; every matrix is column-major.
        //           A is $a; B is $b.
        $costs
        $requires
        """,
        name=c.name,
        product=f"{_operand_in_words('A', c.a)} {_operand_in_words('B', c.b)}",
        added=" + beta C0" if c.beta else "",
        each=" for each pair of a batch" if c.batch else "",
        kind=kind,
        a="M x K" if c.a in "NR" else "K x M",
        b="K x N" if c.b in "NR" else "N x K",
        costs=_costs(c),
        requires=_requires(c),
    )


def _operand_in_words(name: str, operation: str) -> str:
    return {"N": name, "T": f"{name}^T", "C": f"{name}^H", "R": f"conj({name})"}[operation]


@writes
def _costs(c: Configuration) -> Lines:
    if c.stages == 0:
        return ["// Costs:    WPTM*WPTN accumulators; 1/WPTM + 1/WPTN global loads per multiply-add."]
    local = "1/WM + 1/WN" if c.unit == "tensor" else "1/WPTM + 1/WPTN"
    return [
        f"// Costs:    {c.local_memory:,} bytes of local memory, WPTM*WPTN accumulators; 1/TSM + 1/TSN global and",
        f"//           {local} local loads per multiply-add.",
    ]


@writes
def _requires(c: Configuration) -> Lines:
    if c.stages == 0:
        return [f"// Requires: {direct.requirements(c)}."]
    whole = [name for name, guarded in zip("MNK", (c.guards("a"), c.guards("b"), c.tail), strict=True) if not guarded]
    found = [f"{', '.join(whole)} multiples of {', '.join(f'TS{name}' for name in whole)}"] if whole else []
    for operand in "ab":
        if c.width(operand) > 1:
            run = "K" if c.along_k(operand) else _size(operand)
            found.append(f"offset_{operand}, ld{operand} and {run} multiples of {c.width(operand)}")
    if c.stored > 1:
        found.append(f"M a multiple of {c.stored}")
    first, *others = found or ["nothing of M, N and K"]
    lines = [f"// Requires: {first}", *(f"//           {other}" for other in others)]
    return [f"{line};" for line in lines[:-1]] + [f"{lines[-1]}."]


@writes
def parameters(c: Configuration) -> Lines:
    """The numbers of the configuration, by the names of the ladder."""
    (tsm, tsn), (wptm, wptn) = c.tile, c.micro_tile
    return fill(
        """
        #define TSM $tsm // rows of the tile of C
        #define TSN $tsn // columns of the tile of C
        $depth
        #define WPTM $wptm // rows of C a work-item computes
        #define WPTN $wptn // columns of C a work-item computes

        $shape
        $shares
        $items
        """,
        tsm=tsm,
        tsn=tsn,
        depth=_depth(c),
        wptm=wptm,
        wptn=wptn,
        shares=[f"#define SHARES {c.shares} // work-groups that share a tile, each with some of the steps of k"]
        if c.shares > 1
        else [],
        shape=_WARP if c.unit != "items" else _GROUP,
        items=["#define ITEMS (TSM/WPTM*(TSN/WPTN)) // work-items in a work-group"] if c.stages else [],
    )


_GROUP = [
    "#define RTSM (TSM/WPTM) // rows of work-items in a work-group",
    "#define RTSN (TSN/WPTN) // columns of work-items in a work-group",
]
_WARP = [
    "#define ORDER 8 // rows of tiles in a band that neighbouring work-groups go through together",
    "#define WM (8*WPTM) // rows of a warp's block of C",
    "#define WN (4*WPTN) // columns of a warp's block of C",
]


@writes
def _depth(c: Configuration) -> Lines:
    """How the steps of k are laid out."""
    depth = f"#define TSK {c.depth} // depth of the tiles of A and B, in steps of k"
    unroll = f"#define UNROLL {c.unroll} // steps of k that the compiler lays out in one turn of the loop"
    stages = f"#define STAGES {c.stages} // tiles of A and B in local memory: one in use, the others being filled"
    return [depth, stages if c.unit != "items" else unroll] if c.stages else []


@writes
def arithmetic(c: Configuration) -> Lines:
    """The functions for complex numbers. Without stages sums are kept in another form, and need no multiply-add."""
    own = warps.tools(c) if c.unit != "items" else []
    if c.parts == 1:
        return own
    sums = c.stages > 0 and c.unit == "items"
    return [*own, *product(c), "", *multiply_add(c), ""] if sums else [*own, *product(c), ""]


@writes
def product(c: Configuration) -> Lines:
    """The product of two complex numbers."""
    return fill(
        """
        // x y, of complex numbers: x.x and y.x are their real parts
        $number product(const $number x, const $number y)
        {
            return ($number)(x.x*y.x - x.y*y.y, x.x*y.y + x.y*y.x);
        }
        """,
        number=c.type(),
    )


@writes
def multiply_add(c: Configuration) -> Lines:
    """A multiply-add of complex numbers. Its signs conjugate, which costs no instruction."""
    of_a, of_b = (-1 if c.conjugates(operand) else 1 for operand in "ab")  # the sign of the imaginary part
    plus_or_minus = {1: "+", -1: "-"}
    return fill(
        """
        // sum + $a $b
        $number multiply_add(const $number a, const $number b, const $number sum)
        {
            const $real re = sum.x + a.x*b.x $yy a.y*b.y;
            const $real im = sum.y $xy a.x*b.y $yx a.y*b.x;
            return ($number)(re, im);
        }
        """,
        number=c.type(),
        real=PRECISIONS[c.precision].real,
        a="conj(a)" if of_a < 0 else "a",
        b="conj(b)" if of_b < 0 else "b",
        yy=plus_or_minus[-of_a * of_b],
        xy=plus_or_minus[of_b],
        yx=plus_or_minus[of_a],
    )


@writes
def signature(c: Configuration) -> Lines:
    """The arguments. A complex factor comes as two real numbers, which every runtime passes alike."""
    return fill(
        """
        __kernel __attribute__((reqd_work_group_size($shape, 1)))
        void gemm(const int M, const int N, $depth,
                  $alpha
                  const __global $number* restrict A, const long offset_a, const int lda,
                  const __global $number* restrict B, const long offset_b, const int ldb,
                  $added
                  $batch
                  $workspace
                  __global $number* C$place)
        """,
        shape="RTSM, RTSN" if c.unit == "items" else "ITEMS, 1",
        alpha=_factor(c, "alpha"),
        added=_added(c),
        batch=["const long first, const long step_a, const long step_b,"] if c.batch else [],
        depth="int K" if c.shares > 1 else "const int K",
        workspace=shares.arguments(c),
        place=", const long offset_out, const int ldc" * c.part,
        number=c.type(),
    )


@writes
def _factor(c: Configuration, name: str) -> Lines:
    real = PRECISIONS[c.precision].real
    parts = (f"{name}_re", f"{name}_im") if c.parts == 2 else (name,)
    return [", ".join(f"const {real} {part}" for part in parts) + ","]


@writes
def _added(c: Configuration) -> Lines:
    """The matrix that beta multiplies: it may be C itself, or any view, transposed views included."""
    if not c.beta:
        return []
    return fill(
        """
        $beta
        const __global $number* C0, const long offset_c, const int down, const int across,
        """,
        beta=_factor(c, "beta"),
        number=c.type(),
    )


@writes
def begin(c: Configuration) -> Lines:
    """Who am I; and what a work-group and a work-item keep."""
    return fill(
        """
        // identifiers
        const int tm = get_local_id(0);     // first row in the tile of C
        const int tn = get_local_id(1);     // first column in the tile of C
        const int tid = tn*RTSM + tm;       // number of the work-item
        const int m0 = get_group_id(0)*TSM; // first row of the tile of C
        const int n0 = get_group_id(1)*TSN; // first column of the tile of C
        $beginnings

        $local

        // accumulators
        $number acc[WPTN][WPTM];
        for (int j = 0; j < WPTN; j++) {
            for (int i = 0; i < WPTM; i++) {
                acc[j][i] = $zero;
            }
        }
        """,
        beginnings=beginnings(c),
        local=local_memory(c),
        number=c.type(),
        zero=c.zero(),
    )


@writes
def local_memory(c: Configuration) -> Lines:
    """The tiles. One that is filled along k has longer rows, against bank conflicts (see `Configuration.row`)."""
    note = ": two buffers of each, one to compute from and one to fill" if c.stages == 2 else ""
    lines = [f"// local memory{note}"]
    for operand in "ab":
        width = 1 if c.along_k(operand) else c.width(operand)
        row = f"TS{_size(operand)}"
        row += f" + {c.row(operand) - c.side(operand)}" if c.along_k(operand) else f"/{width}" * (width > 1)
        shape = "[2]" * (c.stages == 2) + f"[TSK][{row}]"
        lines.append(f"__local {c.type(width)} {operand.upper()}tile{shape};")
    return lines


@writes
def steps(c: Configuration) -> Lines:
    """The loop over k: what is loaded is used before more is loaded."""
    return fill(
        """
        for (int k0 = 0; k0 < K; k0 += TSK) {
            $load

            // barrier: the tiles are complete
            barrier(CLK_LOCAL_MEM_FENCE);

            $compute

            // barrier: nobody needs the tiles any more
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        """,
        load=["// load: the tiles", *load(c, "a", "", "k0"), *load(c, "b", "", "k0")],
        compute=compute(c),
    )


@writes
def steps_ahead(c: Configuration) -> Lines:
    """The loop over k with two buffers: the next tiles are on their way while these are multiplied."""
    return fill(
        """
        // load: the first tiles
        $first

        int now = 0;                        // the buffer to compute from
        for (int k0 = 0; k0 < K; k0 += TSK) {
            const int next = 1 - now;       // the buffer to fill
            const int k1 = k0 + TSK;        // first step of the next tiles

            // barrier: these tiles are complete, and nobody needs the other buffer any more
            barrier(CLK_LOCAL_MEM_FENCE);

            // load: the next tiles into the other buffer, while we compute
            if (k1 < K) {
                $more
            }

            $compute

            now = next;
        }
        """,
        first=[*load(c, "a", "0", "0"), *load(c, "b", "0", "0")],
        more=[*load(c, "a", "next", "k1"), *load(c, "b", "next", "k1")],
        compute=compute(c),
    )


@writes
def load(c: Configuration, operand: str, buffer: str, k0: str) -> Lines:
    """One tile, from global into local memory; zero where the matrix has ended.

    Neighbouring work-items load neighbouring elements: down a column of the tile of A, or along k.

    Args:
        operand: "a" or "b".
        buffer: which buffer to fill, where there are two.
        k0: the first step of k, as C.
    """
    name, side, size, width = operand.upper(), f"TS{_size(operand)}", _size(operand), c.width(operand)
    place = {"a": "m0 + i", "b": "n0 + i"}[operand]
    step = "j" if k0 == "0" else f"{k0} + j"
    run = "TSK" if c.along_k(operand) else side  # how many elements of the tile are neighbours in memory
    loads = f"({run}/{width})" if width > 1 else run
    along, across = f"(e + tid)%{loads}" + f"*{width}" * (width > 1), f"(e + tid)/{loads}"
    if c.along_k(operand):
        i, j, index = across, along, f"({place})*ld{operand} + {step}"
    else:
        i, j, index = along, across, f"{step if k0 == '0' else f'({step})'}*ld{operand} + {place}"
    element = f"{name}[{index}]" if width == 1 else f"*(const __global {c.type(width)}*)&{name}[{index}]"
    inside = [f"{place} < {size}"] * c.guards(operand) + [f"{step} < K"] * c.tail
    columns = max(len(i), len(j)) + 1
    return fill(
        """
        for (int e = 0; e < TSK*$elements; e += ITEMS) {
            const int i = $i // $what of the tile
            const int j = $j // step of k
            $guard
            $store
        }
        """,
        elements=side + f"/{width}" * (width > 1),
        i=f"{i};".ljust(columns),
        j=f"{j};".ljust(columns),
        what="row" if operand == "a" else "column",
        guard=[f"const int there = {' && '.join(inside)};"] if inside else [],
        store=keep(c, operand, buffer, f"there ? {element} : {c.zero(width)}" if inside else element),
    )


@writes
def keep(c: Configuration, operand: str, buffer: str, value: str) -> Lines:
    """Put what was loaded into local memory; a vector along k is taken apart, one element for each step."""
    tile, width = f"{operand.upper()}tile{_buffer(c, buffer)}", c.width(operand)
    if width == 1:
        return [f"{tile}[j][i] = {value};"]
    if not c.along_k(operand):
        return [f"{tile}[j][i/{width}] = {value};"]
    lines = [f"const {c.type(width)} x = {value};"]
    for step in range(width):
        numbers = "".join(f"{number:x}" for number in range(step * c.parts, (step + 1) * c.parts))
        lines.append(f"{tile}[j{f' + {step}' * (step > 0)}][i] = x.s{numbers};")
    return lines


@writes
def compute(c: Configuration) -> Lines:
    """The multiply-adds of a tile: each element is loaded once into a register, and used for a row or a column."""
    product = "acc[j][i] += a[i]*b[j];" if c.parts == 1 else "acc[j][i] = multiply_add(a[i], b[j], acc[j][i]);"
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
                    $product
                }
            }
        }
        """,
        views=views(c),
        number=c.type(),
        a=_read(c, "a", "k", "tm + i*RTSM"),
        b=_read(c, "b", "k", "tn + j*RTSN"),
        product=product,
    )


@writes
def views(c: Configuration) -> Lines:
    """A tile that was stored as vectors is read element by element."""
    return [
        f"const __local {c.type()}* {name}now = (const __local {c.type()}*){name}tile{_buffer(c, 'now')};"
        for name in "AB"
        if c.width(name.lower()) > 1 and not c.along_k(name.lower())
    ]


@writes
def store(c: Configuration) -> Lines:
    """C = alpha acc + beta C0, element by element, where C has one."""
    inside = [f"{index} < {size}" for operand, index, size in ("amM", "bnN") if c.guards(operand)]
    return fill(
        """
        // store
        $factors
        for (int j = 0; j < WPTN; j++) {
            for (int i = 0; i < WPTM; i++) {
                const int m = m0 + tm + i*RTSM;
                const int n = n0 + tn + j*RTSN;
                $element
            }
        }
        """,
        factors=factors(c),
        element=stored(c, "acc[j][i]", "m", "n", inside),
    )
