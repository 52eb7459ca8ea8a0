"""The facts that sentences and tables mention, each from one row of results/, rounded by one rule.

A chapter's text has {{rate 6}} where its notebook has "36 TFLOPS"; README and docs have
<!-- fact rate 6 -->36 TFLOPS<!-- / -->. Rates have two digits, or are whole; shares are whole per
cents. Rates are those of the bare kernel on an H200 at 4096 x 4096 x 4096, if not said otherwise.

    rate K, tflops K        the rate of a kernel, with and without its unit
    share K, cublas K       that rate in per cent of the peak, and of cuBLAS SGEMM's
    times J -> K            how many times as fast K is as J; gain J -> K: the same as "4 %"
    roof K, roof-rate K     the lowest ceiling, with turns and instructions as the chip counted them
    bound K                 the lowest ceiling of the model, as a panel shows it
    turns K, instructions K turns of local memory, and instructions, per multiply-add, as counted,
                            with two digits after the point
    slots K WHAT            (K may have a change, as "6 vectors")
                            per cent of a scheduler's cycles with "adds", "others", or "empty", or
                            empty because of "global", "local", or "barriers", these three
                            together, "waits", or "dispatch" stalls
    tensor K                per cent of the cycles in which the tensor cores work
    error K                 the error at K = 4096, relative to the product
    cpu K RUNTIME           the rate on two cores of an AMD EPYC at 512, with "pocl" or "intel"

K is the number of a kernel, cuBLAS, swapped (kernel 1 with swapped indices), loop (of multiply-adds
only), peak, or a variant that was recorded without a part, as "15 without vectors", or as
"beyond: GROUPS=0, 2560" where only one record is meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import floor, log10

from gemmlab import model
from gemmlab.measurement import records, rungs

from . import cycles, waterfall

LIBRARY = "cuBLAS SGEMM"
#: The recorded CPUs by the short names in a text, and the size of their facts.
RUNTIMES, CPU_SIZE = {"pocl": "cpu_pocl", "intel": "cpu_intel"}, 512


def fact(name: str) -> str:
    """Return a fact in words, such as "36 TFLOPS" for "rate 6"; see above for the others.

    Raises:
        KeyError: if there is no such fact.
    """
    kind, _, what = name.partition(" ")
    if kind not in _KINDS:
        raise KeyError(f"there is no fact {name!r}")
    return _KINDS[kind](what)


def fill(text: str) -> str:
    """Put facts in the place of their names: {{rate 6}}, <!-- fact rate 6 -->...<!-- / -->."""
    text = re.sub(r"\{\{(.+?)\}\}", lambda match: fact(match[1]), text)
    marked = r"(<!-- fact (.+?) -->).*?(<!-- / -->)"
    return re.sub(marked, lambda match: match[1] + fact(match[2]) + match[3], text)


def two(value: float) -> str:
    """A positive number with two digits, or whole: "0.50", "6.4", "36", "110"."""
    return f"{value:.{max(0, 1 - floor(log10(value)))}f}"


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def roof(kernel: int) -> float:
    """The share of the peak that the lowest ceiling of a kernel allows, as the chip counted it."""
    return cycles.counted(rungs.rung(kernel)).roof.share


def _gflops(who: str) -> float:
    record, colon, title = who.partition(": ")
    if colon:
        return waterfall.variants(record)[title].gflops
    match who:
        case "cuBLAS":
            return waterfall.variants()[LIBRARY].gflops
        case "swapped":
            return records.variants(series="swapped identifiers", size=4096)["swapped"].gflops
        case "loop":
            (row,) = records.rows(record="nvidia_h200", metric="peak GFLOPS")
            return row.median
        case "peak":
            return model.H200.gflops
    if not who.isdigit():
        return waterfall.variants()[who].gflops
    kernel = int(who)
    recorded = rungs.rates()
    return recorded[kernel] if kernel in recorded else waterfall.by_kernel()[kernel][0].gflops


def _tflops(who: str) -> str:
    return two(_gflops(who) / 1000)


def _ratio(pair: str) -> float:
    before, _, after = pair.partition(" -> ")
    return _gflops(after) / _gflops(before)


def _slots(what: str) -> str:
    who, _, part = what.rpartition(" ")
    kernel, _, change = who.partition(" ")
    shares = cycles.counts(int(kernel), change).shares
    adds, others, local, distant, barriers, dispatch, _ = shares.values()
    parts = {
        "adds": adds,
        "others": others,
        "empty": sum(shares.values()) - adds - others,
        "local": local,
        "global": distant,
        "barriers": barriers,
        "waits": local + distant + barriers,
        "dispatch": dispatch,
    }
    return percent(parts[part] / 100)


def _error(who: str) -> str:
    if who == "cuBLAS":
        where = {"series": "errors", "kernel": LIBRARY, "variant": "normal", "size": 4096}
        (row,) = records.rows(**where)
        return f"{row.median:.1e}".replace("e-0", "e-")
    return f"{waterfall.errors(who)[4096]:.1e}".replace("e-0", "e-")


def _cpu(what: str) -> str:
    kernel, runtime = what.split()
    where = {"record": RUNTIMES[runtime], "kernel": int(kernel), "size": CPU_SIZE}
    row, *_ = records.rows(series="ladder", metric="GFLOPS", **where)
    return f"{two(row.gflops)} GFLOPS"


_KINDS: dict[str, Callable[[str], str]] = {
    "rate": lambda who: f"{_tflops(who)} TFLOPS",
    "tflops": _tflops,
    "share": lambda who: percent(_gflops(who) / model.H200.gflops),
    "cublas": lambda who: percent(_gflops(who) / _gflops("cuBLAS")),
    "times": lambda pair: two(_ratio(pair)),
    "gain": lambda pair: percent(_ratio(pair) - 1),
    "roof": lambda who: percent(roof(int(who))),
    "bound": lambda who: percent(model.ceilings(int(who), fewest=True)[0].share),
    "roof-rate": lambda who: f"{two(roof(int(who)) * model.H200.gflops / 1000)} TFLOPS",
    "turns": lambda who: f"{cycles.turns(int(who)):.2f}",
    "instructions": lambda who: f"{cycles.instructions(int(who)):.2f}",
    "slots": _slots,
    "tensor": lambda who: percent(cycles.counts(int(who)).totals["tensor_pipe"] / 100),
    "error": _error,
    "cpu": _cpu,
}
