"""Writes the kernel of a schedule: a function for each of its `parts`, in the order of the text.

`tools`, `identifiers`, `local_memory` and `main_loop` depend on the scheme: `items` stages tiles in
local memory, `direct` loads straight into registers, in `warps` work-items share compact blocks,
and in `warpgroups` four warps multiply by one instruction.
Every function takes the schedule and returns lines of C.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from . import direct, epilogue, items, split_k, warpgroups, warps
from .schedule import Schedule
from .text import Lines, Text, fill, indented

Writer = Callable[[Schedule], Lines]
_SCHEMES: dict[str, ModuleType] = {
    "items": items,
    "direct": direct,
    "warps": warps,
    "warpgroups": warpgroups,
}
_BODY = ("identifiers", "pointers", "local_memory", "accumulators", "main_loop", "store")


def write(schedule: Schedule, **instead: Writer) -> Text:
    """Return the OpenCL C text of a kernel named ``gemm`` that does what the schedule says and no
    more; `instead` are functions of your own for some `parts`, such as ``store=mine``.

    Raises:
        TypeError: for a part that no text has.
    """
    unknown = sorted(instead.keys() - parts(schedule).keys())
    if unknown:
        own = ", ".join(parts(schedule))
        raise TypeError(f"a text has the parts {own}, but not {', '.join(unknown)}")
    lines: Lines = []
    writers: list[str] = []
    for name, function in (parts(schedule) | instead).items():
        part = function(schedule)
        part = indented(part) if name in _BODY else part
        if part and name not in ("signature", "identifiers", "store"):
            part = [*part, ""]
        lines += part
        writers += [f"{function.__module__.rpartition('.')[2]}.{function.__name__}"] * len(part)
    text = Text("\n".join([*lines, "}\n"]))
    text.writers = (*writers, writers[-1])
    return text


def parts(s: Schedule) -> dict[str, Writer]:
    """Return the functions that write the parts of a text, by the parts' names."""
    scheme = _SCHEMES[s.scheme]
    writers = {
        "header": header,
        "parameters": parameters,
        "tools": getattr(scheme, "tools", None),
        "arithmetic": arithmetic,
        "signature": signature,
        "identifiers": scheme.identifiers,
        "pointers": pointers,
        "local_memory": getattr(scheme, "local_memory", None),
        "accumulators": epilogue.accumulators,
        "main_loop": scheme.main_loop,
        "store": epilogue.store,
    }
    return {name: function for name, function in writers.items() if function}


def header(s: Schedule) -> Lines:
    """Write what the kernel computes, what it costs, and what it requires."""
    op = {"N": "{0}", "T": "{0}^T", "C": "{0}^H", "R": "conj({0})"}
    product = f"{op[s.trans_a].format('A')} {op[s.trans_b].format('B')}"
    added = " + beta C0" if s.beta else ""
    each = " for each pair of a batch" if s.batch else ""
    kind = f"complex numbers of two {s.element.real}s"
    if s.element.components == 1:
        kind = "halves, in sums of floats" if s.element.half else f"{s.element.real}s"
    a = "M x K" if s.trans_a in "NR" else "K x M"
    b = "K x N" if s.trans_b in "NR" else "N x K"
    costs = ["1/WPTM + 1/WPTN global loads per multiply-add"]
    if s.stages:
        costs = [
            f"{s.local_memory:,} bytes of local memory; per multiply-add 1/TSM + 1/TSN",
            f"global loads and {'1/WM + 1/WN' if s.is_tensor else '1/WPTM + 1/WPTN'} local loads",
        ]
    about = {
        "Computes": [
            f"C = alpha {product}{added}{each}, of {kind};",
            f"A is {a} and B is {b}, all matrices column-major",
        ],
        "Costs": costs,
        "Requires": _requirements(s) or ["nothing of M, N and K"],
    }
    lines = [f"// {s.name}", "//"]
    for title, (first, *others) in about.items():
        lines += [f"// {title + ':':9} {first}", *(f"//           {other}" for other in others)]
    return lines


def _requirements(s: Schedule) -> list[str]:
    if s.scheme == "direct":
        bound = {True: "at least", False: "a multiple of"}
        return [f"{x.size} {bound[x.guarded]} WPT{x.size}" for x in s.operands]
    guarded = {"M": s.a.guarded, "N": s.b.guarded, "K": s.tail}
    requirements = [f"{size} a multiple of TS{size}" for size in guarded if not guarded[size]]
    for x in s.operands:
        if x.width > 1:
            run = "K" if x.k_contiguous else x.size
            what = f"offset_{x.name.lower()}, {x.ld} and {run} multiples of {x.width}"
            zeros = f" (or zeros in {x.name} up to one)" if s.copies and s.element.half else ""
            requirements.append(what + zeros)
    if s.store_width > 1:
        requirements.append(f"M a multiple of {s.store_width}")
    return requirements


