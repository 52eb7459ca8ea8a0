"""Two maps with the same axes, a recorded GPU and the reader's machine, and the tries below."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations, product
from pathlib import Path
from statistics import pstdev
from typing import Any

import anywidget
import traitlets

from ..draw.landscape import landscape
from ..draw.picture import Picture, text_colour, viridis
from ..ladder import KernelSpec
from ..ladder.spec import Limits
from ..measurement.landscape import Landscape, recorded
from ..model import percent
from .settings import IN_VIEW, ranked
from .tries import SHOWN, Try, best, digits

Values = Mapping[str, int]
#: The rates in a map of this machine begin at this share of the scale, so that none is black.
FLOOR = 0.15


class Maps(anywidget.AnyWidget):
    """The maps and the tries: see ``maps.js``. A reader's own text has tries and no map.

    Attributes:
        code: what measures the present settings, by the name of the button that copies it.
        limits, machine: of the device; "this machine" or "this browser".
        recorded: what was recorded of the kernel on another device, if anything was.
    """

    _esm = Path(__file__).with_name("maps.js")
    maps: Any = traitlets.List().tag(sync=True)
    here: Any = traitlets.List([0, 0]).tag(sync=True)
    tries: Any = traitlets.Dict({"title": "", "marks": []}).tag(sync=True)
    code: Any = traitlets.Dict().tag(sync=True)

    def __init__(self, spec: KernelSpec, limits: Limits, source: str | None = None):
        super().__init__()
        self.spec: KernelSpec = spec
        self.limits: Limits = limits
        self.machine: str = "this machine"
        self._of_text = source is not None
        found = [one for one in recorded() if one.rows(spec.number)] if source is None else []
        self.recorded: Landscape | None = found[0] if found else None
        self._across, self._down = _first_axes(spec, self.recorded)

    def show(self, values: Values, history: Sequence[Try], code: str = "") -> None:
        """Where the reader is now, and what was tried."""
        with self.hold_sync():
            self.here = [values[self._across], values[self._down] if self._down else 0]
            there = [self._recorded_map(self.recorded, values)] if self.recorded else []
            self.maps = [] if self._of_text else [*there, self._own_map(values, history)]
            self.tries = _strip(history, code)

    def turn(self, side: str, name: str) -> None:
        """Another parameter on the axis "across" or "down"; both cannot be the same."""
        if name not in self.spec.defaults:
            return
        across, down = (name, self._down) if side == "across" else (self._across, name)
        if across == down:
            across, down = self._down, self._across
        self._across, self._down = across, down

    def setting(self, values: Values, place: Iterable[int]) -> dict[str, int]:
        """What a cell stands for where the reader is at these values."""
        axes = zip((self._across, self._down), place, strict=True)
        return {**values, **{name: value for name, value in axes if name}}

    def still(self) -> Picture | None:
        """The recorded map for readers without a running kernel; None if nothing was recorded."""
        if self.recorded is None:
            return None
        title = f"{self.recorded.title}, kernel {self.spec.number}: % of the peak"
        return landscape(self.maps[0], (*self.here,), title)

    def _recorded_map(self, found: Landscape, values: Values) -> dict[str, Any]:
        top = found.best(self.spec.number)
        scale = top.share if top and top.share else 1.0

        def describe(setting: dict[str, int]) -> dict[str, Any]:
            cell = recorded_cell(found, self.spec, setting)
            return cell | (_shade(cell["share"] / scale) if "share" in cell else {})

        return self._map(f"{found.title}, % of the peak", values, describe)

    def _own_map(self, values: Values, history: Sequence[Try]) -> dict[str, Any]:
        """What was measured here with the other parameters and sizes as they are now."""
        mine = {tuple(one.settings.items()): one for one in history if one.right and one.rate}
        top = best(list(mine.values()))
        scale = top.rate[2] if top and top.rate else 1.0

        def describe(setting: dict[str, int]) -> dict[str, Any]:
            if self.spec.problems(setting, self.limits):
                return {"state": "illegal", "label": "not legal"}
            one = mine.get(tuple(setting.items()))
            if one is None or one.rate is None:
                return {"state": "open", "label": "not measured yet"}
            low, middle, high = (min(rate / scale, 1.0) for rate in one.rate)
            text = digits(one.rate[1]) if one.rate[1] >= 1 else f"{one.rate[1]:.2g}"  # it must fit
            cell = {"state": "mine", "label": one.outcome, "text": text}
            return cell | {"low": low, "high": high} | _shade(FLOOR + (1 - FLOOR) * middle)

        return self._map(f"{self.machine}, GFLOPS", values, describe)

    def _map(
        self, title: str, values: Values, describe: Callable[[dict[str, int]], dict[str, Any]]
    ) -> dict[str, Any]:
        xs, ys = self._axes(values)
        cells = []
        for x, y in product(xs, ys):
            cell = {"x": x, "y": y, "text": "", **describe(self.setting(values, (x, y)))}
            place = f"{self._across}={x}" + (f", {self._down}={y}" if self._down else "")
            cells.append(cell | {"label": f"{place}: {cell['label']}"})
        return {
            "title": title,
            "names": list(self.spec.defaults),
            "across": self._across,
            "down": self._down,
            "xs": xs,
            "ys": ys,
            "cells": cells,
        }

    def _axes(self, values: Values) -> tuple[list[int], list[int]]:
        """Return the values along both axes of both maps, without those of which nothing is legal,
        but for the reader's own.
        """
        limits = [self.limits, *([self.recorded.limits] if self.recorded else [])]
        places = product(self._choices(self._across), self._choices(self._down))
        legal = [
            place
            for place in places
            if any(not self.spec.problems(self.setting(values, place), limit) for limit in limits)
        ]
        xs = {values[self._across], *(x for x, _ in legal)}
        ys = {values.get(self._down, 0), *(y for _, y in legal)}
        return sorted(xs), sorted(ys)

    def _choices(self, name: str) -> list[int]:
        return sorted(next((p.choices for p in self.spec.params if p.name == name), (0,)))


def recorded_cell(found: Landscape, spec: KernelSpec, setting: dict[str, int]) -> dict[str, Any]:
    """What was recorded with a setting: "state", and in "label" the rate, or why there is none.
    A rate is also in "gflops", as a "share" of the peak, and as its "text" in per cent.
    """
    if problems := spec.problems(setting, found.limits):
        return {"state": "illegal", "label": "not legal: " + "; ".join(problems)}
    record = found.rate(spec.number, setting)
    if record is None:
        return {"state": "missing", "label": f"not recorded on {found.title}"}
    if record.problem:
        return {"state": "failed", "label": record.problem}
    gflops, share, text = record.gflops, record.share, percent(record.share)
    label = f"{digits(gflops)} GFLOPS, {text} of the peak"
    cell = {"state": "recorded", "gflops": gflops, "share": share, "label": label}
    return cell | {"text": text.removesuffix(" %")}


def _shade(share: float) -> dict[str, str]:
    shade = viridis(share)
    return {"shade": ",".join(str(round(255 * part)) for part in shade[:3]),
            "ink": text_colour(shade)}  # fmt: skip


def _strip(history: Sequence[Try], code: str) -> dict[str, Any]:
    """The last tries, their rates as shares of the highest."""
    top = max((t.rate[2] for t in history if t.right and t.rate), default=1.0)
    first = best(history)
    marks = []
    for number, one in list(enumerate(history))[-SHOWN:]:
        right = one.right and one.rate is not None
        low, middle, high = (v / top for v in one.rate) if right and one.rate else (0.0, 0.0, 0.0)
        named = one is first or number == len(history) - 1
        text = digits(one.rate[1]) if right and one.rate and named else ""
        other = one.code != code
        label = f"{one}{'; other code' * other}"
        marks.append({"number": number, "right": right, "label": label, "text": text,
                      "other": other, "low": low, "middle": middle, "high": high})  # fmt: skip
    top_rate = f", best {first.outcome}" if first else ""
    return {"title": f"your tries{top_rate}", "marks": marks}


def _first_axes(spec: KernelSpec, found: Landscape | None) -> tuple[str, str]:
    """Return the parameters in view over which the recorded rate varies most, if most pairs are
    legal; where less than a third is, those of all parameters.
    """
    names = [name for name in spec.defaults if name in ranked(spec)[:IN_VIEW]]
    if len(names) < 2:
        return names[0], ""
    if found is None:
        return names[0], names[1]
    start, choices = spec.fit(found.limits), {p.name: p.choices for p in spec.params}

    def order(pair: tuple[str, str]) -> tuple[float, float]:
        every = [
            start | dict(zip(pair, values, strict=True))
            for values in product(*(choices[name] for name in pair))
        ]
        rates = [found.rate(spec.number, params) for params in every]
        shares = [rate.share for rate in rates if rate and not rate.problem]
        varied = len(shares) * pstdev(shares) if shares else 0.0
        return min(len(shares) / len(every), 0.5), varied

    in_view = max(combinations(names, 2), key=order)
    return in_view if order(in_view)[0] > 1 / 3 else max(combinations(choices, 2), key=order)
