"""The scheme "direct": from global memory straight into registers, as in kernel 11 of the ladder.

A work-item computes neighbouring rows and keeps them as vectors. For complex numbers these
alternate real and imaginary parts. Multiplying them by a complex b would exchange the parts in each
step of k. So there are two sums instead, of a re(b) and of a im(b), which the store
combines.

Where sizes do not fit the micro-tiles, the last ones are moved back into the matrix (kernel 13),
and each element is stored only by the work-item that owns it.
"""

from __future__ import annotations

from .schedule import Schedule
from .text import Lines, fill, over


def identifiers(s: Schedule) -> Lines:
    """Write where the work-item's micro-tile begins."""
    lines = ["// identifiers"]
    for dimension, x in enumerate(s.operands):
        i, first = x.index, f"get_global_id({dimension})*WPT{x.size}; // first {x.what} of C"
        if x.guarded:
            lines.append(f"const int own_{i} = {first}")
            first = f"min(own_{i}, {x.size} - WPT{x.size}); // the same, inside the matrix"
        lines.append(f"const int {i}0 = {first}")
    return lines


def main_loop(s: Schedule) -> Lines:
    """Write the loop over k: vectors of A, and each element of B for all of them."""
    width, components = s.a.width, s.element.components
    multiply_adds = ["acc[j][i] += a[i]*b;"]
    if components == 2:
        multiply_adds = ["re[j][i] += a[i]*b.x;", "im[j][i] += a[i]*b.y;"]
    first = f"m0 + i*{width}"
    if s.a.k_contiguous:  # the rows of a vector are far apart: a load for each
        rows = [f"{first} + {row}" if row else first for row in range(width)]
        loads = [s.element.loaded(s.a.element(row, "k")) for row in rows]
        before = [f"    {load}," for load in loads[:-1]]
        load = [f"a[i] = ({s.element.vector(width)})(", *before, f"    {loads[-1]});"]
    else:
        cast = f"(const __global {s.element.real}*)" if components == 2 else ""
        vload = "vload_half" if s.element.half else "vload"
        load = [f"a[i] = {vload}{width * components}(0, {cast}&{s.a.element(first, 'k')});"]
    return fill(
        """
        for (int k = 0; k < K; k++) {
            // load
            $vector a[$vectors];
            #pragma unroll
            for (int i = 0; i < $vectors; i++) {
                $load
            }

            // compute
            #pragma unroll
            for (int j = 0; j < WPTN; j++) {
                const $number b = $element;
                #pragma unroll
                for (int i = 0; i < $vectors; i++) {
                    $multiply_adds
                }
            }
        }
        """,
        vector=s.element.vector(width),
        vectors=over("WPTM", width),
        load=load,
        number=s.element.vector(),
        element=s.element.loaded(s.b.element("n0 + j", "k")),
        multiply_adds=multiply_adds,
    )
