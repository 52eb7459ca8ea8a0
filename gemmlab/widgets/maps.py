"""Two maps with the same axes, a recorded GPU and the reader's machine, and the tries below, as the
data that a page draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product
from statistics import pstdev
from typing import Any

from ..draw.heatmap import SIGNS
from ..draw.picture import text_colour, viridis
from ..ladder import KernelSpec, Key, find
from ..ladder.spec import Limits
from ..measurement.landscape import Landscape
from ..model import percent
from .controls import IN_VIEW, ranked
from .tries import SHOWN, Try, best, digits, place

Values = Mapping[str, int]
Axes = tuple[str, str]
#: The colours of a map of this machine begin at this share of the rate at which they end.
FLOOR = 0.01
HINT = "Click or drag on the map to set the sliders."
#: What the cells without a rate look like, and what it means.
LEGEND = {"illegal": "dot: not allowed", "open": "grey: not measured yet",
          **{state: " ".join(sign) for state, sign in SIGNS.items()}}  # fmt: skip


def first_axes(spec: KernelSpec, recorded: Landscape | None) -> Axes:
    """Return the parameters in view over which the recorded rate varies most, if most pairs are
    legal; where less than a third is, those of all parameters. A single parameter has no other.
    """
    names = [name for name in spec.defaults if name in ranked(spec)[:IN_VIEW]]
    if len(names) < 2:
        return names[0], ""
    if recorded is None:
        return names[0], names[1]
    start, choices = spec.fit(recorded.limits), {p.name: p.choices for p in spec.params}

    def order(pair: tuple[str, str]) -> tuple[float, float]:
        every = [
            start | dict(zip(pair, values, strict=True))
            for values in product(*(choices[name] for name in pair))
        ]
        rates = [recorded.rate(spec.number, params) for params in every]
        shares = [rate.gflops / recorded.peak for rate in rates if rate and rate.metric == "GFLOPS"]
        varied = len(shares) * pstdev(shares) if shares else 0.0
        return min(len(shares) / len(every), 0.5), varied

    in_view = max(combinations(names, 2), key=order)
    return in_view if order(in_view)[0] > 1 / 3 else max(combinations(choices, 2), key=order)


def turn(axes: Axes, side: str, name: str) -> Axes:
    """Return axes with another parameter "across" or "down"; both cannot be the same."""
    across, down = (name, axes[1]) if side == "across" else (axes[0], name)
    return (axes[1], axes[0]) if across == down else (across, down)


@dataclass(frozen=True)
class Plane:
    """The settings of a map: two parameters vary along its axes, the other values stay."""

    spec: KernelSpec
    values: Values
    axes: Axes

    def setting(self, place: Iterable[int]) -> dict[str, int]:
        """Return the setting of a cell."""
        changed = {n: value for n, value in zip(self.axes, place, strict=True) if n}
        return {**self.values, **changed}

    @property
    def here(self) -> tuple[int, int]:
        """The cell of the present values."""
        across, down = self.axes
        return self.values[across], self.values.get(down, 0)

    def cells(self, limits: Sequence[Limits]) -> list[tuple[int, int]]:
        """Return the cells of both maps: rows and columns in which a setting is legal on one of the
        devices, and the reader's own.
        """
        choices = {p.name: p.choices for p in self.spec.params} | {"": (0,)}
        legal = [
            (x, y)
            for x, y in product(*(choices[name] for name in self.axes))
            if any(not _problems(self.spec, self.setting((x, y)), limit) for limit in limits)
        ]
        columns, rows = zip(self.here, *legal, strict=True)
        return [*product(sorted({*columns}), sorted({*rows}))]

    def recorded(self, found: Landscape, cells: Sequence[tuple[int, int]]) -> dict[str, Any]:
        """Return the map of a recorded device."""
        top = found.best(self.spec.number)
        scale = top.gflops / found.peak if top else 1.0

        def describe(setting: dict[str, int]) -> dict[str, Any]:
            cell = recorded_cell(found, self.spec, setting)
            return cell | (_shade(cell["share"] / scale) if "share" in cell else {})

        return self._map(f"{found.title}, % of the peak", HINT, cells, describe)

    def own(
        self,
        machine: str,
        limits: Limits,
        history: Sequence[Try],
        peak: float | None,
        cells: Sequence[tuple[int, int]],
    ) -> dict[str, Any]:
        """Return the map of what was measured here with the other values as they are now. The
        colours end at the peak or, where it is unknown, at ten times the highest rate.
        """
        mine = {tuple(one.settings.items()): one for one in history if one.right and one.rate}
        end = peak or 10 * max((one.rate[1] for one in mine.values() if one.rate), default=1.0)

        def describe(setting: dict[str, int]) -> dict[str, Any]:
            if problems := _problems(self.spec, setting, limits):
                return {"state": "illegal", "label": "not allowed: " + "; ".join(problems)}
            one = mine.get(tuple(setting.items()))
            if one is None or one.rate is None:
                return {"state": "open", "label": "not measured yet"}
            middle = one.rate[1]
            text = digits(middle) if middle >= 1 else f"{middle:.2g}"  # it must fit
            cell = {"state": "mine", "label": one.outcome, "text": text}
            return cell | _shade(place(middle, FLOOR * end, end))

        scale = f" (yellow: its peak, {digits(peak)})" if peak else ""
        about = f"It fills as you measure. Its colours are on a logarithmic scale. {HINT}"
        return self._map(f"{machine}, GFLOPS{scale}", about, cells, describe)

    def _map(
        self,
        title: str,
        about: str,
        places: Sequence[tuple[int, int]],
        describe: Callable[[dict[str, int]], dict[str, Any]],
    ) -> dict[str, Any]:
        across, down = self.axes
        cells = []
        for x, y in places:
            cell = {"x": x, "y": y, "text": "", **describe(self.setting((x, y)))}
            where = f"{across}={x}" + (f", {down}={y}" if down else "")
            cells.append(cell | {"label": f"{where}: {cell['label']}"})
        xs, ys = (sorted({*side}) for side in zip(*places, strict=True))
        names = [*self.spec.defaults]
        return {"title": title, "about": about, "names": names, "across": across, "down": down,
                "xs": xs, "ys": ys, "cells": cells}  # fmt: skip


def _problems(spec: KernelSpec, setting: Values, limits: Limits) -> tuple[str, ...]:
    return _problems_of(spec.number, limits, tuple(setting[name] for name in spec.defaults))


@lru_cache(4096)
def _problems_of(kernel: Key, limits: Limits, values: tuple[int, ...]) -> tuple[str, ...]:
    spec = find(kernel)
    return (*spec.problems(dict(zip(spec.defaults, values, strict=True)), limits),)


def recorded_cell(found: Landscape, spec: KernelSpec, setting: Values) -> dict[str, Any]:
    """What was recorded with a setting: "state", and in "label" the rate, or why there is none.
    A rate is also in "gflops", as a "share" of the peak, and as its "text" in per cent.
    """
    if problems := _problems(spec, setting, found.limits):
        return {"state": "illegal", "label": "not allowed: " + "; ".join(problems)}
    record = found.rate(spec.number, setting)
    if record is None:
        return {"state": "missing", "label": f"not recorded on {found.title}"}
    if record.metric != "GFLOPS":
        return {"state": "failed", "label": record.note}
    gflops, share = record.gflops, record.gflops / found.peak
    text = percent(share)
    label = f"{digits(gflops)} GFLOPS, {text} of the peak"
    cell = {"state": "recorded", "gflops": gflops, "share": share, "label": label}
    return cell | {"text": text.removesuffix(" %")}


@lru_cache(512)
def _shade(share: float) -> dict[str, str]:
    shade = viridis(share)
    return {"shade": ",".join(str(round(255 * part)) for part in shade[:3]),
            "ink": text_colour(shade)}  # fmt: skip


def legend(shown: Sequence[Mapping[str, Any]]) -> str:
    """Return what the cells without a rate in these maps mean."""
    states = {cell["state"] for one in shown for cell in one["cells"]}
    return ", ".join(words for state, words in LEGEND.items() if state in states)


def strip(history: Sequence[Try], code: str) -> dict[str, Any]:
    """Return the last tries; their rates are places on a logarithmic scale, of at least a decade,
    that ends at the highest of them.
    """
    rates = [one.rate for one in history[-SHOWN:] if one.right and one.rate]
    top = max((high for _, _, high in rates), default=1.0)
    bottom = min([0.1 * top, *(0.9 * low for low, _, _ in rates)])
    first = best(history)
    marks = []
    for number, one in list(enumerate(history))[-SHOWN:]:
        right = one.right and one.rate is not None
        interval = one.rate if right and one.rate else (bottom, bottom, bottom)
        low, middle, high = (place(rate, bottom, top) for rate in interval)
        newest = number == len(history) - 1
        text = digits(one.rate[1]) if right and one.rate and (one is first or newest) else ""
        other = one.code != code
        last = history[number - 1] if number else None
        label = f"{one.describe(last)}{'; other code' * other}"
        marks.append({"number": number, "right": right, "label": label, "text": text,
                      "labels": one.labels(last), "newest": newest, "other": other, "low": low,
                      "middle": middle, "high": high})  # fmt: skip
    scale = [f"{digits(top)} GFLOPS", digits(bottom)] if rates else []
    return {"title": "your tries", "scale": scale, "marks": marks}
