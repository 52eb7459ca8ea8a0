"""The sums of a work-item, and what becomes of them: C = alpha A B + beta C0."""

from __future__ import annotations

from collections.abc import Sequence

from . import split_k
from .schedule import Schedule
from .text import Lines, fill, indented, over


def accumulators(s: Schedule) -> Lines:
    """Write the sums of a work-item; without local memory they are vectors of neighbouring rows."""
    width = s.a.width if s.scheme == "direct" else 1
    number, zero = s.element.vector(width), s.element.zero(width)
    if s.is_tensor:
        number, zero = s.element.real, "0.0f" if s.element.real == "float" else "0.0"
    rows = over("WPTM", width)
    return fill(
        """
        // accumulators
        $number $arrays;
        for (int j = 0; j < WPTN; j++) {
            for (int i = 0; i < $rows; i++) {
                $elements = $zero;
            }
        }
        """,
        number=number,
        arrays=", ".join(f"{name}[WPTN][{rows}]" for name in _names(s)),
        rows=rows,
        elements=" = ".join(f"{name}[j][i]" for name in _names(s)),
        zero=zero,
    )


def multiply_adds(s: Schedule, of: str = "") -> Lines:
    """Write each element of a fragment of A times each of B. Conjugation changes signs, which costs
    no instruction.

    In a warp, one component of a complex number of B is multiplied by all rows before the next one.
    Registers are read from two banks, and a multiply-add takes another cycle if its three operands
    are in one bank. An operand that stays in its slot is not read again. Neighbouring multiply-adds
    add to different sums, so that none waits for the one before.
    """
    total, a, b = "acc[j][i]", f"a{of}[i]", f"b{of}[j]"
    up, down = "for (int i = 0; i < WPTM; i++)", "for (int i = WPTM - 1; i >= 0; i--)"
    adds = [f"{total} += {a}*{b};"]
    if s.element.components == 2:
        adds = [
            f"{total}.x += {a}.x*{b}.x;",
            f"{total}.y {s.signs['yx']}= {a}.y*{b}.x;",
            f"{total}.x {s.signs['yy']}= {a}.y*{b}.y;",
            f"{total}.y {s.signs['xy']}= {a}.x*{b}.y;",
        ]
    rows = [f"{up} {{", *indented(adds), "}"]
    if s.unit == "warps" and s.element.components == 2:
        rows = [f"{loop} {add}" for loop, add in zip((up, up, down, down), adds, strict=True)]
    return ["for (int j = 0; j < WPTN; j++) {", *indented(rows), "}"]


def store(s: Schedule) -> Lines:
    """Write C = alpha sum + beta C0. Without local memory the sums are vectors: `_numbers`
    first.
    """
    sums = [f"{name}[j][i]" for name in _names(s)]
    total = sums[0] if len(sums) == 1 else f"({s.element.vector()})({', '.join(sums)})"
    fix_up = split_k.fix_up(sums, total) if s.split_k > 1 else []
    conditions = [f"{x.index} < {x.size}" for x in s.operands if x.guarded]
    m, n = _coordinates(s)
    if s.store_width > 1 and s.element.half:
        return [*fix_up, *_store_tile(s, conditions, m, n)]
    numbers: Lines = []
    if s.scheme == "direct":
        numbers, total = _numbers(s), "sums[i]"
        conditions = [f"{x.index} >= own_{x.index}" for x in s.operands if x.guarded]
    factors = []
    if s.element.components == 2:
        number, names = s.element.vector(), ("alpha", "beta") if s.beta else ("alpha",)
        factors = [f"const {number} {f} = ({number})({f}_re, {f}_im);" for f in names]
    return fill(
        """
        $fix_up
        // store
        $factors
        for (int j = 0; j < WPTN; j++) {
            $numbers
            for (int i = 0; i < WPTM; i$next) {
                const int m = $m;
                const int n = $n;
                $element
            }
        }
        """,
        fix_up=[*fix_up, ""] if fix_up else [],
        factors=factors,
        numbers=numbers,
        next=f" += {s.store_width}" if s.store_width > 1 else "++",
        m=m,
        n=n,
        element=_if(conditions, _store_vector(s) if s.store_width > 1 else _store_one(s, total)),
    )


def _names(s: Schedule) -> tuple[str, ...]:
    """Return one array of sums, or two where the parts of complex numbers are separate."""
    separate = s.element.components == 2 and (s.is_tensor or s.scheme == "direct")
    return ("re", "im") if separate else ("acc",)


def _coordinates(s: Schedule) -> tuple[str, str]:
    """Return row and column in C, in C, of a work-item's sum in row i and column j."""
    width = s.fragment
    if s.scheme == "direct":
        return "m0 + i", "n0 + j"
    if s.scheme == "items":
        return "m0 + tm + i*RTSM", "n0 + tn + j*RTSN"
    if s.is_tensor:
        return "m0 + wm + i*8 + g", "n0 + wn + j/2*8 + t*2 + j%2"
    if width == 1:
        return "m0 + wm + i*8 + g", "n0 + wn + j*4 + t"
    m = f"i/{width}*{8 * width} + g*{width} + i%{width}"
    n = f"j/{width}*{4 * width} + t*{width} + j%{width}"
    return f"m0 + wm + {m}", f"n0 + wn + {n}"


