"""Fit the constants of `gemmlab.generate.candidates` to a record of candidates, and judge them.

    python tools/fit.py results/nvidia_h200_candidates.json results/choice.json

The logarithm of a predicted time over the measured one is made small by least squares ("soft L1":
large errors count less). Each text gets constants that are drawn a little towards usual ones, in
case its record is short.
"""

from __future__ import annotations

from collections import defaultdict
from math import log
from pathlib import Path
from statistics import geometric_mean
from typing import Any, NamedTuple

import common
import numpy as np
from record_candidates import text_of, texts
from scipy.optimize import least_squares

from gemmlab import files
from gemmlab.cli import output_file
from gemmlab.generate.candidates import (
    IMPLIED,
    Constants,
    FittedChip,
    Setting,
    Sizes,
    Work,
    kind_of,
    seconds,
    work,
)
from gemmlab.ladder import find
from gemmlab.measurement import records
from gemmlab.model.chip import H200, occupancy

#: Registers of a work-item for addresses and counters, besides accumulators and operands, where the
#: compiler did not report the number.
OTHER_REGISTERS = 40
#: Bytes of local memory that each work-group needs beside its own.
LOCAL_EXTRA = 1024
#: Where the fit of a text begins, in seconds: to start, per tile, per step of the loop, per step of
#: k, per operation of a compute unit, to cut a tile, per part and element of the tile.
BEGIN = (4e-6, 1e-6, 2e-7, 5e-9, 2.5e-12, 1.5e-6, 1e-10)
#: Seconds of a launch besides that of the kernel: what copying a small matrix takes in the record.
LAUNCH = 8e-6
#: Bytes of operands or of a result from which a product shows the memory's bandwidth.
MUCH = 2**25
#: Seconds per byte where no product shows it.
BYTE = 3e-13
#: Texts from which the choice is made.
TEXTS = 50
#: What a shape counts that none of them supports.
UNSUPPORTED = 0.05
#: An error of this size, as a logarithm, counts as large.
LARGE = 0.1


class Timed(NamedTuple):
    """A candidate that was timed; `best` are the seconds of the best candidate at that shape."""

    setting: Setting
    sizes: Sizes
    work: Work
    seconds: float
    best: float


def timed(record: dict[str, Any]) -> list[Timed]:
    """All candidates of a record."""
    choices = [(name, tuple(params.items())) for name, params in record["kernels"]]
    rows = []
    for shape in record["shapes"]:
        m, n, k = shape["sizes"]
        for precision in (one for one in IMPLIED if one in shape):
            runs = shape[precision]["runs"]
            best = min((least for _, least, *_ in runs), default=0.0)
            for number, least, *_ in runs:
                one = choices[number]
                does = work(one, (m, n, k))
                rows.append(Timed(one, (m, n, k), does, 1e-6 * least, 1e-6 * best))
    return rows


def reported(record: dict[str, Any]) -> dict[Setting, int]:
    """Registers per work-item of each text, as the compiler reported them."""
    return {
        (name, tuple(params.items())): count for name, params, count in record.get("registers", [])
    }


def resident(text: Setting, registers: dict[Setting, int]) -> int:
    """How many work-groups of a text a compute unit holds at the same time."""
    spec, p = find(text[0]), find(text[0]).complete(dict(text[1]))
    items, _ = spec.local_size(p)
    down = p.get("WPTM") or p.get("WM", 8) // 8
    across = p.get("WPTN") or p.get("WN", 32) // 4
    estimate = min(255, down * across + 2 * (down + across) + OTHER_REGISTERS)
    per_item, local_memory = registers.get(text, estimate), spec.local_memory(p) + LOCAL_EXTRA
    return max(1, min(occupancy(H200, items, per_item, local_memory).values()))


# Fitting


def fit(
    rows: list[Timed], units: int, registers: dict[Setting, int]
) -> tuple[FittedChip, dict[Setting, Constants]]:
    """The constants of a chip, and of each text among the rows; see `reported` for `registers`."""
    read = min((r.seconds / r.work.read for r in rows if r.work.read > MUCH), default=BYTE)
    write = min((r.seconds / r.work.written for r in rows if r.work.written > MUCH), default=BYTE)
    chip = FittedChip(read, write, LAUNCH, units)  # nothing beats the best rates that were seen
    groups: dict[Setting, list[Timed]] = defaultdict(list)
    for row in rows:
        groups[text_of(row.setting)].append(row)
    return chip, {
        text: fit_text(own, usual_constants(text, resident(text, registers)), chip)
        for text, own in groups.items()
    }


def fit_text(rows: list[Timed], usual: Constants, chip: FittedChip) -> Constants:
    """The constants of a text, drawn towards the usual ones."""
    *seconds_of_each, held = usual
    start = np.log(seconds_of_each)

    def errors(x: np.ndarray) -> np.ndarray:
        own = Constants._make([*np.exp(x).tolist(), held])
        measured = [log(seconds(row.work, own, chip) / row.seconds) for row in rows]
        return np.concatenate([measured, LARGE * (x - start)])

    found = least_squares(errors, start, loss="soft_l1", f_scale=LARGE, max_nfev=30)
    return Constants._make([*np.exp(found.x).tolist(), held])


