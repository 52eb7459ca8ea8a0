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

    def children(self) -> Sequence[Node]:
        """Return the nodes directly below this one, in the order of the source code.

        A function that is called is not part of the call.
        """
        return ()

    def walk(self) -> Iterator[Node]:
        nodes: list[Node] = [self]
        while nodes:
            node = nodes.pop()
            yield node
            nodes.extend(node.children()[::-1])


def present(*nodes: Node | None) -> Sequence[Node]:
    return [node for node in nodes if node is not None]


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

    def children(self) -> Sequence[Node]:
        return self.array, self.index


@dataclass(slots=True)
class Member(Expr):
    """Numbers of a vector, by which (`at`), such as v.xy."""

    vector: Expr
    name: str
    at: tuple[int, ...]

    def children(self) -> Sequence[Node]:
        return (self.vector,)


@dataclass(slots=True)
class Part(Expr):
    """A field of a structure."""

    of: Expr
    field: Field

    def children(self) -> Sequence[Node]:
        return (self.of,)


@dataclass(slots=True)
class Call(Expr):
    """A call of a function of the text (`target`), or of one that is built in."""

    name: str
    args: list[Expr]
    target: Function | None = None

    def children(self) -> Sequence[Node]:
        return self.args


@dataclass(slots=True)
class Unary(Expr):
    op: str
    operand: Expr

    def children(self) -> Sequence[Node]:
        return (self.operand,)


@dataclass(slots=True)
class Binary(Expr):
    op: str
    left: Expr
    right: Expr

    def children(self) -> Sequence[Node]:
        return self.left, self.right


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

    def children(self) -> Sequence[Node]:
        return self.target, self.value


@dataclass(slots=True)
class Choice(Expr):
    condition: Expr
    yes: Expr
    no: Expr

    def children(self) -> Sequence[Node]:
        return self.condition, self.yes, self.no


@dataclass(slots=True)
class Cast(Expr):
    """A conversion; one that is not written in the text has no tokens."""

    operand: Expr

    def children(self) -> Sequence[Node]:
        return (self.operand,)


@dataclass(slots=True)
class VectorLiteral(Expr):
    parts: list[Expr]

    def children(self) -> Sequence[Node]:
        return self.parts


@dataclass(slots=True)
class Braces(Expr):
    """The values in { }: `filled` are pairs of byte offset and value, the rest is 0."""

    filled: list[tuple[int, Expr]] = field(default_factory=list)

    def children(self) -> Sequence[Node]:
        return [value for _, value in self.filled]


@dataclass(slots=True)
class Compound(Expr):
    """A value without a name, such as (int[]){1, 2}."""

    variable: Variable
    value: Braces

    def children(self) -> Sequence[Node]:
        return (self.value,)


@dataclass(slots=True)
class Statements(Expr):
    """({ ... }): statements, and the expression after them that is its value, if there is one."""

    body: list[Node]
    value: Expr | None

    def children(self) -> Sequence[Node]:
        return present(*self.body, self.value)


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

    def children(self) -> Sequence[Node]:
        return self.body


@dataclass(slots=True)
class Declaration(Node):
    variable: Variable
    value: Expr | None

    def children(self) -> Sequence[Node]:
        return present(self.value)


@dataclass(slots=True)
class If(Node):
    condition: Expr
    yes: Node
    no: Node | None

    def children(self) -> Sequence[Node]:
        return present(self.condition, self.yes, self.no)


@dataclass(slots=True)
class Loop(Node):
    """for, while and do: `first` says whether the condition comes before the body."""

    start: Node | None
    condition: Expr | None
    step: Node | None
    body: Node
    first: bool = True

    def children(self) -> Sequence[Node]:
        return present(self.start, self.condition, self.step, self.body)


@dataclass(slots=True)
class Switch(Node):
    value: Expr
    body: list[Node]

    def children(self) -> Sequence[Node]:
        return self.value, *self.body


@dataclass(slots=True)
class Case(Node):
    numbers: range | None  # None: default


@dataclass(slots=True)
class Jump(Node):
    word: str  # break, continue, return or goto
    value: Expr | None = None
    label: str = ""  # of a goto

    def children(self) -> Sequence[Node]:
        return present(self.value)


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

    def children(self) -> Sequence[Node]:
        return present(self.body)

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
