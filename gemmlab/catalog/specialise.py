"""One text for many uses, reduced to what a single use needs: what `matmul` runs is written from the production texts.

A production text holds a dozen ideas, and its parameters say which of them a product needs. The compiler would skip
the others; a reader should not have to. What is left here compiles to the same kernel, word for word, and each line
knows where it came from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ..caches import cached


class Specialised(NamedTuple):
    """A text with only what one set of values needs.

    Attributes:
        text: OpenCL C.
        lines: for each line of it the line of the general text, from 1.
    """

    text: str
    lines: tuple[int, ...]


class _Block(NamedTuple):
    """A line of a text, with those that continue it after a backslash."""

    number: int
    lines: list[str]

    @property
    def directive(self) -> tuple[str, str]:
        """The word after # and what follows it, without comments; two empty strings for other lines."""
        found = re.match(r"\s*#\s*(\w+)\s*(.*)", re.sub(r"//.*", "", " ".join(self.lines).replace("\\ ", " ")))
        return (found[1], found[2].strip()) if found else ("", "")


def specialise(text: str, values: Mapping[str, int], known: Mapping[str, bool] | None = None) -> Specialised:
    """Reduce a kernel's text to what it says for these values.

    Conditions are decided and their lines removed, rules included; parameters get their values; what is defined and
    no longer used goes. A condition about anything else stays, with all that depends on it.

    Args:
        text: OpenCL C, as in ``kernels/``.
        values: of the macros that are set from outside, by name: the kernel's parameters.
        known: other names, by whether the compiler defines them, such as ``{"__NV_CL_C_VERSION": True}``.
    """
    return _specialised(text, tuple(values.items()), tuple((known or {}).items()))


@cached(64)
def _specialised(text: str, values: tuple[tuple[str, int], ...], known: tuple[tuple[str, bool], ...]) -> Specialised:
    blocks = _used(_decided(_blocks(text), dict(values), dict(known)))
    numbered = [(block.number + i, line) for block in blocks for i, line in enumerate(block.lines)]
    kept = [
        (number, line)
        for at, (number, line) in enumerate(numbered)
        if line.strip() or (at and numbered[at - 1][1].strip())  # one empty line in place of several
    ]
    return Specialised("\n".join(line for _, line in kept) + "\n", tuple(number for number, _ in kept))


def _blocks(text: str) -> list[_Block]:
    blocks: list[_Block] = []
    goes_on = False
    for number, line in enumerate(text.rstrip("\n").split("\n"), 1):
        if goes_on:
            blocks[-1].lines.append(line)
        else:
            blocks.append(_Block(number, [line]))
        goes_on = line.endswith("\\")
    return blocks


def _decided(blocks: list[_Block], values: dict[str, int], known: dict[str, bool]) -> list[_Block]:
    """Without the lines whose condition fails, and without the conditions; with the values of parameters."""
    kept: list[_Block] = []
    macros = {name: str(value) for name, value in values.items()}  # what each stands for
    known = known | {_defines(block): False for block in blocks} | dict.fromkeys(values, True)  # whether it is defined
    around: list[_Condition] = []
    for block, after in zip(blocks, [*blocks[1:], _Block(0, [""])], strict=True):
        word, rest = block.directive
        live = all(condition.holds for condition in around)
        if word in ("if", "ifdef", "ifndef"):
            asked = _asked(word, rest)
            default = _defines(after) if asked == f"!defined({_defines(after)})" else ""  # of what a launch may set
            holds = _holds(asked, macros, known) if live and not default else default in values or None
            around.append(_Condition(live and holds is not False, bool(holds), holds is not None))
            kept += [block] * (live and holds is None)
        elif word in ("elif", "else", "endif"):
            last = around[-1]
            if not last.decided:
                kept += [block] * live
            elif word != "endif":
                last.holds = not last.held and (word == "else" or bool(_holds(rest, macros, known)))
                last.held = last.held or last.holds
            if word == "endif":
                around.pop()
        elif live:
            name = _defines(block)
            if name in values:
                block = _Block(block.number, [" ".join(("#define", name, macros[name], *_comment(block)))])
            elif name:
                known[name] = True
                macros |= {name: rest[len(name) :].strip()} if rest[len(name) :][:1] != "(" else {}
            kept.append(block)
    return kept


@dataclass
class _Condition:
    """An open `#if`: whether its present part counts, whether one of its parts has; and whether that is known."""

    holds: bool
    held: bool
    decided: bool


def _defines(block: _Block) -> str:
    """The name of the macro that a line defines, or nothing."""
    word, rest = block.directive
    name = re.match(r"\w+", rest)
    return name[0] if word == "define" and name else ""


def _comment(block: _Block) -> list[str]:
    return re.findall(r"//.*", block.lines[0])


def _asked(word: str, condition: str) -> str:
    """The condition of an `#if`, `#ifdef` or `#ifndef`, as `#if` would ask it."""
    return condition if word == "if" else f"{'!' * (word == 'ifndef')}defined({condition})"


def _holds(condition: str, macros: Mapping[str, str], known: Mapping[str, bool]) -> bool | None:
    """Whether the condition of an `#if` holds; None if it asks for something unknown."""
    try:
        condition = re.sub(r"\bdefined\s*\(\s*(\w+)\s*\)", lambda asked: str(int(known[asked[1]])), condition)
        return bool(eval(_python(_expanded(condition, macros)), {"__builtins__": {}}))
    except (KeyError, NameError):
        return None


def _expanded(expression: str, defined: Mapping[str, str]) -> str:
    """An expression without macros, each replaced by what it stands for."""
    names = [name for name in re.findall(r"[A-Za-z_]\w*", expression) if name in defined]
    if not names:
        return expression
    return _expanded(re.sub(r"[A-Za-z_]\w*", lambda m: f"({defined[m[0]]})" if m[0] in defined else m[0], expression),
                     defined)  # fmt: skip


def _python(expression: str) -> str:
    """A condition of whole numbers that are not negative, as Python writes it."""
    for c, python in ((r"&&", " and "), (r"\|\|", " or "), (r"!(?!=)", " not "), (r"/", "//")):
        expression = re.sub(c, python, expression)
    return expression.strip()


def _used(blocks: list[_Block]) -> list[_Block]:
    """Without macros that nothing uses, and without the comments that belonged to them alone."""
    while True:
        words = [set(re.findall(r"[A-Za-z_]\w*", _code(block))) for block in blocks]
        unused = {
            at
            for at, block in enumerate(blocks)
            if block.directive[0] == "define"
            and not any(_defines(block) in used for other, used in enumerate(words) if other != at)
        }
        if not unused:
            return blocks
        blocks = [block for at, block in enumerate(blocks) if at not in unused]


def _code(block: _Block) -> str:
    """A line as the compiler sees it; instructions that a comment hides from it count, too (see `opencl.build`)."""
    return re.sub(r"//(?!@ ).*", "", "\n".join(block.lines))
