"""The parts of a kernel without local memory, as kernel 11 of the ladder: from global memory into registers.

A work-item computes neighbouring rows, and keeps them as vectors. For complex numbers a vector holds real and
imaginary parts in turn. Multiplying it by a complex b would have to exchange them in each step of k; so there are two
sums instead, of a re(b) and of a im(b), and they are put together once, in `store`.

Where sizes do not fit the micro-tiles, the last ones are moved back until they lie inside the matrix (kernel 13), and
only elements that no other work-item owns are stored.
"""

from __future__ import annotations

from .configuration import PRECISIONS, Configuration
from .shared import beginnings, factors, stored
from .text import Lines, fill, writes


def requirements(c: Configuration) -> str:
    """What the kernel asks of the sizes."""
    words = {True: "at least", False: "a multiple of"}
    return f"M {words[c.guards('a')]} WPTM and N {words[c.guards('b')]} WPTN; any K"


def _width(c: Configuration) -> int:
    """Real numbers in a vector."""
    return c.widths[0] * c.parts


def _sums(c: Configuration) -> tuple[str, ...]:
    """The names of the accumulators."""
    return ("acc",) if c.parts == 1 else ("acc_re", "acc_im")


@writes
def begin(c: Configuration) -> Lines:
    """Who am I, and what a work-item keeps."""
    vector, zero = c.type(c.widths[0]), c.zero(c.widths[0])
    return fill(
        """
        // identifiers
        $place
        $beginnings

        // accumulators: neighbouring rows as vectors
        $sums
        for (int j = 0; j < WPTN; j++) {
            for (int i = 0; i < WPTM/$width; i++) {
                $zeroes
            }
        }
        """,
        place=[*_place(c, "a", "m", "M", 0), *_place(c, "b", "n", "N", 1)],
        beginnings=beginnings(c),
        sums=[f"{vector} {name}[WPTN][WPTM/{c.widths[0]}];" for name in _sums(c)],
        width=c.widths[0],
        zeroes=[f"{name}[j][i] = {zero};" for name in _sums(c)],
    )


@writes
def _place(c: Configuration, operand: str, index: str, size: str, dimension: int) -> Lines:
    what, part = {"a": "row", "b": "column"}[operand], f"WPT{size}"
    first = f"get_global_id({dimension})*{part};"
    if not c.guards(operand):
        return [f"const int {index} = {first} // first {what} of C"]
    return [
        f"const int own_{index} = {first} // first {what} of C",
        f"const int {index} = min(own_{index}, {size} - {part}); // the same, inside the matrix",
    ]


@writes
def steps(c: Configuration) -> Lines:
    """The loop over k: a few vectors of A, and each element of B for all of them."""
    element = "B[(n + j)*ldb + k]" if c.along_k("b") else "B[k*ldb + n + j]"
    products = ["acc[j][i] += a[i]*b;"] if c.parts == 1 else ["acc_re[j][i] += a[i]*b.x;", "acc_im[j][i] += a[i]*b.y;"]
    return fill(
        """
        for (int k = 0; k < K; k++) {
            // load
            $vector a[WPTM/$width];
            #pragma unroll
            for (int i = 0; i < WPTM/$width; i++) {
                $load
            }

            // compute
            #pragma unroll
            for (int j = 0; j < WPTN; j++) {
                const $number b = $element;
                #pragma unroll
                for (int i = 0; i < WPTM/$width; i++) {
                    $products
                }
            }
        }
        """,
        vector=c.type(c.widths[0]),
        width=c.widths[0],
        load=load(c),
        number=c.type(),
        element=element,
        products=products,
    )


@writes
def load(c: Configuration) -> Lines:
    """A vector of neighbouring rows of A: one load, or one for each row if they are no neighbours in memory."""
    width, real = c.widths[0], PRECISIONS[c.precision].real
    if not c.along_k("a"):
        first = f"&A[k*lda + m + i*{width}]"
        pointer = first if c.parts == 1 else f"(const __global {real}*){first}"
        return [f"a[i] = vload{_width(c)}(0, {pointer});"]
    start = f"a[i] = ({c.type(width)})("
    elements = [f"A[(m + i*{width}{f' + {row}' * (row > 0)})*lda + k]" for row in range(width)]
    lines = [f"{' ' * len(start)}{element}," for element in elements]
    return [start + lines[0].lstrip(), *lines[1:-1], lines[-1].removesuffix(",") + ");"]


@writes
def store(c: Configuration) -> Lines:
    """C = alpha acc + beta C0, element by element, once for each element."""
    real, width = PRECISIONS[c.precision].real, _width(c)
    owned = [f"{index} + {offset} >= own_{index}" for operand, index, offset in ("ami", "bnj") if c.guards(operand)]
    return fill(
        """
        // store
        $factors
        for (int j = 0; j < WPTN; j++) {
            $arrays
            for (int i = 0; i < WPTM/$elements; i++) {
                $out
            }
            for (int i = 0; i < WPTM; i++) {
                $joined
                $element
            }
        }
        """,
        factors=factors(c),
        arrays=[f"{real} {name}[WPTM{'*2' * (c.parts == 2)}]; // the vectors, number by number" for name in _ends(c)],
        elements=c.widths[0],
        out=[f"vstore{width}({a}[j][i], i, {end});" for a, end in zip(_sums(c), _ends(c), strict=True)],
        joined=joined(c),
        element=stored(c, "sums[i]" if c.parts == 1 else "sum", "(m + i)", "(n + j)", owned),
    )


def _ends(c: Configuration) -> tuple[str, ...]:
    """The names of the accumulators, number by number."""
    return ("sums",) if c.parts == 1 else ("re", "im")


@writes
def joined(c: Configuration) -> Lines:
    """The two sums of complex numbers as one. Signs conjugate: that of im(a) in both, that of im(b) in the second."""
    if c.parts == 1:
        return []
    of_a, of_b = (-1 if c.conjugates(operand) else 1 for operand in "ab")
    sign = {1: "+", -1: "-"}
    first = f"re[2*i] {sign[-of_a * of_b]} im[2*i + 1]"
    second = f"{'-' * (of_a < 0)}re[2*i + 1] {sign[of_b]} im[2*i]"
    return [f"const {c.type()} sum = ({c.type()})({first}, {second});"]
