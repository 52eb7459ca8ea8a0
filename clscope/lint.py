"""What C allows and is rarely meant, and where a text rounds numbers: read from the tree alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from . import tree
from .finding import Finding
from .meaning import known
from .types import Pointer, Type


def roundings(functions: Iterable[tree.Function]) -> Iterator[Finding]:
    """Where a text rounds numbers, or takes the bits of a float: few digits do not show it."""
    for node in (n for f in functions if f.body for n in f.body.walk()):
        if isinstance(node, tree.Call):
            rounds = node.target is None and bool(_ROUNDS.match(node.name))
        elif isinstance(node, tree.Cast):
            rounds = _rounds(node.operand.type, node.type)
        elif isinstance(node, tree.Assign) and node.op:
            rounds = _rounds(node.common, node.target.type)
        else:
            continue
        if rounds:
            spot, text = node.spot, f"{tree.written(node)} rounds"
            yield Finding("inaccurate", text, spot.line, spot.column, macro=spot.macro)


#: Built-in functions whose results have fewer digits than floats, or are not floats.
_ROUNDS = re.compile(r"vstorea?_half|convert_half|as_u?(char|short|int|long)|(round|rint|trunc)$")


def _rounds(of: Type, to: Type) -> bool:
    if isinstance(of, Pointer) and isinstance(to, Pointer):
        return not of.to.scalar.whole and of.to.scalar is not to.to.scalar
    if isinstance(of, Pointer) or isinstance(to, Pointer) or of.scalar.whole:
        return False
    return to.scalar.whole or to.scalar.size < of.scalar.size


def slips(functions: Iterable[tree.Function]) -> Iterator[Finding]:
    """What C allows, but is rarely meant: "slip" or "whole division"."""
    for node in (n for f in functions if f.body for n in f.body.walk()):
        kind, text = _slip(node)
        if kind:
            yield Finding(kind, text, node.spot.line, node.spot.column, macro=node.spot.macro)


def _slip(node: tree.Node) -> tuple[str, str]:
    if isinstance(node, (tree.If, tree.Loop)) and node.condition is not None:
        condition = tree.plain(node.condition)
        if isinstance(condition, tree.Assign) and not condition.op:
            return "slip", f"{tree.written(condition)}: '=' assigns, and '==' compares"
    if isinstance(node, tree.Index):
        index = tree.plain(node.index)
        if isinstance(index, tree.Binary) and index.op == ",":
            text = "only the part after the comma is the index"
            return "slip", f"{tree.written(node)}: {text}"
    if isinstance(node, tree.Binary) and node.op == "/" and node.type.scalar.whole:
        left, right = known(node.left), known(node.right)
        if left is not None and right and left % right:
            text = f"an integer division, which gives {known(node)}"
            return "whole division", f"{tree.written(node)}: {text}"
    if isinstance(node, tree.Cast) and not node.type.scalar.whole:
        inner = tree.plain(node.operand)
        if isinstance(inner, tree.Binary) and inner.op == "/" and inner.type.scalar.whole:
            text = "an integer division, which discards the remainder"
            return "whole division", f"{tree.written(inner)}: {text}"
    return "", ""
