"""What translating an expression, a call and a statement have in common: lines of Python, names,
places in the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

from .text import Spot, TextError
from .tree import Declaration, Node, Variable
from .types import INT, Scalar, Struct, Type, length, scalar_of


@dataclass(eq=False)
class Site:
    """A place in the text where something happens that the simulator records or checks.

    Attributes:
        number: it counts the sites of a kernel.
        kind: "load", "store", "atomic", "branch", "loop", "barrier", "multiply-add", "overflow",
            "division", "unset".
        spot: line and column, and the macro that it came through.
        text: the expression as the reader wrote it.
        scalar, width: the type of the numbers that an access moves, and how many a work-item moves
            at once; of a multiply-add its width.
        struct: whether a whole structure is moved, whose parts may have no value.
        shape: of an array that is named directly: each of its sizes, and how far one more of that
            index leads.
        wide: how many numbers a vector has that must begin at a multiple of them, 0 if it may begin
            anywhere; lead: the first of its numbers that is accessed.
        fence: of a barrier, which memory it orders: 1 local, 2 global, 3 both.
    """

    number: int
    kind: str
    spot: Spot
    text: str
    scalar: Scalar
    width: int
    struct: bool
    shape: tuple[tuple[int, int], ...] = ()
    wide: int = 0
    lead: int = 0
    fence: int = 3

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


class Writer:
    """Collects the lines of the Python text, and the sites and names that they use."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.sites: list[Site] = []
        self.locals: list[Declaration] = []  # the arrays in local memory
        self.constants: dict[str, object] = {}  # names of the Python text that stand for floats
        self.names: dict[Variable, str] = {}  # of the kernel's variables in the Python text
        self.unset: set[Variable] = set()  # declared without a value: reading them is checked
        self.depth = 1
        self._count = 0

    def fail(self, node: Node, message: str) -> NoReturn:
        raise TextError(message, node.spot)

    # ---- lines
    def emit(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def fresh(self, stem: str = "t") -> str:
        self._count += 1
        return f"{stem}_{self._count}"

    def keep(self, code: str, stem: str = "t") -> str:
        """The name of a variable that holds the value of `code` from now on."""
        name = self.fresh(stem)
        self.emit(f"{name} = {code}")
        return name

    def named(self, code: str) -> str:
        """The same value under a name, so that it is computed once, and now."""
        return code if code.isidentifier() else self.keep(code)

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

    def site(self, kind: str, spot: Spot, text: str = "", of: Type = INT, **more) -> str:
        """A new site, and its name in the Python text; `more` are other attributes of `Site`."""
        number, scalar = len(self.sites), scalar_of(of)
        self.sites.append(
            Site(number, kind, spot, text, scalar, length(of), isinstance(of, Struct), **more)
        )
        return f"s{number}"

    def declare(self, variable: Variable) -> str:
        """A new variable of the Python text for one of the kernel's."""
        self.names[variable] = self.fresh(variable.name)
        return self.names[variable]
