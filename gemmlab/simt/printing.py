"""printf, as C prints: flags, widths, precisions, lengths, and vectors."""

from __future__ import annotations

import math
import re

from .parse import unescaped
from .types import NUMBERS

_PART = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\d*)(?P<precision>\.\d*)?(?P<vector>v(?:2|3|4|8|16))?"
    r"(?P<length>hh|hl|h|l)?(?P<kind>[diouxXfFeEgGaAcsp%])"
)
MOST_WIDE = 10_000
_BITS = {s.name: s.bits for s in NUMBERS if s.whole}


def printed(form: str, values: list, kinds: list[str]) -> str:
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


def _one(part: re.Match[str], value, scalar: str) -> str:
    kind, flags, sign = part["kind"], part["flags"], ""
    width = min(int(part["width"] or 0), MOST_WIDE)
    given = part["precision"]
    precision = None if given is None else min(int(given[1:] or 0), MOST_WIDE)
    zeros = "0" in flags and "-" not in flags
    if isinstance(value, str):
        digits, zeros = unescaped(value[1:-1])[:precision], False
    elif kind in "csp":
        digits = {"c": chr(int(value) & 255), "s": "(null)", "p": f"0x{int(value):x}"}[kind]
        zeros = False
    elif kind in "diouxX":
        sign, digits = _whole(kind, int(value), scalar, flags, precision)
        zeros = zeros and precision is None
    else:
        sign, digits = _float(kind, float(value), flags, precision)
        zeros = zeros and math.isfinite(value)
    text = sign + (digits.rjust(width - len(sign), "0") if zeros else digits)
    return text.ljust(width) if "-" in flags else text.rjust(width)


def _sign(negative: bool, flags: str) -> str:
    return "-" if negative else next((sign for sign in "+ " if sign in flags), "")


def _whole(
    kind: str, value: int, scalar: str, flags: str, precision: int | None
) -> tuple[str, str]:
    """A number's sign or prefix, and its digits."""
    bits = max(32, _BITS.get(scalar, 64))
    value &= (1 << bits) - 1
    sign = f"0{kind}" if "#" in flags and kind in "xX" and value else ""
    if kind in "di":
        value -= (value >> (bits - 1)) << bits
        sign = _sign(value < 0, flags)
    digits = format(abs(value), "d" if kind in "diu" else kind).rjust(precision or 0, "0")
    digits = "" if precision == 0 and value == 0 else digits
    return sign, f"0{digits}" if "#" in flags and kind == "o" and digits[:1] != "0" else digits


def _float(kind: str, value: float, flags: str, precision: int | None) -> tuple[str, str]:
    sign = _sign(math.copysign(1, value) < 0 and not math.isnan(value), flags)
    if kind in "aA" and math.isfinite(value):
        digits = re.sub(r"\.?0*p", "p", abs(value).hex()).removeprefix("0x")
        return f"{sign}0{'xX'[kind == 'A']}", digits.upper() if kind == "A" else digits
    form = {"a": "f", "A": "F"}.get(kind, kind)
    more = "#" if "#" in flags else ""
    return sign, f"%{more}.{6 if precision is None else precision}{form}" % abs(value)