def parameters(s: Schedule) -> Lines:
    """Write the numbers of the schedule, with the names of the ladder, and what follows from
    them.
    """
    macros = {
        "TSM": (s.tile[0], "rows of the tile of C"),
        "TSN": (s.tile[1], "columns of the tile of C"),
        "TSK": (s.depth, "depth of the tiles of A and B, in steps of k"),
        "UNROLL": (s.unroll, "steps of k that the compiler unrolls"),
        "STAGES": (s.stages, "tiles of A and B in local memory: one in use, others being filled"),
        "WPTM": (s.micro_tile[0], "rows of C per work-item"),
        "WPTN": (s.micro_tile[1], "columns of C per work-item"),
        "SHARES": (s.split_k, "work-groups per tile, each with some of the steps of k"),
        "ORDER": (8, "rows of tiles in a band that neighbouring work-groups compute together"),
        "RTSM": ("(TSM/WPTM)", "rows of work-items in a work-group"),
        "RTSN": ("(TSN/WPTN)", "columns of work-items in a work-group"),
        "WM": ("(8*WPTM)", "rows of a warp's block of C"),
        "WN": ("(4*WPTN)", "columns of a warp's block of C"),
        "ITEMS": ("(TSM/WPTM*(TSN/WPTN))", "work-items in a work-group"),
    }
    lines = []
    for name in _MACROS[s.scheme].split():
        value, note = macros[name]
        if name != "SHARES" or s.split_k > 1:
            lines.append(f"#define {name} {value} // {note}")
    return lines


_MACROS = {
    "items": "TSM TSN TSK UNROLL WPTM WPTN RTSM RTSN ITEMS",
    "direct": "TSM TSN WPTM WPTN RTSM RTSN",
    "warps": "TSM TSN TSK STAGES WPTM WPTN SHARES ORDER WM WN ITEMS",
    "warpgroups": "TSM TSN TSK STAGES WPTM WPTN SHARES ORDER WM WN ITEMS",
}


def arithmetic(s: Schedule) -> Lines:
    """Write the product of two complex numbers."""
    if s.element.components == 1:
        return []
    return fill(
        """
        // x y, of complex numbers: x.x and y.x are their real parts
        $number product(const $number x, const $number y)
        {
            return ($number)(x.x*y.x - x.y*y.y, x.x*y.y + x.y*y.x);
        }
        """,
        number=s.element.vector(),
    )


def signature(s: Schedule) -> Lines:
    """Write the arguments. Offsets, strides and leading dimensions count elements. A complex factor
    is passed as two real numbers, which every runtime passes alike.
    """
    number, result = s.element.vector(), s.element.stored_result
    k = "int K" if s.split_k > 1 else "const int K"
    factor = "const {0} {1},"
    if s.element.components == 2:
        factor = "const {0} {1}_re, const {0} {1}_im,"
    lines = [f"const int M, const int N, {k},", factor.format(s.element.real, "alpha")]
    for x in s.operands:
        offset = f"const long offset_{x.name.lower()}"
        pointer = f"const __global {s.element.stored}* restrict {x.name}"
        lines.append(f"{pointer}, {offset}, const int {x.ld},")
    if s.beta:  # C0 may be C, or any view of a matrix
        strides = "const int down, const int across"
        lines.append(factor.format(s.element.real, "beta"))
        lines.append(f"const __global {result}* C0, const long offset_c, {strides},")
    if s.batch:
        lines.append("const long first, const long step_a, const long step_b,")
    if s.split_k > 1:
        lines.append(f"__global {number}* pieces, __global int* arrived,")  # the workspace
    place = ", const long offset_out, const int ldc" if s.submatrix else ""
    shape = "ITEMS, 1" if s.copies else "RTSM, RTSN"
    return [
        f"__kernel __attribute__((reqd_work_group_size({shape}, 1)))",
        "void gemm(",
        *indented([*lines, f"__global {result}* C{place})"]),
        "{",
    ]


def pointers(s: Schedule) -> Lines:
    """Write where the matrices begin: of a batch those of the work-group's pair."""
    if s.batch:
        return [
            "const long pair = get_group_id(2);  // which pair of matrices of this launch",
            "A += offset_a + pair*step_a;",
            "B += offset_b + pair*step_b;",
            "C += (first + pair)*M*N;",
        ]
    lines = ["A += offset_a;", "B += offset_b;"]
    return [*lines, *split_k.own_steps(s)] if s.split_k > 1 else lines
