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


def parsed(form: str) -> list[str | re.Match[str]]:
    """The text between quotes as pieces: words, and what begins with %."""
    text = unescaped(form[1:-1])
    found: list[str | re.Match[str]] = []
    at = 0
    for match in _PART.finditer(text):
        found += [text[at : match.start()], match]
        at = match.end()
    return [*found, text[at:]]


def printed(parts: list[str | re.Match[str]], values: list, kinds: list[tuple[str, int]]) -> str:
    """printf's text for one work-item; `kinds` are scalar type and length of each value."""
    left = list(zip(values, kinds, strict=True))
    text = ""
    for part in parts:
        if isinstance(part, str):
            text += part
        elif part["kind"] == "%":
            text += "%"
        elif not left:
            text += part.group()  # C does not say what comes out here
        else:
            value, (scalar, _) = left.pop(0)
            numbers = value if isinstance(value, list) else [value]
            text += ",".join(_one(part, x, scalar) for x in numbers)
    return text


def _one(part: re.Match[str], value, scalar: str) -> str:
    kind, flags = part["kind"], part["flags"]
    width = min(int(part["width"] or 0), MOST_WIDE)
    precision = (
        None if part["precision"] is None else min(int(part["precision"][1:] or 0), MOST_WIDE)
    )
    if isinstance(value, str):
        value = unescaped(value[1:-1])
        return _padded(
            value if precision is None else value[:precision], flags.replace("0", ""), width
        )
    if kind in "sc":
        return _padded(
            chr(int(value) & 255) if kind == "c" else "(null)", flags.replace("0", ""), width
        )
    if kind == "p":
        return _padded(f"0x{int(value):x}", flags.replace("0", ""), width)
    if kind in "diouxX":
        return _whole(kind, int(value), scalar, flags, width, precision)
    return _float(kind, float(value), flags, width, precision)


def _whole(
    kind: str, value: int, scalar: str, flags: str, width: int, precision: int | None
) -> str:
    """As Python's %, but for signs of unsigned numbers, prefixes of 0, and octal ones."""
    bits = max(32, _BITS.get(scalar, 64))
    value &= (1 << bits) - 1
    if kind in "di":
        value -= (value >> (bits - 1)) << bits
    dropped = ("" if kind in "di" else "+ ") + ("" if value and kind != "o" else "#")
    form = "".join(c for c in flags if c not in dropped)
    if precision is not None:
        flags = flags.replace("0", "")
        form = f"{form.replace('0', '')}.{precision}"
    text = f"%{form}{kind}" % value
    if precision == 0 and value == 0:
        text = text.replace("0", "")
    if kind == "o" and "#" in flags and not text.startswith("0"):
        text = f"0{text}"
    return _padded(text, flags, width)


def _float(kind: str, value: float, flags: str, width: int, precision: int | None) -> str:
    if not math.isfinite(value):
        text = f"%{flags.replace('0', '')}{'F' if kind.isupper() else 'f'}" % value
        return _padded(text, flags.replace("0", ""), width)
    if kind in "aA":
        text = re.sub(r"\.?0*p", "p", value.hex())
        if not text.startswith("-"):
            text = next((sign for sign in "+ " if sign in flags), "") + text
        text = text.upper() if kind == "A" else text
    else:
        text = f"%{flags}.{6 if precision is None else precision}{kind}" % value
    return _padded(text, flags, width)


def _padded(text: str, flags: str, width: int) -> str:
    if "-" in flags:
        return text.ljust(width)
    if "0" in flags:
        sign = len(text) - len(text.lstrip("+- "))
        sign += 2 if text[sign : sign + 2] in ("0x", "0X") else 0
        return text[:sign] + text[sign:].rjust(width - sign, "0")
    return text.rjust(width)
