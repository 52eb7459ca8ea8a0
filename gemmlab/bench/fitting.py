"""Fit the constants of `gemmlab.family.ranking` to a record of candidates, and judge them by shapes that were left out.

The logarithm of a predicted time over the measured one is made small in the least-squares sense, by a method of
Levenberg and Marquardt; large errors count less (weights 1/sqrt(1 + r^2), which is called "soft L1"), and so do
candidates far from the best, since only the order of good ones matters. All texts are fitted together first; each text
then gets constants of its own, drawn towards the common ones where its record is short.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from math import log
from typing import Any, NamedTuple

import numpy as np

from ..catalog import find
from ..family.candidates import KERNELS
from ..family.ranking import Chip, Constants, Work, seconds, text_of, work
from ..family.selection import Choice

#: Where the common fit begins: seconds to start, per tile, per step of k, per operation of a compute unit, to cut a
#: tile, per part and element of the tile; per byte of memory, launch, and step of an edge strip.
_BEGIN = (2e-6, 1e-6, 2e-8, 2.5e-12, 1.5e-6, 1e-11, 3e-13, 4e-6, 2e-7)
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

    @property
    def weight(self) -> float:
        return self.best / self.seconds


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
    common = _minimised(lambda x: _errors(rows, _common(x, units)), np.log(_BEGIN))
    chip = _chip(np.exp(common), units)
    groups: dict[tuple, list[Timed]] = defaultdict(list)
    for row in rows:
        groups[text_of(row.choice)].append(row)
    found = {}
    for text, own in groups.items():
        prior = np.log(_constants(np.exp(common), own[0].choice))

        def errors(x, own=own, prior=prior) -> np.ndarray:
            constants = Constants(*np.exp(x).tolist())
            return np.concatenate([_errors(own, lambda row: (constants, chip)), _DRAWN**0.5 * _LARGE * (x - prior)])

        found[text] = Constants(*np.exp(_minimised(errors, prior)).tolist())
    return chip, found


def _constants(values, choice: Choice) -> Constants:
    """The constants of a text that follow from the common ones."""
    rows, cols, depth = find(choice[0]).tiles(dict(choice[1]))
    start, tile, step, flop, cut, part = (float(v) for v in values[:6])
    return Constants(start, tile, step * depth, flop * 2 * rows * cols * depth, cut, part * rows * cols)


def _chip(values, units: int) -> Chip:
    byte, launch, strip = (float(v) for v in values[6:9])
    return Chip(byte, launch, strip, units)


def _common(x: np.ndarray, units: int) -> Callable[[Timed], tuple[Constants, Chip]]:
    values = np.exp(x)
    chip, texts = _chip(values, units), {}

    def constants(row: Timed) -> tuple[Constants, Chip]:
        if row.choice not in texts:
            texts[row.choice] = _constants(values, row.choice)
        return texts[row.choice], chip

    return constants


def _errors(rows: list[Timed], constants: Callable[[Timed], tuple[Constants, Chip]]) -> np.ndarray:
    return np.array([row.weight * log(seconds(row.work, *constants(row)) / row.seconds) for row in rows])


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


def constants(record: dict[str, Any], command: str) -> dict[str, Any]:
    """What ``results/choice.json`` says of a device: the constants that fit its record best, in nanoseconds.

    Args:
        record: as `gemmlab.bench.candidates.record` wrote it.
        command: what was typed.
    """
    chip, texts = fit(timed(record), record["device"]["units"])
    names = {key: name for name, key in KERNELS.items()}
    elements, waits = np.array(record["range_us"]).T
    element, start = np.polyfit(elements, waits * 1e3, 1, w=1 / waits)
    return {
        **record["device"],
        "date": record["date"],
        "command": command,
        "held_out": judged(record),
        "chip": {name: _nanoseconds(value) for name, value in chip._asdict().items() if name != "units"},
        "check": [_nanoseconds(1e-9 * start), _nanoseconds(1e-9 * element)],
        "texts": [
            [names[kernel], dict(params), [_nanoseconds(c) for c in own]] for (kernel, params), own in texts.items()
        ],
    }


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
        chip, texts = fit(timed(record, np.concatenate([order[i::folds] for i in range(folds) if i != fold])),
                          record["device"]["units"])  # fmt: skip
        for i in order[fold::folds]:
            rows = [row for row in timed(record, [i]) if not find(row.choice[0]).tensor]
            guesses = [(seconds(row.work, texts[text_of(row.choice)], chip), row) for row in rows
                       if text_of(row.choice) in texts]  # fmt: skip
            if guesses:
                taken = min(guesses, key=lambda pair: pair[0])[1]
                ratios.append(taken.best / taken.seconds)
                beside += [1e-6 * record["shapes"][i]["cublas_us"][0] / taken.seconds] * (
                    "cublas_us" in record["shapes"][i]
                )
    found = {"shapes": len(ratios), "mean": _mean(ratios), "share": float(np.mean(np.array(ratios) > 0.9)),
             "least": min(ratios)}  # fmt: skip
    found |= {"mean_cublas": _mean(beside)} if beside else {}
    return {name: round(value, 3) for name, value in found.items()}


def _mean(ratios: list[float]) -> float:
    """The geometric mean."""
    return float(np.exp(np.log(ratios).mean()))
