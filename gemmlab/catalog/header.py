"""Read the header of a kernel's file: its parameters and its rules.

A parameter states its default, its meaning, and the values that an explorer offers::

    #ifndef WPT
    #define WPT 8 // elements of C a work-item computes [1, 2, 4, 8, 16]
    #endif

A rule is a condition that reads the same in C and in Python; `#error` says what is wrong where it
fails::

    #if !(TS % WPT == 0)
    #error TS is not a multiple of WPT
    #endif
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import CodeType
from typing import Any, NamedTuple

#: Complete parameters of a kernel: the value of each macro by its name.
Params = Mapping[str, int]

#: The largest value of any parameter.
LARGEST = 65536

#: What an expression may use besides parameters.
_FUNCTIONS = {"__builtins__": {"min": min}}

_PARAM = re.compile(
    r"^#ifndef (\w+)\n#define \1 (\d+) // (.+) \[([\d, ]+)\]\n#endif$", re.MULTILINE
)
_RULE = re.compile(r"^#if !\((.+)\)\n#error (\S.*)\n#endif$", re.MULTILINE)
_GUARD = re.compile(r"^ *#ifndef (\w+)", re.MULTILINE)
_BEFORE = re.compile(r"^// Before: +(\w+)\.", re.MULTILINE)


@dataclass(frozen=True)
class Param:
    """One macro of a kernel: its default, its meaning, and the values that an explorer offers."""

    name: str
    default: int
    meaning: str
    choices: tuple[int, ...]

    @cached_property
    def least(self) -> int:
        """The smallest legal value: 0 if 0 is offered, else 1."""
        return min(1, *self.choices)


@dataclass(frozen=True)
class Formula:
    """An expression of a kernel's parameters, such as "TSM // WPTM, TSN // WPTN"."""

    text: str

    @cached_property
    def _code(self) -> CodeType:
        return compile(self.text, f"<{self.text}>", "eval")

    def __reduce__(self) -> tuple[Any, ...]:
        return Formula, (self.text,)  # compiled code cannot be pickled

    @cached_property
    def names(self) -> frozenset[str]:
        """The parameters that the expression depends on."""
        return frozenset(re.findall(r"[A-Z]+", self.text))

    def __call__(self, params: Params) -> Any:
        return eval(self._code, _FUNCTIONS, params)


class Rule(NamedTuple):
    """A constraint on parameters.

    Attributes:
        test: the condition, which reads the same in C and in Python.
        broken: what is wrong where it fails, with a place for the value of each parameter:
            "TS={TS} is not a multiple of WPT={WPT}".
    """

    test: Formula
    broken: str

    @property
    def names(self) -> frozenset[str]:
        """The parameters that take part in the rule."""
        return self.test.names

    def holds(self, params: Params) -> bool:
        return bool(self.test(params))

    def sentence(self, params: Params) -> str:
        """What is wrong with `params`."""
        return self.broken.format(**params)


def parameters(text: str) -> tuple[Param, ...]:
    """The parameters that a kernel's text declares, in its order.

    Raises:
        ValueError: if an `#ifndef` is not followed by a complete declaration.
    """
    found = _PARAM.findall(text)
    complete = {name for name, *_ in found}
    for name in _GUARD.findall(text):
        if name not in complete:
            expected = f"#define {name} 1 // its meaning [1, 2, 4]"
            raise ValueError(f"#ifndef {name} must be followed by a line like {expected!r}")
    return tuple(
        Param(name, int(default), meaning, tuple(map(int, choices.split(","))))
        for name, default, meaning, choices in found
    )


def rules(text: str) -> tuple[Rule, ...]:
    """The rules that a kernel's text states, in its order.

    Raises:
        ValueError: if an `#error` is not between `#if !(condition)` and `#endif`.
    """
    found = _RULE.findall(text)
    if len(found) != text.count("#error"):
        raise ValueError("each #error must follow a line '#if !(condition)' and precede '#endif'")
    names = "|".join(p.name for p in parameters(text))
    return tuple(
        Rule(Formula(test), re.sub(rf"\b({names})\b", r"\1={\1}", sentence))
        for test, sentence in found
    )


def predecessor(text: str) -> str | None:
    """The file, without its suffix, of the kernel that this one changes; None for the first."""
    found = _BEFORE.search(text)
    return found[1] if found else None
