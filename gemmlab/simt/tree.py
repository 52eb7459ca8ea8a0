"""The tree that a kernel's text becomes. Every node knows its spot in the text, every expression
its type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from .text import Spot, TextError
from .types import FLOAT, VOID, Array, Field, Struct, Type, Vector


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
    """An expression with its type. Each implicit conversion is a node, `Convert`."""

    type: Type = field(default=VOID, kw_only=True)


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

    Then `common` is the type in which the operation is carried out.
    """

    op: str
    target: Expr
    value: Expr
    common: Type = VOID


@dataclass(slots=True)
class Step(Expr):
    op: str  # ++ or --
    target: Expr
    before: bool  # ++i, not i++


@dataclass(slots=True)
class Choice(Expr):
    condition: Expr
    yes: Expr
    no: Expr


@dataclass(slots=True)
class Cast(Expr):
    operand: Expr


@dataclass(slots=True)
class Convert(Expr):
    """A conversion that is not written in the text."""

    operand: Expr


@dataclass(slots=True)
class VectorLiteral(Expr):
    parts: list[Expr]


@dataclass(slots=True)
class Braces(Expr):
    """The values in { }; `filled` are pairs of byte offset and value, the rest is 0."""

    items: list[Expr]
    filled: list[tuple[int, Expr]] = field(default_factory=list)
    # designators such as [2] or .x before items, by number
    names: dict[int, list] = field(default_factory=dict)


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
        outside: whether it is declared outside of all functions.
    """

    name: str
    type: Type
    space: str = "private"
    const: bool = False
    constant: float | None = None
    assigned: bool = False
    addressed: bool = False
    outside: bool = False

    @property
    def in_memory(self) -> bool:
        """Whether it has an address; else it is like a register."""
        return self.addressed or self.space != "private" or isinstance(self.type, (Array, Struct))


# ---- statements
@dataclass(slots=True)
class Block(Node):
    body: list[Node]


@dataclass(slots=True)
class Declaration(Node):
    variable: Variable
    value: Expr | None

    @property
    def name(self) -> str:
        return self.variable.name

    @property
    def type(self) -> Type:
        return self.variable.type

    @property
    def space(self) -> str:
        return self.variable.space


@dataclass(slots=True)
class Declarations(Node):
    """Several variables in one statement; unlike a block they stay."""

    items: list[Declaration]


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
        key: its name, made unique if it is overloaded.
        size: what reqd_work_group_size says.
        problem: why it cannot be translated, if something in it is not known to this simulator.
    """

    name: str
    type: Type
    params: list[Declaration]
    body: Block | None
    kernel: bool = False
    size: list[Expr] = field(default_factory=list)
    key: str = ""
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
    while isinstance(node, Convert):
        node = node.operand
    return node


def written(node: Node | None, inner: bool = False, within: str | None = None) -> str:
    """An expression much as the reader wrote it.

    `inner` puts an operation in brackets. What came out of another macro than `within` is shown as
    the macro's name.
    """
    if node is None:
        return ""
    node = plain(node)
    macro = node.spot.macro
    if within is not None and macro and macro != within:
        return macro
    form, closed = _FORMS.get(type(node), (lambda node, show: "...", False))
    shown = form(node, lambda part, inner=False: written(part, inner, macro))
    return f"({shown})" if inner and not closed else shown


def _part(node: Part, show: Callable) -> str:
    owner = node.of
    if isinstance(owner, Unary) and owner.op == "*":
        return f"{show(owner.operand, True)}->{node.field.name}"
    return f"{show(owner, True)}.{node.field.name}"


def _step(node: Step, show: Callable) -> str:
    return f"{node.op}{show(node.target)}" if node.before else f"{show(node.target)}{node.op}"


def _binary(node: Binary, show: Callable) -> str:
    tight = node.op in ("*", "/", "%")
    left, right = (show(x, tight or isinstance(x, Choice)) for x in (node.left, node.right))
    return f"{left}{node.op}{right}" if tight else f"{left} {node.op} {right}"


def _all(parts: list[Expr], show: Callable) -> str:
    return ", ".join(map(show, parts))


#: How each kind is written, and whether it needs no brackets.
_FORMS: dict[type, tuple[Callable, bool]] = {
    Number: (lambda n, show: f"{n.value}" + ("f" if n.type is FLOAT else ""), True),
    Name: (lambda n, show: n.name, True),
    Text: (lambda n, show: n.value, True),
    Index: (lambda n, show: f"{show(n.array, True)}[{show(n.index)}]", True),
    Member: (lambda n, show: f"{show(n.vector, True)}.{n.name}", True),
    Part: (_part, True),
    Call: (lambda n, show: f"{n.name}({_all(n.args, show)})", True),
    VectorLiteral: (lambda n, show: f"({n.type})({_all(n.parts, show)})", True),
    Step: (_step, True),
    Unary: (lambda n, show: f"{n.op}{show(n.operand, True)}", False),
    Cast: (lambda n, show: f"({n.type}){show(n.operand, True)}", False),
    Binary: (_binary, False),
    Assign: (lambda n, show: f"{show(n.target)} {n.op}= {show(n.value)}", False),
    Choice: (lambda n, show: f"{show(n.condition)} ? {show(n.yes)} : {show(n.no)}", False),
}
