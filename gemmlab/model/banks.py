"""Local memory on paper: its banks, and the turns that a warp's access takes."""

from __future__ import annotations

import math
from collections.abc import Iterable


def turns(indices: Iterable[int], bank_bytes: int = 4, banks: int = 32) -> int:
    """How many turns local memory needs for a warp that touches these floats at once.

    Word w lies in bank w % banks; a bank serves one word a turn, to all who want it.
    """
    words: dict[int, set[int]] = {}
    for i in indices:
        word = 4 * int(i) // bank_bytes
        words.setdefault(word % banks, set()).add(word)
    return max(map(len, words.values()))


def stride_turns(stride: int, bank_bytes: int = 4) -> int:
    """The same by formula, for 32 lanes that lie `stride` floats apart (1 or more) and 32 banks of 4 or 8 bytes.

    With banks of 4 bytes, the greatest common divisor of stride and 32. With banks of 8 bytes two floats share a
    word: an even stride is half as large in words, and with an odd one some two lanes meet in a bank, except that
    with 1 they share its word, and with 33, 97 ... the only two that might meet do not.
    """
    if stride < 1:
        raise ValueError(f"stride must be at least 1, not {stride}")
    if bank_bytes == 4:
        return math.gcd(stride, 32)
    if stride % 2 == 0:
        return math.gcd(stride // 2, 32)
    return 1 if stride == 1 or stride % 64 == 33 else 2
