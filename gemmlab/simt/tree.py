"""The tree that a kernel's text becomes. Every node knows its spot in the text, every expression
its type.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .text import Spot, TextError, Token
from .types import VOID, Array, Field, Struct, Type, Vector


@dataclass(slots=True)
class Node:
    spot: Spot

    def children(self) -> Iterator[Node]:
        for name in self.__slots__:
            value = getattr(self, name)
            for child in value if isinstance(value, list) else (value,):
                if isinstance(child, Node) and not isinstance(child, Function):
                    yield child

    def walk(self) -> Iterator[Node]:
        yield self
        for child in self.children():
            yield from child.walk()


# ---- expressions
@dataclass(slots=True)
class Expr(Node):
    """An expression with its type and its tokens. Each implicit conversion is a node, too."""

    type: Type = field(default=VOID, kw_only=True)
    source: Sequence[Token] = field(default=(), kw_only=True, repr=False, compare=False)


@dataclass(slots=True)
class Number(Expr):
    value: float


@dataclass(slots=True)
class Text(Expr):
    value: str


@dataclass(slots=True)
class Name(Expr):
    name: str
    variable: Variable


@dataclass(slots=True)
class Index(Expr):
    """An element of an array, of what a pointer points to, or of a vector."""

    array: Expr
    index: Expr


@dataclass(slots=True)
class Member(Expr):
    """Numbers of a vector, by which (`at`), such as v.xy."""

    vector: Expr
    name: str
    at: tuple[int, ...]


@dataclass(slots=True)
class Part(Expr):
    """A field of a structure."""

    of: Expr
    field: Field


@dataclass(slots=True)
class Call(Expr):
    """A call of a function of the text (`target`), or of one that is built in."""

    name: str
    args: list[Expr]
    target: Function | None = None


@dataclass(slots=True)
class Unary(Expr):
    op: str
    operand: Expr


@dataclass(slots=True)
class Binary(Expr):
    op: str
    left: Expr
    right: Expr


@dataclass(slots=True)
class Assign(Expr):
    """`value` is what is stored if `op` is "" (a plain =), else the right side of +=, -= ...

    Then `common` is the type in which the operation is carried out; ++i and i++ are i += 1, with
    "before" and "after" as the `step`.
    """

    op: str
    target: Expr
    value: Expr
    common: Type = VOID
    step: str = ""


@dataclass(slots=True)
class Choice(Expr):
    condition: Expr
    yes: Expr
    no: Expr


@dataclass(slots=True)
class Cast(Expr):
    """A conversion; one that is not written in the text has no tokens."""

    operand: Expr


@dataclass(slots=True)
class VectorLiteral(Expr):
    parts: list[Expr]


@dataclass(slots=True)
class Braces(Expr):
    """The values in { }: `filled` are pairs of byte offset and value, the rest is 0."""

    filled: list[tuple[int, Expr]] = field(default_factory=list)


@dataclass(slots=True)
class Compound(Expr):
    """A value without a name, such as (int[]){1, 2}."""

    variable: Variable
    value: Braces


@dataclass(eq=False)
class Variable:
    """A name that is declared.

    Attributes:
        space: "private", "local", "constant" or "global" (only what pointers point to).
        const: whether it can only be read; constant: its value, if that is a number that is known.
        assigned: whether it is changed after its declaration; addressed: whether a pointer to it is
            made.
    """

    name: str
    type: Type
    spot: Spot
    space: str = "private"
    const: bool = False
    constant: float | None = None
    assigned: bool = False
    addressed: bool = False

    @property
    def in_memory(self) -> bool:
        """Whether it has an address; else it is like a register."""
        return self.addressed or self.space != "private" or isinstance(self.type, (Array, Struct))


# ---- statements
@dataclass(slots=True)
class Block(Node):
    """Statements; without a `scope`, as in a declaration of several variables, their names stay."""

    body: list[Node]
    scope: bool = True


@dataclass(slots=True)
class Declaration(Node):
    variable: Variable
    value: Expr | None


@dataclass(slots=True)
class If(Node):
    condition: Expr
    yes: Node
    no: Node | None


@dataclass(slots=True)
class Loop(Node):
    """for, while and do: `first` says whether the condition comes before the body."""

    start: Node | None
    condition: Expr | None
    step: Node | None
    body: Node
    first: bool = True


@dataclass(slots=True)
class Switch(Node):
    value: Expr
    body: list[Node]


@dataclass(slots=True)
class Case(Node):
    numbers: range | None  # None: default


@dataclass(slots=True)
class Jump(Node):
    word: str  # break, continue, return or goto
    value: Expr | None = None
    label: str = ""  # of a goto


@dataclass(slots=True)
class Label(Node):
    name: str


@dataclass(slots=True, eq=False)
class Function(Node):
    """A function; `body` is None if there is only a prototype.

    Attributes:
        size: what reqd_work_group_size says.
        problem: why it cannot be translated, if something in it is not known to this simulator.
    """

    name: str
    type: Type
    params: list[Variable]
    body: Block | None
    kernel: bool = False
    size: tuple[int, ...] = ()
    overloadable: bool = False
    problem: TextError | None = None

    def __hash__(self) -> int:
        return id(self)


def owner(node: Expr) -> Expr:
    """What a field, or a number of a vector, is a part of; anything else itself."""
    while True:
        if isinstance(node, Member):
            node = node.vector
        elif isinstance(node, Index) and isinstance(node.array.type, Vector):
            node = node.array
        elif isinstance(node, Part):
            node = node.of
        else:
            return node


def plain(node: Node) -> Node:
    """An expression without its implicit conversions."""
    while isinstance(node, Cast) and not node.source:
        node = node.operand
    return node


def written(node: Node) -> str:
    """An expression as the reader wrote it; what a macro in it becomes is shown as its name."""
    node = plain(node)
    assert isinstance(node, Expr)
    around = frozenset.intersection(*(t.hidden for t in node.source)) if node.source else None
    shown, before = "", None
    for token in node.source:
        if node.spot.macro or token.hidden == around:
            shown += " " * token.space + token.text
        elif token.spot.macro and token.spot != before:
            shown += " " * token.space + token.spot.macro
            before = token.spot
    return shown.strip() or "this"