def usual_constants(text: Setting, held: int) -> Constants:
    """The constants of a text that follow from the size of its tile."""
    rows, columns, depth = find(text[0]).tiles(dict(text[1]))
    start, tile, step, deep, flop, cut, part = BEGIN
    operations = 2 * rows * columns * depth
    return Constants(
        start, tile, step + deep * depth, flop * operations, cut, part * rows * columns, held
    )


# What is written


def kept(rows: list[Timed]) -> set[Setting]:
    """Texts among which every recorded shape finds a good one: one after another, that which most
    improves the geometric mean over all shapes. With all texts nearly every shape would have to
    wait for the compiler.
    """
    found: set[Setting] = set()
    # by text, then by shape and precision: the part of the best rate
    offered: dict[Setting, dict[tuple, float]] = defaultdict(dict)
    for row in rows:
        at, parts = (row.sizes, dict(row.setting[1]).get("PARTS")), offered[text_of(row.setting)]
        parts[at] = max(row.best / row.seconds, parts.get(at, 0.0))
    reached = dict.fromkeys({at for parts in offered.values() for at in parts}, UNSUPPORTED)

    def gain(text: Setting) -> float:
        return sum(log(max(1.0, part / reached[at])) for at, part in offered[text].items())

    for _ in range(TEXTS):
        best = max(offered, key=gain)
        if gain(best) <= 0:
            break
        found.add(best)
        reached |= {at: max(part, reached[at]) for at, part in offered[best].items()}
    return found


def constants(record: dict[str, Any]) -> dict[str, Any]:
    """What is written of a device, in nanoseconds."""
    rows, units = timed(record), record["device"]["units"]
    registers = reported(record)
    (chip, fitted), best = fit(rows, units, registers), kept(rows)
    groups = {text: number for precision in IMPLIED for text, number in texts(precision).items()}
    return {
        **record["device"],
        "date": record["date"],
        "commands": [common.command()],
        "chip": {
            name: nanoseconds(value) for name, value in chip._asdict().items() if name != "units"
        },
        "check": range_check(record),
        "texts": [
            [
                text[0],
                dict(text[1]),
                [*map(nanoseconds, own[:-1])],
                [*groups.get(text, ())],
                own.resident,
            ]
            for text, own in fitted.items()
            if text in best
        ],
        "held_out": judged(rows, units, registers),
    }


def range_check(record: dict[str, Any]) -> list[float]:
    """Nanoseconds of the range check for TF32: start, each element, host between two."""
    if "range_call_us" not in record:
        return []  # no tensor cores
    elements, looks = np.array(record["range_us"]).T
    element, start = np.polyfit(elements, looks * 1e3, 1, w=1 / looks)
    host = 1e3 * record["range_call_us"] - start
    return [nanoseconds(1e-9 * value) for value in (start, element, host)]


def nanoseconds(value: float) -> float:
    return common.short(1e9 * value)


def judged(
    rows: list[Timed], units: int, registers: dict[Setting, int], folds: int = 4
) -> dict[str, float]:
    """How good the choice is at shapes that were left out of the fit: over all shapes in float32,
    the best recorded time divided by that of the chosen candidate, as geometric "mean", "share"
    above 0.9 and "least".
    """
    order = (
        np.random.default_rng(0).permutation([*dict.fromkeys(row.sizes for row in rows)]).tolist()
    )
    ratios = []
    for fold in range(folds):
        left_out: dict[Sizes, list] = {(m, n, k): [] for m, n, k in order[fold::folds]}
        others = [row for row in rows if row.sizes not in left_out]
        (chip, fitted), best = fit(others, units, registers), kept(others)
        for row in rows:
            text = text_of(row.setting)
            if row.sizes in left_out and not find(text[0]).tensor and text in best:
                predicted = seconds(row.work, fitted[text], chip)
                left_out[row.sizes].append((predicted, row.best / row.seconds))
        ratios += [min(offered)[1] for offered in left_out.values() if offered]
    mean, share = geometric_mean(ratios), float(np.mean(np.array(ratios) > 0.9))
    judgement = {"shapes": len(ratios), "mean": mean, "share": share, "least": min(ratios)}
    return {name: round(value, 3) for name, value in judgement.items()}


def main(arguments: list[str] | None = None) -> None:
    parser = common.parser(__doc__)
    parser.add_argument("record", type=Path, help="of candidates, by `record_candidates.py`")
    words = "such as results/choice.json; other devices stay"
    parser.add_argument("table", type=output_file, help=words)
    given = parser.parse_args(arguments)
    table = files.load_json(given.table, dict)
    record = files.load_json(given.record, dict)
    fitted = constants(record)
    table.setdefault(kind_of(record["device"]["platform"]), {})["model"] = fitted
    records.write(given.table, table)
    print(f"wrote {given.table}; at shapes that were left out of the fit: {fitted['held_out']}")


if __name__ == "__main__":
    common.run(main)
