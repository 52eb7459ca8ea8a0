"""Fit the constants of `gemmlab.family.ranking` to a record of candidates, and judge them by shapes that were left out.

The logarithm of a predicted time over the measured one is made small in the least-squares sense, by a method of
Levenberg and Marquardt; large errors count less (weights 1/sqrt(1 + r^2), which is called "soft L1"), and so do
candidates far from the best, since only the order of good ones matters. All texts are fitted together first; each text
then gets constants of its own, drawn towards the common ones where its record is short.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from math import log
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..catalog import find
from ..family.candidates import KERNELS
from ..family.ranking import Chip, Constants, Shared, Work, seconds, sharing, text_of, work
from ..family.selection import Choice, kind_of
from .candidates import PROMISED, SQUARES, THIN

#: Where the common fit begins: seconds to start, per tile, per step of the loop, per step of k, per operation of a
#: compute unit, to cut a tile, per part and element of the tile; per launch, and per step of an edge strip.
_BEGIN = (4e-6, 1e-6, 2e-7, 5e-9, 2.5e-12, 1.5e-6, 1e-10, 4e-6, 2e-7)
_OF_TEXTS = 7  # of these, the ones that are not the chip's
#: Bytes of operands or of a result from which a product shows the memory's bandwidth, and seconds per byte without any.
_MUCH, _BYTE = 2**25, 3e-13
#: Ways to multiply that the choice is made from, and what a shape that none of them serves counts.
MENU, _UNSERVED = 64, 0.05
#: How strongly a text's constants are drawn to the common ones, in shapes.
_DRAWN = 2.0
#: An error of this size, as a logarithm, counts as large.
_LARGE = 0.1


class Timed(NamedTuple):
    """A candidate that was timed: what it does, its seconds, and those of the best candidate at that shape."""

    choice: Choice
    sizes: tuple[int, int, int]
    work: Work
    seconds: float
    best: float

    def error(self, predicted: float) -> float:
        """The logarithm of a prediction over the measured time. It counts as much as the candidate, or one that takes
        as long as predicted, comes near the best."""
        return self.best / max(self.best, min(self.seconds, predicted)) * log(predicted / self.seconds)


def timed(record: dict[str, Any], shapes: Iterable[int] | None = None) -> list[Timed]:
    """All candidates of a record, or those of some of its shapes."""
    choices = [(KERNELS[name], tuple(params.items())) for name, params in record["kernels"]]
    found = []
    for i in range(len(record["shapes"])) if shapes is None else shapes:
        shape = record["shapes"][i]
        m, n, k = shape["sizes"]
        for precision in ("float32", "tf32", "tf32x3"):
            runs = shape.get(precision, {}).get("runs", [])
            best = min((least for _, least, _, _ in runs), default=0.0)
            for number, least, _, _ in runs:
                choice = choices[number]
                found.append(Timed(choice, (m, n, k), work(choice, (m, n, k)), least * 1e-6, best * 1e-6))
    return found


def fit(rows: list[Timed], units: int) -> tuple[Chip, dict[tuple, Constants]]:
    """The constants of a chip, and of each text among the rows."""
    read = min((row.seconds / row.work.read for row in rows if row.work.read > _MUCH), default=_BYTE)
    write = min((row.seconds / row.work.written for row in rows if row.work.written > _MUCH), default=_BYTE)
    memory = Chip(read, write, 0.0, 0.0, units)  # nothing can be faster than the best rates that were seen
    common = _minimised(lambda x: _errors(rows, _common(x, memory)), np.log(_BEGIN))
    chip = _chip(np.exp(common), memory)
    groups: dict[tuple, list[Timed]] = defaultdict(list)
    for row in rows:
        groups[text_of(row.choice)].append(row)
    of_kernel = {kernel: _common_of(kernel, rows, common, memory) for kernel in {row.choice[0] for row in rows}}
    found = {}
    for text, own in groups.items():
        prior = np.log(_constants(np.exp(of_kernel[text[0]]), own[0].choice))

        def errors(x, own=own, prior=prior) -> np.ndarray:
            constants = Constants(*np.exp(x).tolist())
            return np.concatenate([_errors(own, lambda row: (constants, chip)), _DRAWN**0.5 * _LARGE * (x - prior)])

        found[text] = Constants(*np.exp(_minimised(errors, prior)).tolist())
    return chip, found


def _common_of(kernel, rows: list[Timed], common: np.ndarray, memory: Chip) -> np.ndarray:
    """The common constants fitted to the texts of one kernel alone; those of the chip stay."""
    own, chip = [row for row in rows if row.choice[0] == kernel], common[_OF_TEXTS:]
    fitted = _minimised(lambda x: _errors(own, _common(np.append(x, chip), memory)), common[:_OF_TEXTS])
    return np.append(fitted, chip)


def _constants(values, choice: Choice) -> Constants:
    """The constants of a text that follow from the common ones."""
    rows, cols, depth = find(choice[0]).tiles(dict(choice[1]))
    start, tile, step, deep, flop, cut, part = (float(v) for v in values[:_OF_TEXTS])
    return Constants(start, tile, step + deep * depth, flop * 2 * rows * cols * depth, cut, part * rows * cols)


def _chip(values, memory: Chip) -> Chip:
    launch, strip = (float(v) for v in values[_OF_TEXTS:])
    return memory._replace(launch=launch, strip=strip)


def _common(x: np.ndarray, memory: Chip) -> Callable[[Timed], tuple[Constants, Chip]]:
    values = np.exp(x)
    chip, texts = _chip(values, memory), {}

    def constants(row: Timed) -> tuple[Constants, Chip]:
        if row.choice not in texts:
            texts[row.choice] = _constants(values, row.choice)
        return texts[row.choice], chip

    return constants


def _errors(rows: list[Timed], constants: Callable[[Timed], tuple[Constants, Chip]]) -> np.ndarray:
    return np.array([row.error(seconds(row.work, *constants(row))) for row in rows])


def _minimised(errors: Callable[[np.ndarray], np.ndarray], x: np.ndarray, turns: int = 30) -> np.ndarray:
    """Where the errors are least, begun at `x`."""
    x, damping, now = np.array(x, float), 1e-2, errors(x)
    for _ in range(turns):
        weights = (1 + (now / _LARGE) ** 2) ** -0.25
        columns = [(errors(x + 1e-4 * unit) - now) / 1e-4 for unit in np.eye(len(x))]
        slopes = np.stack(columns, axis=1) * weights[:, None]
        normal = slopes.T @ slopes
        step = np.linalg.solve(normal + damping * np.diag(np.diag(normal) + 1e-9), -slopes.T @ (weights * now))
        step = np.clip(step, -1.0, 1.0)
        trial = errors(x + step)
        if _cost(trial) < _cost(now):
            done = _cost(now) - _cost(trial) < 1e-5 * _cost(now)
            x, now, damping = x + step, trial, damping / 3
            if done:
                break
        else:
            damping *= 5
            if damping > 1e6:
                break
    return x


def _cost(errors: np.ndarray) -> float:
    return float((np.sqrt(1 + (errors / _LARGE) ** 2) - 1).sum())


def write(record: str | Path, path: str | Path, command: str, judge: bool = True) -> dict[str, Any]:
    """Fit the constants to a record of candidates, and put them into a file such as ``results/choice.json``.

    Args:
        record: the file that `gemmlab.bench.candidates.record` wrote.
        path: the file to write to; what it says of other kinds of devices stays.
        command: what was typed.
        judge: whether to say how good the choice is, which takes four more fits (see `judged`).

    Returns:
        What was written of this kind of device.
    """
    data, path = json.loads(Path(record).read_text(encoding="utf-8")), Path(path)
    found = constants(data, command) | ({"held_out": judged(data)} if judge else {})
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    known[kind_of(data["device"]["platform"])] = found
    entries = []
    for kind, entry in known.items():
        lists = [name for name in ("texts", "timed") if name in entry]  # one line per entry
        text = json.dumps({name: value for name, value in entry.items() if name not in lists}, indent=1)[:-2]
        for name in lists:
            lines = ",\n".join("  " + json.dumps(one) for one in entry[name])
            text += f',\n "{name}": [\n{lines}\n ]'
        entries.append(f'"{kind}": {text}\n}}')
    path.write_text("{\n" + ",\n".join(entries) + "\n}\n", encoding="utf-8")
    return found


def menu(record: dict[str, Any], shapes: Iterable[int] | None = None) -> dict[tuple, set[Shared]]:
    """A few texts, and ways to share their work, among which every recorded shape finds one that is nearly the best.

    They are picked one after another, each as the one that makes the geometric mean over all shapes best. All
    candidates together would be somewhat better, but nearly every shape would need a compiler of its own.
    """
    units, found = record["device"]["units"], defaultdict(set)
    offered: dict[tuple, dict[tuple, float]] = defaultdict(
        dict
    )  # by way, by shape and precision: the part of the best rate
    for row in timed(record, shapes):
        way = text_of(row.choice), sharing(row.choice, units)
        offered[way][row.sizes, dict(row.choice[1]).get("PARTS")] = row.best / row.seconds
    reached: dict[tuple, float] = dict.fromkeys({at for parts in offered.values() for at in parts}, _UNSERVED)
    for _ in range(MENU):
        gains = {
            way: sum(log(max(1.0, part / reached[at])) for at, part in parts.items()) for way, parts in offered.items()
        }
        text, shared = best = max(gains, key=lambda way: gains[way])
        if gains[best] <= 0:
            break
        found[text].add(shared)
        reached |= {at: max(part, reached[at]) for at, part in offered[best].items()}
    return found


def constants(record: dict[str, Any], command: str) -> dict[str, Any]:
    """What is written of a device: the constants that fit its record best, in nanoseconds, for the texts of the menu.

    Args:
        record: as `gemmlab.bench.candidates.record` wrote it.
        command: what was typed.
    """
    chip, texts = fit(timed(record), record["device"]["units"])
    ways = menu(record)
    names = {key: name for name, key in KERNELS.items()}
    return {
        **record["device"],
        "date": record["date"],
        "commands": [command],
        "chip": {name: _nanoseconds(value) for name, value in chip._asdict().items() if name != "units"},
        "check": check(record),
        "texts": [
            [names[text[0]], dict(text[1]), [_nanoseconds(c) for c in own], [*map(list, sorted(ways[text]))]]
            for text, own in texts.items()
            if text in ways
        ],
        "timed": [
            [*sizes, names[best.choice[0]], dict(best.choice[1])]
            for sizes in sorted({(n, m, k) for m, n, k in (*PROMISED, *SQUARES, *THIN)})
            for best in _quickest(record, sizes, chip)
        ],
    }


def check(record: dict[str, Any]) -> list[float]:
    """Nanoseconds of the look at operands for TF32: its start, each element, and the host between two of them."""
    if "range_call_us" not in record:
        return []  # no tensor cores
    elements, looks = np.array(record["range_us"]).T
    element, start = np.polyfit(elements, looks * 1e3, 1, w=1 / looks)
    host = 1e3 * record["range_call_us"] - start
    return [_nanoseconds(1e-9 * value) for value in (start, element, host)]


def _quickest(record: dict[str, Any], sizes: tuple[int, int, int], chip: Chip) -> list[Timed]:
    """The quickest float32 candidate at M, N, K, further launches counted; none where these sizes are not recorded."""
    at = [i for i, shape in enumerate(record["shapes"]) if tuple(shape["sizes"]) == sizes]
    rows = [row for row in timed(record, at) if not find(row.choice[0]).tensor]
    return sorted(rows, key=lambda row: row.seconds + 0.5 * row.work.launches * chip.launch)[:1]


def _nanoseconds(seconds: float) -> float:
    return float(f"{1e9 * seconds:.4g}")


def judged(record: dict[str, Any], folds: int = 4) -> dict[str, float]:
    """How good the choice is at shapes that the constants were not fitted to: one part of the record after the other.

    Returns:
        Over all shapes in float32 the ratio of the best recorded time to that of the chosen candidate: its geometric
        "mean", the "share" above 0.9 and the "least"; and the "mean_cublas", cuBLAS's time over that of the choice.
    """
    order = np.random.default_rng(0).permutation(len(record["shapes"]))
    ratios, beside = [], []
    for fold in range(folds):
        others = np.concatenate([order[i::folds] for i in range(folds) if i != fold])
        units = record["device"]["units"]
        (chip, texts), ways = fit(timed(record, others), units), menu(record, others)
        for i in order[fold::folds]:
            guesses = [
                (seconds(row.work, texts[text_of(row.choice)], chip), row)
                for row in timed(record, [i])
                if not find(row.choice[0]).tensor and sharing(row.choice, units) in ways.get(text_of(row.choice), ())
            ]
            if guesses:
                taken = min(guesses, key=lambda pair: pair[0])[1]
                ratios.append(taken.best / taken.seconds)
                if "cublas_us" in record["shapes"][i]:
                    beside.append(1e-6 * record["shapes"][i]["cublas_us"][0] / taken.seconds)
    found = {"shapes": len(ratios), "mean": _mean(ratios), "share": float(np.mean(np.array(ratios) > 0.9)),
             "least": min(ratios)}  # fmt: skip
    found |= {"mean_cublas": _mean(beside)} if beside else {}
    return {name: round(value, 3) for name, value in found.items()}


def _mean(ratios: list[float]) -> float:
    """The geometric mean."""
    return float(np.exp(np.log(ratios).mean()))
