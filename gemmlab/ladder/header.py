"""Read the header of a kernel's file: its idea, its parameters and its rules.

A parameter is a line of the header that begins with its compiler option, which sets the default;
its meaning follows, and the values that an explorer offers. A rule is a condition that reads the
same in C and in Python, and `#error` says what is wrong where it fails (CONTRIBUTING.md has an
example of each).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import CodeType
from typing import Any, NamedTuple

#: Complete parameters of a kernel: the value of each macro by its name.
Params = Mapping[str, int]

#: The largest value of any parameter.
LARGEST = 65536

#: What an expression may use besides parameters.
_FUNCTIONS = {"__builtins__": {"min": min}}

#: The line of a parameter, such as "// Compile:  -DTS=32  side of a tile [16, 32]"; all but the
#: first have blanks in place of "Compile:".
PARAM = re.compile(r"^// (?:Compile:|        )  -D(\w+)=(\d+) +(\S.*) \[([\d, ]+)\]$", re.MULTILINE)
_OPTION = re.compile(r"^//.* -D(\w+)", re.MULTILINE)
#: A rule: the condition, and the sentence for where it fails.
RULE = re.compile(r"^#if !\((.+)\)\n#error (\S.*)\n#endif$", re.MULTILINE)
#: An array in local memory, of floats or of the vectors floatX; and one of its sizes.
_LOCAL = re.compile(r"^ +__local float(X?) \w+((?:\[[^]]+\])+)", re.MULTILINE)
_SIZE = re.compile(r"\[([^]]+)\]")
_MACRO = re.compile(r"^#define (\w+) +(.+?) *(?://.*)?$", re.MULTILINE)
_BEFORE = re.compile(r"^// Before: +(\w+)\.", re.MULTILINE)


@dataclass(frozen=True)
class Param:
    """One macro of a kernel: its default, its meaning, and the values that an explorer offers."""

    name: str
    default: int
    meaning: str
    choices: tuple[int, ...]

    @property
    def least(self) -> int:
        """The smallest legal value: 0 if 0 is offered, else 1."""
        return min(1, *self.choices)


@cache
def _compiled(expression: str) -> CodeType:
    return compile(expression, f"<{expression}>", "eval")


def evaluated(expression: str, params: Params) -> Any:
    """The value of an expression of a kernel's parameters, such as "TSM // WPTM, TSN // WPTN"."""
    return eval(_compiled(expression), _FUNCTIONS, params)


@cache
def names_in(expression: str) -> frozenset[str]:
    """The parameters that an expression depends on."""
    return frozenset(_compiled(expression).co_names) - {"min"}


class Rule(NamedTuple):
    """A constraint on parameters."""

    test: str  # the condition, which reads the same in C and in Python
    broken: str  # what is wrong where it fails, such as "TS={TS} is not a multiple of WPT={WPT}"

    @property
    def names(self) -> frozenset[str]:
        """The parameters that take part in the rule."""
        return names_in(self.test)

    def holds(self, params: Params) -> bool:
        return bool(evaluated(self.test, params))


def parameters(text: str) -> tuple[Param, ...]:
    """Return the parameters in the header of a kernel's text. Raises ValueError if an option lacks
    a default, a meaning, or choices.
    """
    lines = PARAM.findall(text)
    complete = {name for name, *_ in lines}
    for name in _OPTION.findall(text):
        if name not in complete:
            expected = f"// Compile:  -D{name}=1  its meaning [1, 2, 4]"
            raise ValueError(f"the option -D{name} must be in a line like {expected!r}")
    return tuple(
        Param(name, int(default), meaning, tuple(map(int, choices.split(","))))
        for name, default, meaning, choices in lines
    )


def rules(text: str) -> tuple[Rule, ...]:
    """The rules that a kernel's text states. Raises ValueError if an `#error` is not between `#if
    !(condition)` and `#endif`.
    """
    found = RULE.findall(text)
    if len(found) != text.count("#error"):
        raise ValueError("each #error must follow a line '#if !(condition)' and precede '#endif'")
    names = "|".join(p.name for p in parameters(text))
    return tuple(
        Rule(test, re.sub(rf"\b({names})\b", r"\1={\1}", sentence)) for test, sentence in found
    )


def local_floats(text: str) -> str:
    """Return the floats of local memory that a kernel's text declares, as an expression of its
    parameters.
    """
    arrays = [
        " * ".join([*["WIDTH"] * bool(vector), *(f"({size})" for size in _SIZE.findall(shape))])
        for vector, shape in _LOCAL.findall(text)
    ]
    expression = " + ".join(arrays).replace("/", "//") or "0"
    macros = dict(_MACRO.findall(text))
    while names := names_in(expression) & macros.keys():
        for name in names:
            value = macros[name].replace("/", "//")
            expression = re.sub(rf"\b{name}\b", f"({value})", expression)
    return expression


def predecessor(text: str) -> str | None:
    """The file, without its suffix, of the kernel that this one changes; None for the first."""
    found = _BEFORE.search(text)
    return found[1] if found else None


def idea(text: str) -> str:
    """The sentence that a kernel's text begins with, without its name."""
    sentence = " ".join(line.removeprefix("// ") for line in text.split("\n//\n")[0].splitlines())
    words = sentence.partition(": ")[2]
    return words[:1].upper() + words[1:]
