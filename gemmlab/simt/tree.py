"""The tree that a kernel's text becomes. Every node knows its spot in the text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from .text import Spot
from .types import Scalar, Type, Vector


@dataclass(slots=True)
class Node:
    spot: Spot

    def children(self) -> Iterator[Node]:
        """The nodes right below this one."""
        for name in self.__slots__:
            value = getattr(self, name)
            for child in value if isinstance(value, list) else (value,):
                if isinstance(child, Node):
                    yield child

    def walk(self) -> Iterator[Node]:
        """This node and all below it."""
        yield self
        for child in self.children():
            yield from child.walk()


# ---- expressions
@dataclass(slots=True)
class Number(Node):
    value: float
    type: Scalar


@dataclass(slots=True)
class Text(Node):
    value: str


@dataclass(slots=True)
class Name(Node):
    name: str


@dataclass(slots=True)
class Index(Node):
    array: Node
    index: Node


@dataclass(slots=True)
class Member(Node):
    vector: Node
    name: str


@dataclass(slots=True)
class Call(Node):
    name: str
    args: list[Node]


@dataclass(slots=True)
class Unary(Node):
    op: str
    operand: Node


@dataclass(slots=True)
class Binary(Node):
    op: str
    left: Node
    right: Node


@dataclass(slots=True)
class Assign(Node):
    op: str  # "" for a plain =, "+" for +=
    target: Node
    value: Node


@dataclass(slots=True)
class Step(Node):
    op: str  # ++ or --
    target: Node
    before: bool  # ++i, not i++


@dataclass(slots=True)
class Choice(Node):
    condition: Node
    yes: Node
    no: Node


@dataclass(slots=True)
class Cast(Node):
    type: Type
    operand: Node


@dataclass(slots=True)
class VectorLiteral(Node):
    type: Vector
    parts: list[Node]


@dataclass(slots=True)
class Braces(Node):
    """The values of an array between { and }."""

    items: list[Node]


# ---- statements
@dataclass(slots=True)
class Block(Node):
    body: list[Node]


@dataclass(slots=True)
class Declaration(Node):
    name: str
    type: Type
    space: str
    const: bool
    value: Node | None


@dataclass(slots=True)
class Declarations(Node):
    """Several variables in one statement; unlike a block they stay."""

    items: list[Declaration]


@dataclass(slots=True)
class If(Node):
    condition: Node
    yes: Node
    no: Node | None


@dataclass(slots=True)
class Loop(Node):
    """for, while and do: `first` says whether the condition comes before the body."""

    start: Node | None
    condition: Node | None
    step: Node | None
    body: Node
    first: bool = True


@dataclass(slots=True)
class Switch(Node):
    value: Node
    body: list[Node]


@dataclass(slots=True)
class Case(Node):
    value: Node | None  # None: default


@dataclass(slots=True)
class Jump(Node):
    word: str  # break, continue or return
    value: Node | None = None


@dataclass(slots=True)
class Function(Node):
    name: str
    type: Type
    params: list[Declaration]
    body: Block
    kernel: bool = False
    size: list[Node] = field(default_factory=list)  # what reqd_work_group_size says


def written(node: Node | None, inner: bool = False, within: str | None = None) -> str:
    """An expression much as the reader wrote it.

    `inner` puts an operation in brackets. What came out of another macro than `within` is shown as the macro's name.
    """
    if node is None:
        return ""
    macro = node.spot.macro
    if within is not None and macro and macro != within:
        return macro

    def show(part: Node, inner: bool = False) -> str:
        return written(part, inner, macro)

    if isinstance(node, Number):
        return f"{node.value}" + ("f" if node.type.name == "float" else "")
    if isinstance(node, Name):
        return node.name
    if isinstance(node, Index):
        return f"{show(node.array, True)}[{show(node.index)}]"
    if isinstance(node, Member):
        return f"{show(node.vector, True)}.{node.name}"
    if isinstance(node, Call):
        return f"{node.name}({', '.join(map(show, node.args))})"
    if isinstance(node, Step):
        return f"{node.op}{show(node.target)}" if node.before else f"{show(node.target)}{node.op}"
    shown = "..."
    if isinstance(node, Unary):
        shown = f"{node.op}{show(node.operand, True)}"
    elif isinstance(node, Cast):
        shown = f"({node.type}){show(node.operand, True)}"
    elif isinstance(node, Binary):
        tight = node.op in ("*", "/", "%")
        space = "" if tight else " "
        left, right = (show(x, tight or isinstance(x, Choice)) for x in (node.left, node.right))
        shown = f"{left}{space}{node.op}{space}{right}"
    elif isinstance(node, Choice):
        shown = f"{show(node.condition)} ? {show(node.yes)} : {show(node.no)}"
    return f"({shown})" if inner else shown
