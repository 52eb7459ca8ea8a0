"""Fit the constants of `gemmlab.generate.cost` to a record of candidates, and judge them.

    python tools/fit.py results/nvidia_h200_candidates.json results/choice.json

The logarithm of a predicted time over the measured one is made small by least squares ("soft L1":
large errors count less). Candidates far from the best count less, too: only the order of good ones
matters. All texts are fitted together first; then each text gets its own constants, drawn towards
the common ones where its record is short.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cache
from math import log
from pathlib import Path
from statistics import geometric_mean
from typing import Any, NamedTuple

import common
import numpy as np
from record_candidates import PROMISED, SQUARES, THIN, groups_of, text_of

from gemmlab import files
from gemmlab.catalog import find
from gemmlab.cli import output_file
from gemmlab.generate.cost import Chip, Constants, Work, seconds, sharing, work
from gemmlab.generate.table import Choice, Sizes, kind_of
from gemmlab.measurement import records

#: Registers of a compute unit, of 32 bits: NVIDIA's since 2012.
REGISTERS = 65536
#: Registers of a work-item for addresses and counters, besides accumulators and operands.
OTHER_REGISTERS = 40
#: Bytes of local memory of a compute unit.
LOCAL_BYTES = 220 * 1024
#: Work-items of a compute unit.
ITEMS = 2048
#: Where the common fit begins, in seconds: to start, per tile, per step of the loop, per step of k,
#: per operation of a compute unit, to cut a tile, per part and element of the tile; per launch.
BEGIN = (4e-6, 1e-6, 2e-7, 5e-9, 2.5e-12, 1.5e-6, 1e-10, 4e-6)
#: Of these, how many are a text's and not the chip's.
OF_TEXTS = 7
#: Bytes of operands or of a result from which a product shows the memory's bandwidth.
MUCH = 2**25
#: Seconds per byte where no product shows it.
BYTE = 3e-13
#: Pairs of a text and a way to share its work from which the choice is made.
PRECOMPILED = 64
#: What a shape counts that none of them supports.
UNSUPPORTED = 0.05
#: How strongly a text's constants are drawn to the common ones, in shapes.
DRAWN = 2.0
#: An error of this size, as a logarithm, counts as large.
LARGE = 0.1

Errors = Callable[[np.ndarray], np.ndarray]


class Timed(NamedTuple):
    """A candidate that was timed; `best` are the seconds of the best candidate at that shape."""

    choice: Choice
    sizes: Sizes
    work: Work
    seconds: float
    best: float

    def error(self, predicted: float) -> float:
        """The logarithm of a prediction over the measured time; good candidates weigh more.

        A bad candidate that is predicted to be good counts as a good one.
        """
        weight = self.best / max(self.best, min(self.seconds, predicted))
        return weight * log(predicted / self.seconds)


def timed(record: dict[str, Any], shapes: Iterable[int] | None = None) -> list[Timed]:
    """All candidates of a record, or those of some of its shapes."""
    choices = [(name, tuple(params.items())) for name, params in record["kernels"]]
    rows = []
    for i in range(len(record["shapes"])) if shapes is None else shapes:
        shape = record["shapes"][i]
        m, n, k = shape["sizes"]
        for precision in ("float32", "tf32", "tf32x3"):
            runs = shape.get(precision, {}).get("runs", [])
            best = 1e-6 * min((least for _, least, *_ in runs), default=0.0)
            for number, least, *_ in runs:
                does = work(choices[number], (m, n, k), resident(choices[number]))
                rows.append(Timed(choices[number], (m, n, k), does, 1e-6 * least, best))
    return rows


@cache
def resident(choice: Choice) -> int:
    """How many work-groups of a kernel a compute unit holds at the same time."""
    spec, p = find(choice[0]), dict(choice[1])
    items, _ = spec.local_size(p)
    down = p.get("WPTM") or p.get("WM", 8) // 8
    across = p.get("WPTN") or p.get("WN", 32) // 4
    registers = min(255, down * across + 2 * (down + across) + OTHER_REGISTERS)
    by_memory = LOCAL_BYTES // (spec.local_memory(p) + 1024)
    return max(1, min(REGISTERS // (registers * items), by_memory, ITEMS // items, 32))


# Fitting


def minimised(errors: Errors, start: np.ndarray) -> np.ndarray:
    """Where the errors are least, begun at `start`."""
    from scipy.optimize import least_squares

    return least_squares(errors, start, loss="soft_l1", f_scale=LARGE, max_nfev=30).x


def fit(rows: list[Timed], units: int) -> tuple[Chip, dict[tuple, Constants]]:
    """The constants of a chip, and of each text among the rows."""
    read = min((r.seconds / r.work.read for r in rows if r.work.read > MUCH), default=BYTE)
    write = min((r.seconds / r.work.written for r in rows if r.work.written > MUCH), default=BYTE)
    memory = Chip(read, write, 0.0, units)  # nothing beats the best rates that were seen
    common_values = minimised(lambda x: common_errors(rows, x, memory), np.log(BEGIN))
    chip = with_launches(memory, common_values)
    groups: dict[tuple, list[Timed]] = defaultdict(list)
    for row in rows:
        groups[text_of(row.choice)].append(row)
    texts = {
        text: fit_text(own, constants_of(common_values, own[0].choice), chip)
        for text, own in groups.items()
    }
    return chip, texts


def fit_text(rows: list[Timed], prior: Constants, chip: Chip) -> Constants:
    """The constants of a text, drawn towards the common ones."""
    start = np.log(prior)

    def errors(x: np.ndarray) -> np.ndarray:
        own = Constants(*np.exp(x).tolist())
        measured = [row.error(seconds(row.work, own, chip)) for row in rows]
        return np.concatenate([measured, DRAWN**0.5 * LARGE * (x - start)])

    return Constants(*np.exp(minimised(errors, start)).tolist())


def common_errors(rows: list[Timed], values: np.ndarray, memory: Chip) -> np.ndarray:
    """Errors of all rows with common constants, which are given as logarithms."""
    chip = with_launches(memory, values)
    own = {choice: constants_of(values, choice) for choice in {row.choice for row in rows}}
    return np.array([row.error(seconds(row.work, own[row.choice], chip)) for row in rows])


def constants_of(values: np.ndarray, choice: Choice) -> Constants:
    """The constants of a text that follow from the common ones."""
    rows, columns, depth = find(choice[0]).tiles(dict(choice[1]))
    start, tile, step, deep, flop, cut, part = np.exp(values[:OF_TEXTS]).tolist()
    operations = 2 * rows * columns * depth
    return Constants(
        start, tile, step + deep * depth, flop * operations, cut, part * rows * columns
    )


def with_launches(memory: Chip, values: np.ndarray) -> Chip:
    return memory._replace(launch=float(np.exp(values[OF_TEXTS])))


# What is written


def precompiled(
    record: dict[str, Any], shapes: Iterable[int] | None = None
) -> dict[tuple, set[float]]:
    """Texts, and ways to share their work, among which every recorded shape finds a good one.

    They are picked one after another, each as the one that most improves the geometric mean over
    all shapes. With all candidates the choice would be slightly better, but nearly every shape
    would have to wait for the compiler.
    """
    units, kept = record["device"]["units"], defaultdict(set)
    # by way, then by shape and precision: the part of the best rate
    offered: dict[tuple, dict[tuple, float]] = defaultdict(dict)
    for row in timed(record, shapes):
        way = text_of(row.choice), sharing(row.choice, units)
        precision = dict(row.choice[1]).get("PARTS")
        offered[way][row.sizes, precision] = row.best / row.seconds
    reached = dict.fromkeys({at for parts in offered.values() for at in parts}, UNSUPPORTED)
    for _ in range(PRECOMPILED):
        gains = {
            way: sum(log(max(1.0, part / reached[at])) for at, part in parts.items())
            for way, parts in offered.items()
        }
        best = max(gains, key=lambda way: gains[way])
        if gains[best] <= 0:
            break
        text, shared = best
        kept[text].add(shared)
        reached |= {at: max(part, reached[at]) for at, part in offered[best].items()}
    return kept


def constants(record: dict[str, Any]) -> dict[str, Any]:
    """What is written of a device, in nanoseconds."""
    chip, texts = fit(timed(record), record["device"]["units"])
    ways = precompiled(record)
    usual = sorted({(n, m, k) for m, n, k in (*PROMISED, *SQUARES, *THIN)})
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
                [*map(nanoseconds, own)],
                sorted(ways[text]),
                [*groups_of(text)],
                resident(text),
            ]
            for text, own in texts.items()
            if text in ways
        ],
        "timed": [
            [*sizes, best.choice[0], dict(best.choice[1])]
            for sizes in usual
            for best in quickest(record, sizes, chip)
        ],
    }


def range_check(record: dict[str, Any]) -> list[float]:
    """Nanoseconds of the range check for TF32: start, each element, host between two."""
    if "range_call_us" not in record:
        return []  # no tensor cores
    elements, looks = np.array(record["range_us"]).T
    element, start = np.polyfit(elements, looks * 1e3, 1, w=1 / looks)
    host = 1e3 * record["range_call_us"] - start
    return [nanoseconds(1e-9 * value) for value in (start, element, host)]


def quickest(record: dict[str, Any], sizes: Sizes, chip: Chip) -> list[Timed]:
    """The quickest float32 candidate at M, N, K, launches included; none if not recorded."""
    at = [i for i, shape in enumerate(record["shapes"]) if tuple(shape["sizes"]) == sizes]
    rows = [row for row in timed(record, at) if not find(row.choice[0]).tensor]
    return sorted(rows, key=lambda row: row.seconds + 0.5 * row.work.launches * chip.launch)[:1]


def nanoseconds(value: float) -> float:
    return common.short(1e9 * value)


def judged(record: dict[str, Any], folds: int = 4) -> dict[str, float]:
    """How good the choice is at shapes that were left out of the fit, one part after another.

    Returns:
        Over all shapes in float32, the best recorded time divided by that of the chosen candidate:
        its geometric "mean", the "share" above 0.9 and the "least".
    """
    order = np.random.default_rng(0).permutation(len(record["shapes"]))
    units = record["device"]["units"]
    ratios = []
    for fold in range(folds):
        others = np.concatenate([order[i::folds] for i in range(folds) if i != fold])
        (chip, texts), ways = fit(timed(record, others), units), precompiled(record, others)
        for i in order[fold::folds]:
            offered = [
                row
                for row in timed(record, [i])
                if not find(row.choice[0]).tensor
                and sharing(row.choice, units) in ways.get(text_of(row.choice), ())
            ]
            if not offered:
                continue
            predicted = [seconds(row.work, texts[text_of(row.choice)], chip) for row in offered]
            chosen = offered[int(np.argmin(predicted))]
            ratios.append(chosen.best / chosen.seconds)
    mean, share = geometric_mean(ratios), float(np.mean(np.array(ratios) > 0.9))
    judgement = {"shapes": len(ratios), "mean": mean, "share": share, "least": min(ratios)}
    return {name: round(value, 3) for name, value in judgement.items()}


def main(arguments: list[str] | None = None) -> None:
    parser = common.parser(__doc__)
    parser.add_argument("record", type=Path, help="of candidates, by `record.py candidates`")
    words = "such as results/choice.json; other devices stay"
    parser.add_argument("table", type=output_file, help=words)
    given = parser.parse_args(arguments)
    table = files.load_json(given.table, dict)
    record = files.load_json(given.record, dict)
    fitted = constants(record) | {"held_out": judged(record)}
    table.setdefault(kind_of(record["device"]["platform"]), {})["model"] = fitted
    records.write(given.table, table)
    print(f"wrote {given.table}; at shapes that were left out of the fit: {fitted['held_out']}")


if __name__ == "__main__":
    common.run(main)
