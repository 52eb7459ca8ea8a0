"""On which variables the end of a loop depends: a loop in which all of these repeat never ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from . import tree
from .meaning import known
from .tree import Node, Variable
from .types import Vector

#: Built-in functions whose result depends on nothing but their arguments.
PURE = {"min", "max", "clamp", "abs", "mul24", "mad24", "select", "any", "all"}


def deciding(
    parts: Iterable[Node | None], condition: Node | None = None
) -> tuple[Variable, ...] | None:
    """The variables that decide how often a loop iterates; None if memory or functions do.

    They are those of all conditions in the loop, and whatever is assigned to them there.

    Args:
        parts: statements of the loop; condition: its own.
    """
    nodes = [n for part in (*parts, condition) if part is not None for n in part.walk()]
    values: dict[Variable, list[Node]] = {}
    for node in nodes:
        if isinstance(node, tree.Assign):
            target = tree.owner(node.target)
            if isinstance(target, tree.Name):
                values.setdefault(target.variable, []).append(node.value)
        elif isinstance(node, tree.Declaration) and node.value is not None:
            values.setdefault(node.variable, []).append(node.value)
    wanted = [c for c in (condition, *_conditions(nodes)) if not _always(c)]
    variables: dict[Variable, None] = {}
    while wanted:
        expression = wanted.pop(0)
        for node in expression.walk() if expression is not None else ():
            if not _is_plain(node):
                return None
            if isinstance(node, tree.Name) and node.variable not in variables:
                variables[node.variable] = None
                wanted += values.get(node.variable, [])
    return tuple(variables)


def _conditions(nodes: Iterable[Node]) -> Iterator[Node | None]:
    for node in nodes:
        if isinstance(node, (tree.If, tree.Loop, tree.Choice)):
            yield node.condition
        elif isinstance(node, tree.Switch):
            yield node.value
        elif isinstance(node, tree.Binary) and node.op in ("&&", "||"):
            yield node.left


def _always(condition: Node | None) -> bool:
    """Whether a condition holds for all values: that an unsigned number is at least 0."""
    if not isinstance(condition, tree.Binary) or condition.op not in (">=", "<="):
        return False
    sides = condition.left, condition.right
    large, small = sides if condition.op == ">=" else sides[::-1]
    scalar = large.type.scalar
    return scalar.whole and scalar.least == 0 and known(small) == 0


def _is_plain(node: Node) -> bool:
    """Whether the value of an expression depends on its parts alone."""
    if isinstance(node, tree.Call):
        return node.target is None and (node.name in PURE or node.name.startswith("get_"))
    if isinstance(node, tree.Index):
        return isinstance(node.array.type, Vector)
    if isinstance(node, tree.Unary):
        return node.op not in "*&"
    return not isinstance(node, (tree.Part, tree.Compound, tree.Text))
