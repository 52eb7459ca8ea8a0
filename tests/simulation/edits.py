"""Edits of a kernel's text that make it wrong: a barrier less, an index shifted by one, a guard
that always holds.
"""

from __future__ import annotations

from typing import NamedTuple

from clscope import tree
from clscope.parser import Parser
from clscope.text import Preprocessor, Spot, Token, tokens_of


class Edit(NamedTuple):
    """What was changed ("barrier", "index" or "guard"), where, and the text that came of it."""

    what: str
    line: int
    column: int
    source: str

    def __str__(self) -> str:
        return (
            f"{self.what} in line {self.line}:{self.column}: "
            f"{self.source.splitlines()[self.line - 1].strip()}"
        )


def edits(source: str, defines: dict[str, int]) -> list[Edit]:
    """Every such edit of what a kernel with these parameters carries out, macros included."""
    preprocessor = Preprocessor(defines)
    functions, _ = Parser(preprocessor.run(source)).file()
    nodes = [n for f in functions for n in f.body.walk()]
    tokens = tokens_of(source)
    place = {(t.spot.line, t.spot.column): i for i, t in enumerate(tokens)}
    # by what and which token: from, to, new text
    changes: dict[tuple[str, int], tuple[int, int, str]] = {}
    macros = [m for m in preprocessor.macros.values() if m.line]
    used = {n.spot.macro for n in nodes} | {t.text for m in macros for t in m.body}
    spots = [n.spot for n in nodes if isinstance(n, tree.Index) and not n.spot.macro]
    spots += [t.spot for m in macros if m.name in used for t in m.body]
    for at in (place[spot.line, spot.column] for spot in spots):
        if tokens[at].text != "[":  # *p
            continue
        end = offset(source, tokens[closing(tokens, at)].spot)
        changes["index", at] = (end, end, " + 1")
    for n in nodes:
        if n.spot.macro:
            continue
        at = place[n.spot.line, n.spot.column]
        first = offset(source, n.spot)
        if isinstance(n, tree.Call) and n.name == "barrier":
            changes["barrier", at] = (first, source.index(";", first), "")
        elif isinstance(n, tree.If):
            opened = offset(source, tokens[at + 1].spot) + 1
            changes["guard", at] = (opened, opened, "1 || ")
        elif isinstance(n, tree.Choice):
            changes["guard", at] = (first, first, "|| 1 ")
    return [
        Edit(what, (spot := tokens[at].spot).line, spot.column, source[:start] + new + source[end:])
        for (what, at), (start, end, new) in sorted(changes.items())
    ]


def offset(source: str, spot: Spot) -> int:
    """Where a place is in the text, counted in characters."""
    lines = source.split("\n")
    return sum(len(line) + 1 for line in lines[: spot.line - 1]) + spot.column - 1


def closing(tokens: list[Token], at: int) -> int:
    """The bracket that closes the one at this place."""
    depth = 0
    for number in range(at, len(tokens)):
        depth += (tokens[number].text == "[") - (tokens[number].text == "]")
        if depth == 0:
            return number
    raise ValueError("a bracket without an end")
