"""The scheme "direct": from global memory straight into registers, as in kernel 11 of the ladder.

A work-item computes neighbouring rows and keeps them as vectors. For complex numbers these
alternate real and imaginary parts. Multiplying them by a complex b would have to exchange the parts
in each step of k. So there are two sums instead, of a re(b) and of a im(b), which `store` combines.

Where sizes do not fit the micro-tiles, the last ones are moved back into the matrix (kernel 13),
and each element is stored only by the work-item that owns it.
"""

from __future__ import annotations

from .epilogue import accumulator_names, factors, store_element
from .schedule import Schedule
from .text import Lines, fill, over, writes


@writes
def identifiers(s: Schedule) -> Lines:
    """Where the work-item's micro-tile begins."""
    lines = ["// identifiers"]
    for x, what, dimension in ((s.a, "row", 0), (s.b, "column", 1)):
        first = f"get_global_id({dimension})*WPT{x.size}; // first {what} of C"
        if x.guarded:
            inside = f"min(own_{x.index}, {x.size} - WPT{x.size})"
            lines.append(f"const int own_{x.index} = {first}")
            lines.append(f"const int {x.index} = {inside}; // the same, inside the matrix")
        else:
            lines.append(f"const int {x.index} = {first}")
    return lines


def local_memory(s: Schedule) -> Lines:
    return []


@writes
def main_loop(s: Schedule) -> Lines:
    """The loop over k: vectors of A, and each element of B for all of them."""
    multiply_adds = ["acc[j][i] += a[i]*b;"]
    if s.element.components == 2:
        multiply_adds = ["acc_re[j][i] += a[i]*b.x;", "acc_im[j][i] += a[i]*b.y;"]
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
        vector=s.element.vector(s.a.width),
        vectors=over("WPTM", s.a.width),
        load=load_rows(s),
        number=s.element.vector(),
        element=s.element.loaded(s.b.element("n + j", "k")),
        multiply_adds=multiply_adds,
    )


@writes
def load_rows(s: Schedule) -> Lines:
    """A vector of neighbouring rows of A: one load, or one for each row if they are far apart."""
    width = s.a.width
    if s.a.k_contiguous:
        rows = [f"m + i*{width} + {row}" if row else f"m + i*{width}" for row in range(width)]
        *others, last = [s.element.loaded(s.a.element(row, "k")) for row in rows]
        return [
            f"a[i] = ({s.element.vector(width)})(",
            *(f"    {element}," for element in others),
            f"    {last});",
        ]
    pointer = "&" + s.a.element(f"m + i*{width}", "k")
    if s.element.components == 2:
        pointer = f"(const __global {s.element.real}*){pointer}"
    vload = "vload_half" if s.element.half else "vload"
    return [f"a[i] = {vload}{width * s.element.components}(0, {pointer});"]


@writes
def store(s: Schedule) -> Lines:
    """C = alpha acc + beta C0, element by element, once for each element."""
    real_sums = s.element.components == 1
    arrays = ["sums"] if real_sums else ["re", "im"]  # the accumulators, number by number
    length = "WPTM" if real_sums else "WPTM*2"
    vstore = f"vstore{s.a.width * s.element.components}"
    names = zip(accumulator_names(s), arrays, strict=True)
    owned = [
        f"{x.index} + {offset} >= own_{x.index}"
        for x, offset in ((s.a, "i"), (s.b, "j"))
        if x.guarded
    ]
    return fill(
        """
        // store
        $factors
        for (int j = 0; j < WPTN; j++) {
            $arrays
            for (int i = 0; i < $vectors; i++) {
                $numbers
            }
            for (int i = 0; i < WPTM; i++) {
                $sum
                $element
            }
        }
        """,
        factors=factors(s),
        arrays=[f"{s.element.real} {array}[{length}];" for array in arrays],
        vectors=over("WPTM", s.a.width),
        numbers=[f"{vstore}({name}[j][i], i, {array});" for name, array in names],
        sum=[] if real_sums else complex_sum(s),
        element=store_element(s, "sums[i]" if real_sums else "sum", "(m + i)", "(n + j)", owned),
    )


@writes
def complex_sum(s: Schedule) -> Lines:
    """The two sums of complex numbers combined; signs conjugate."""
    minus = "-" if s.a.conjugated else ""
    re = f"re[2*i] {s.signs.yy} im[2*i + 1]"
    im = f"{minus}re[2*i + 1] {s.signs.xy} im[2*i]"
    return [f"const {s.element.vector()} sum = ({s.element.vector()})({re}, {im});"]
