"""printf, as C prints: Python's % prints numbers alike, vectors and a few forms aside."""

from __future__ import annotations

import math
import re
from typing import Any

from .text import unescaped
from .types import NUMBERS

_PART = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\d*)(?P<precision>\.\d*)?(?:v(?:2|3|4|8|16))?"
    r"(?:hh|hl|h|l)?(?P<kind>[diouxXfFeEgGaAcsp%])"
)
MOST_WIDE = 10_000
_BITS = {s.name: s.bits for s in NUMBERS if s.whole}


def printed(form: str, values: list[Any], kinds: list[str]) -> str:
    """printf's text for one work-item; `form` has its quotes, `kinds` are the scalar types."""
    left = list(zip(values, kinds, strict=True))

    def shown(part: re.Match[str]) -> str:
        if part["kind"] == "%":
            return "%"
        if not left:
            return part.group()  # C does not say what comes out here
        value, scalar = left.pop(0)
        numbers = value if isinstance(value, list) else [value]
        return ",".join(_one(part, x, scalar) for x in numbers)

    return _PART.sub(shown, unescaped(form[1:-1]))


def _one(part: re.Match[str], value: Any, scalar: str) -> str:
    kind, flags, precision = part["kind"], part["flags"], part["precision"]
    digits = "" if precision is None else f".{min(int(precision[1:] or 0), MOST_WIDE)}"
    if isinstance(value, str):
        kind, value = "s", unescaped(value[1:-1])
    elif kind in "csp":
        value = {"c": chr(int(value) & 255), "s": "(null)", "p": f"0x{int(value):x}"}[kind]
        kind = "s"
    elif kind in "diouxX":
        bits = max(32, _BITS.get(scalar, 64))
        value = int(value) & ((1 << bits) - 1)
        value -= (value >> (bits - 1)) << bits if kind in "di" else 0
        flags = flags if kind in "di" else re.sub("[+ ]", "", flags)
        flags = flags if value else flags.replace("#", "")
    elif kind in "aA" and math.isfinite(value):
        digits, value = "", re.sub(r"\.?0*p", "p", float(value).hex())
        kind, value = "s", value.upper() if kind == "A" else value
    if kind == "s" or (kind in "diouxX" and digits) or not math.isfinite(value):
        flags = flags.replace("0", "")
    width = min(int(part["width"] or 0), MOST_WIDE)
    return f"%{flags}{width or ''}{digits}{kind.replace('a', 'f').replace('A', 'F')}" % value
