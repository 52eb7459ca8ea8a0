"""The sums of a work-item, and what becomes of them: C = alpha A B + beta C0."""

from __future__ import annotations

from collections.abc import Sequence

from . import split_k
from .schedule import Schedule
from .text import Lines, fill, over, writes


def accumulator_names(s: Schedule) -> tuple[str, ...]:
    """One array of sums, or two where the parts of complex numbers are separate."""
    if s.element.components == 2 and s.is_tensor:
        return "re", "im"
    if s.element.components == 2 and s.scheme == "direct":
        return "acc_re", "acc_im"
    return ("acc",)


@writes
def accumulators(s: Schedule) -> Lines:
    """The sums of a work-item; without local memory they are vectors of neighbouring rows."""
    width = s.a.width if s.scheme == "direct" else 1
    number, zero = s.element.vector(width), s.element.zero(width)
    if s.is_tensor:
        number, zero = s.element.real, "0.0f" if s.element.real == "float" else "0.0"
    names = accumulator_names(s)
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
        arrays=", ".join(f"{name}[WPTN][{rows}]" for name in names),
        rows=rows,
        elements=" = ".join(f"{name}[j][i]" for name in names),
        zero=zero,
    )


@writes
def factors(s: Schedule) -> Lines:
    """Complex factors, which are passed as two numbers each."""
    if s.element.components == 1:
        return []
    number = s.element.vector()
    names = ("alpha", "beta") if s.beta else ("alpha",)
    return [f"const {number} {name} = ({number})({name}_re, {name}_im);" for name in names]


@writes
def store(s: Schedule) -> Lines:
    """C = alpha sum + beta C0, for the schemes with local memory."""
    sums = [f"{name}[j][i]" for name in accumulator_names(s)]
    total = sums[0] if len(sums) == 1 else f"({s.element.vector()})({', '.join(sums)})"
    conditions = [f"{x.index} < {x.size}" for x in s.operands if x.guarded]
    m, n = _coordinates(s)
    if s.store_width > 1 and s.element.half:
        return [*(split_k.fix_up(sums, total) if s.split_k > 1 else []), *store_tile(s)]
    element = store_element(s, total, "m", "n", conditions)
    if s.store_width > 1:
        element = store_vector(s, conditions)
    return fill(
        """
        $fix_up
        // store
        $factors
        for (int j = 0; j < WPTN; j++) {
            for (int i = 0; i < WPTM; i$next) {
                const int m = $m;
                const int n = $n;
                $element
            }
        }
        """,
        fix_up=[*split_k.fix_up(sums, total), ""] if s.split_k > 1 else [],
        factors=factors(s),
        next=f" += {s.store_width}" if s.store_width > 1 else "++",
        m=m,
        n=n,
        element=element,
    )


def _coordinates(s: Schedule) -> tuple[str, str]:
    """Row and column in C, in C, of a work-item's sum in row i and column j."""
    width = s.fragment
    if s.scheme == "items":
        return "m0 + tm + i*RTSM", "n0 + tn + j*RTSN"
    if s.is_tensor:
        return "m0 + wm + i*8 + g", "n0 + wn + j/2*8 + t*2 + j%2"
    if width == 1:
        return "m0 + wm + i*8 + g", "n0 + wn + j*4 + t"
    m = f"i/{width}*{8 * width} + g*{width} + i%{width}"
    n = f"j/{width}*{4 * width} + t*{width} + j%{width}"
    return f"m0 + wm + {m}", f"n0 + wn + {n}"


@writes
def store_element(s: Schedule, total: str, m: str, n: str, conditions: Sequence[str]) -> Lines:
    """C(m, n) = alpha total + beta C0(m, n), if the conditions hold; sums m and n in brackets."""
    row = m.strip("()")
    element = f"C[offset_out + {n}*ldc + {row}]" if s.submatrix else f"C[{n}*M + {row}]"
    before = f"C0[offset_c + {m}*down + {n}*across]"
    if s.element.components == 1 and not s.element.half:
        added = f" + beta*{before}" if s.beta else ""
        return _if(conditions, [f"{element} = alpha*{total}{added};"])
    lines = []
    value = f"alpha*{total}" if s.element.half else f"product(alpha, {total})"
    if s.beta:
        before = s.element.loaded_result(before)
        lines.append(f"const {s.element.vector()} before = {before};")
        value += " + beta*before" if s.element.half else " + product(beta, before)"
    return _if(conditions, [*lines, s.element.stores(value, element)])


@writes
def store_vector(s: Schedule, conditions: Sequence[str]) -> Lines:
    """C(m, n) and the rows below it, each alpha times its sum, in one store."""
    vector = s.element.vector(s.store_width)
    sums = [f"acc[j][i + {row}]" if row else "acc[j][i]" for row in range(s.store_width)]
    values = f"alpha*({vector})({', '.join(sums)})"
    if s.element.components == 2:
        values = f"({vector})({', '.join(f'product(alpha, {each})' for each in sums)})"
    return _if(conditions, [f"*(__global {vector}*)&C[n*M + m] = {values};"])


@writes
def store_tile(s: Schedule) -> Lines:
    """C = alpha sum through local memory, as many columns at a time as there is room for, so that
    neighbours store neighbours. Without the swizzle the sums of a warp would be in the same banks.
    """
    width, result = s.store_width, s.element.stored_result
    room = s.stages * s.depth * s.element.size // s.element.result.itemsize
    columns = min(s.tile[1], room)
    swizzle = f"({{}})/2%{min(8, s.tile[0] // width)}*{width}"
    vector = "ushort8" if result == "half" else "float4"
    m, n = (place[len("m0 + ") :] for place in _coordinates(s))  # in the tile
    at = f"(n - n1)*TSM + (m ^ {swizzle.format('n')})"
    store = f"stage[{at}] = alpha*acc[j][i];"
    if result == "half":
        store = f"vstore_half(alpha*acc[j][i], {at}, stage);"
    conditions = [f"{x.index} < {x.size}" for x in s.operands if x.guarded]
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
        m=m,
        n=n,
        store=store,
        width=width,
        copy=_if(
            conditions,
            [
                f"*(__global {vector}*)&C[n*M + m] =",
                f"    *(const __local {vector}*)&stage[j*TSM + (i ^ {swizzle.format('n1 + j')})];",
            ],
        ),
    )


def _if(conditions: Sequence[str], lines: Lines) -> Lines:
    if not conditions:
        return lines
    return [f"if ({' && '.join(conditions)}) {{", *(f"    {line}" for line in lines), "}"]
