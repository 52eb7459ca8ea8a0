"""What translating an expression, a call and a statement have in common: lines of Python, names, places in the text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

from .text import Spot, TextError, near
from .tree import Declaration, Node
from .types import INT, Array, Scalar, Type, length, scalar_of, stride


@dataclass(eq=False)
class Site:
    """A place in the text where something happens that the simulator records or checks.

    Attributes:
        number: it counts the sites of a kernel.
        kind: "load", "store", "atomic", "branch", "loop", "barrier", "multiply-add", "overflow", "division", "unset".
        spot: line and column, and the macro that it came through.
        text: the expression as the reader wrote it.
        scalar, width: for an access the type of the numbers that it moves, and how many a work-item moves at once;
            for a multiply-add its width.
        shape: of an array that is named directly: each of its sizes, and how far one more of that index leads.
        packed: whether vectors may begin anywhere (vload and vstore).
    """

    number: int
    kind: str
    spot: Spot
    text: str = ""
    scalar: Scalar = INT
    width: int = 1
    shape: tuple[tuple[int, int], ...] = ()
    packed: bool = False

    @property
    def line(self) -> int:
        return self.spot.line

    @property
    def column(self) -> int:
        return self.spot.column

    @property
    def stores(self) -> bool:
        return self.kind in ("store", "atomic")

    @property
    def does(self) -> str:
        return "stores to" if self.stores else "reads"


@dataclass(eq=False)
class Variable:
    """A name of the kernel.

    `python` is the Python text for its value; `in_memory`, for a `Memory`: it is an array, or its address is taken.
    `unset`: it was declared without a value, so reading it is looked at.
    """

    name: str
    python: str
    type: Type
    in_memory: bool = False
    const: bool = False
    unset: bool = False
    space: str = "private"


@dataclass
class Value:
    """A translated expression: Python text and type.

    constant is its value if that is known already.
    """

    code: str
    type: Type
    constant: float | None = None


class Writer:
    """Collects the lines of the Python text, and the sites and names that they use."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.sites: list[Site] = []
        self.locals: list[Declaration] = []  # the arrays in local memory
        self.constants: dict[str, object] = {}  # names of the Python text that stand for floats
        self.scopes: list[dict[str, Variable]] = []
        self.macros: Iterable[str] = ()
        self.assigned: set[str] = set()
        self.depth = 1
        self._count = 0

    def fail(self, node: Node | Spot, message: str) -> NoReturn:
        raise TextError(message, node if isinstance(node, Spot) else node.spot)

    # ---- lines
    def emit(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def fresh(self, stem: str = "t") -> str:
        """A name that no other variable of the Python text has."""
        self._count += 1
        return f"{stem}_{self._count}"

    def keep(self, code: str, stem: str = "t") -> str:
        """The name of a variable that holds the value of `code` from now on."""
        name = self.fresh(stem)
        self.emit(f"{name} = {code}")
        return name

    @contextmanager
    def under(self, head: str, mask: str = "") -> Iterator[None]:
        """Lines below `head`; with `mask` they are for these lanes only."""
        self.emit(head)
        self.depth += 1
        start = len(self.lines)
        if mask:
            self.emit(f"mask = {mask}")
        yield
        if len(self.lines) == start:
            self.emit("pass")
        self.depth -= 1

    # ---- sites
    def site(self, kind: str, spot: Spot, text: str = "", of: Type = INT, array: Type | None = None,
             packed: bool = False) -> str:  # fmt: skip
        """A new site, and its name in the Python text; `array` is the type of an array that is named directly."""
        found = Site(len(self.sites), kind, spot, text, scalar_of(of), length(of), packed=packed)
        while isinstance(array, Array):
            found.shape += ((array.n, stride(array.of) // found.scalar.size),)
            array = array.of
        self.sites.append(found)
        return f"s{found.number}"

    # ---- names
    def declare(self, node: Node, name: str, of: Type, **more) -> Variable:
        if name in self.scopes[-1]:
            self.fail(node, f"{name!r} is declared twice")
        variable = Variable(name, self.fresh(name), of, **more)
        self.scopes[-1][name] = variable
        return variable

    def find(self, name: str) -> Variable | None:
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)

    def lookup(self, node: Node, name: str) -> Variable:
        found = self.find(name)
        if found is None:
            known = [*(n for scope in self.scopes for n in scope), *self.macros]
            self.fail(node, f"{name!r} is not declared{near(name, known)}")
        return found
