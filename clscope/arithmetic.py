"""The operators of C: how tightly they bind, and what they make of numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

#: Operators by how tightly they bind, the loosest first.
LEVELS = [",", "= += -= *= /= %= &= |= ^= <<= >>=", "?", "||", "&&", "|", "^", "&", "== !=",
          "< > <= >=", "<< >>", "+ -", "* / %"]  # fmt: skip
LEVEL = {op: level for level, ops in enumerate(LEVELS) for op in ops.split()}
ASSIGNMENT, CHOICE = LEVEL["="], LEVEL["?"]
COMPARISONS = {"<", ">", "<=", ">=", "==", "!="}


def quotient_of(a: int, b: int) -> int:
    """Return a / b, rounded towards zero as in C; b is not 0."""
    down = a // b
    return down + ((down < 0) & (down * b != a))


def remainder_of(a: int, b: int) -> int:
    """Return the remainder of a / b, which has the sign of a."""
    return a - b * quotient_of(a, b)


#: The binary operators, as C defines them; no divisor is 0.
BINARY: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": quotient_of,
    "%": remainder_of,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "&&": lambda a, b: bool(a and b),
    "||": lambda a, b: bool(a or b),
}

UNARY: dict[str, Callable[..., Any]] = {
    "+": operator.pos,
    "-": operator.neg,
    "!": operator.not_,
    "~": lambda x: ~int(x),
}
