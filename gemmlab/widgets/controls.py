"""Controls of a panel: sliders over numbers, and buttons for words and switches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Number
from typing import Any

from ..ladder import KernelSpec, find

#: Sizes to choose from; any other can be typed.
SIZES = sorted({*(2**e for e in range(4, 14)), 100, 200, 500, 1000, 5000})
#: So many parameters are always in view, two controls below a cell; these are among the last.
IN_VIEW, IN_CELLS, FOLDED = 4, 2, ("TSK", "RK", "PAD", "UNROLL")
SIZE_MEANINGS = {
    "M": "rows of A and C; N and K follow while M\u00a0=\u00a0N\u00a0=\u00a0K",
    "N": "columns of B and C",
    "K": "columns of A, rows of B",
}


@dataclass(frozen=True)
class Control:
    """A control and its position.

    Attributes:
        options, value: what can be chosen, and what is.
        labels: words for options that are no numbers.
        meaning: a line below it.
        free: whether a value can be typed that is not among the options.
        film: whether it moves by itself, with buttons to play.
        more: whether it is folded away.
        gave_way: whether another control has moved it.
    """

    name: str
    options: Sequence[Any]
    value: Any
    labels: Mapping[Any, str] = field(default_factory=dict)
    meaning: str = ""
    free: bool = False
    film: bool = False
    more: bool = False
    gave_way: bool = False

    def label(self, option: Any) -> str:
        if isinstance(option, bool):
            return "yes" if option else "no"
        return self.labels.get(option, str(option))

    def option(self, label: str) -> Any:
        """Return the option with a label. Raises ValueError if there is none."""
        for option in self.options:
            if self.label(option) == label:
                return option
        words = ", ".join(map(self.label, self.options))
        raise ValueError(f"{self.name} cannot be {label!r}: choose one of {words}.")

    def data(self) -> dict[str, Any]:
        """Return what the page draws."""
        numbers = all(isinstance(o, Number) and not isinstance(o, bool) for o in self.options)
        return {
            "name": self.name,
            "options": [self.label(option) for option in self.options],
            "at": [*self.options].index(self.value),
            "words": bool(self.labels) or not numbers,
            "meaning": self.meaning,
            "free": self.free,
            "film": self.film,
            "more": self.more,
            "gave_way": self.gave_way,
        }


def ranked(spec: KernelSpec) -> list[str]:
    """The parameters; if one or two are new in this kernel, these first."""
    names = sorted(spec.defaults, key=lambda name: name in FOLDED)
    new = [name for name in names if spec.before and name not in find(spec.before).defaults]
    first = new if len(new) <= 2 else []
    return [*first, *(name for name in names if name not in first)]


def positions(spec: KernelSpec, *settings: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """The values that the slider of each parameter and size offers, with those of `settings`."""
    offered: dict[str, Iterable[int]] = {param.name: param.choices for param in spec.params}
    offered |= dict.fromkeys(SIZE_MEANINGS, SIZES)
    return {
        name: tuple(sorted({*values, *(setting[name] for setting in settings)}))
        for name, values in offered.items()
    }


def controls(
    spec: KernelSpec,
    options: Mapping[str, Sequence[int]],
    values: Mapping[str, int],
    notes: Sequence[str],
    axes: Sequence[str],
    in_cell: bool,
) -> list[Control]:
    """The controls of a kernel's parameters and sizes; a parameter that is 0 or 1 has buttons.

    The `notes` begin with the names of those that gave way. Those of the maps' `axes` are in view;
    below a cell of code, which has no maps, only those that its lesson is about.
    """
    names = [*dict.fromkeys([*filter(None, axes), *ranked(spec)])]
    first = [*ranked(spec), "M"][:IN_CELLS] if in_cell else [*names[:IN_VIEW], "M"]
    meanings = {param.name: param.meaning for param in spec.params} | SIZE_MEANINGS
    found = []
    for name, offered in options.items():
        meaning, switch = meanings[name], offered == (0, 1)
        if switch:
            meaning = meaning.replace("1: ", "on: ", 1).replace("; 0: ", "; off: ", 1)
        found.append(
            Control(
                name,
                offered,
                values[name],
                {0: "off", 1: "on"} if switch else {},
                meaning,
                free=True,
                more=name not in first,
                gave_way=any(note.startswith(f"{name} moved ") for note in notes),
            )
        )
    return found