def _numbers(s: Schedule) -> Lines:
    """Write a column's sums, taken from vectors. The two of a complex number are combined;
    conjugation changes signs.
    """
    vector, is_real = s.element.vector(s.a.width), s.element.components == 1
    minus = "-" if s.a.conjugated else ""
    combined = [
        f"{vector} sum;",
        f"sum.even = re[j][i].even {s.signs['yy']} im[j][i].odd;",
        f"sum.odd = {minus}re[j][i].odd {s.signs['xy']} im[j][i].even;",
    ]
    return fill(
        """
        $number sums[WPTM];
        for (int i = 0; i < $vectors; i++) {
            $combined
            vstore$width($sum, i, $sums);
        }
        """,
        number=s.element.vector(),
        vectors=over("WPTM", s.a.width),
        combined=[] if is_real else combined,
        width=s.a.width * s.element.components,
        sum="acc[j][i]" if is_real else "sum",
        sums="sums" if is_real else f"({s.element.real}*)sums",
    )


def _store_one(s: Schedule, total: str) -> Lines:
    """Write C(m, n) = alpha total + beta C0(m, n)."""
    element, long = _element(s), "(long)" * s.wide
    before = f"C0[offset_c + {long}m*down + {long}n*across]"
    if s.element.components == 1 and not s.element.half:
        added = f" + beta*{before}" if s.beta else ""
        return [f"{element} = alpha*{total}{added};"]
    times = "{}*{}" if s.element.half else "product({}, {})"
    converts = s.element.stored_result == "half"
    lines, value = [], times.format("alpha", total)
    if s.beta:
        before = f"vload_half(0, &{before})" if converts else before
        lines = [f"const {s.element.vector()} before = {before};"]
        value += " + " + times.format("beta", "before")
    return [
        *lines,
        f"vstore_half({value}, 0, &{element});" if converts else f"{element} = {value};",
    ]


def _element(s: Schedule) -> str:
    """Return C(m, n)."""
    n = "(long)n" if s.wide else "n"
    return f"C[offset_out + {n}*ldc + m]" if s.submatrix else f"C[{n}*M + m]"


def _store_vector(s: Schedule) -> Lines:
    """Write C(m, n) and the rows below it, each alpha times its sum, in one store."""
    vector = s.element.vector(s.store_width)
    sums = [f"acc[j][i + {row}]" if row else "acc[j][i]" for row in range(s.store_width)]
    values = f"alpha*({vector})({', '.join(sums)})"
    if s.element.components == 2:
        values = f"({vector})({', '.join(f'product(alpha, {each})' for each in sums)})"
    return [f"*(__global {vector}*)&{_element(s)} = {values};"]


def _store_tile(s: Schedule, conditions: Sequence[str], m: str, n: str) -> Lines:
    """Write C = alpha sum through local memory, as many columns at a time as there is room for, so
    that neighbours store neighbours. Without the swizzle the sums of a warp would be in the same
    banks.
    """
    width, result = s.store_width, s.element.stored_result
    room = s.stages * s.depth * s.element.size // s.element.result.itemsize
    columns = min(s.tile[1], room)
    swizzle = f"({{}})/2%{min(8, s.tile[0] // width)}*{width}"
    vector = "ushort8" if result == "half" else "float4"
    at = f"(n - n1)*TSM + (m ^ {swizzle.format('n')})"
    store = f"stage[{at}] = alpha*acc[j][i];"
    if result == "half":
        store = f"vstore_half(alpha*acc[j][i], {at}, stage);"
    copy = [
        f"*(__global {vector}*)&{_element(s)} =",
        f"    *(const __local {vector}*)&stage[j*TSM + (i ^ {swizzle.format('n1 + j')})];",
    ]
    return fill(
        """
        // store: the sums into local memory, $columns columns of the tile at a time
        __local $result* stage = (__local $result*)Atile;
        #pragma unroll
        for (int n1 = 0; n1 < TSN; n1 += $columns) {
            // barrier: what was in this memory is no longer needed
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int j = 0; j < WPTN; j++) {
                for (int i = 0; i < WPTM; i++) {
                    const int m = $m;
                    const int n = $n;
                    if (wn + j/2*8 >= n1 && wn + j/2*8 < n1 + $columns) {
                        $store
                    }
                }
            }
            // barrier: these columns are complete
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int e = get_local_id(0); e < min($columns, TSN - n1)*(TSM/$width); e += ITEMS) {
                const int i = e%(TSM/$width)*$width, j = e/(TSM/$width); // row and column of these
                const int m = m0 + i, n = n0 + n1 + j;
                $copy
            }
        }
        """,
        columns=columns,
        result=result,
        m=m.removeprefix("m0 + "),  # in the tile
        n=n.removeprefix("n0 + "),
        store=store,
        width=width,
        copy=_if(conditions, copy),
    )


def _if(conditions: Sequence[str], lines: Lines) -> Lines:
    return [f"if ({' && '.join(conditions)}) {{", *indented(lines), "}"] if conditions else lines
