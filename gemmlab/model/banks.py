"""Local memory on paper: its 32 banks, and the turns that a warp's access takes."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from clscope import count


def turns(indices: Iterable[int], bank_bytes: int = 4) -> int:
    """How many turns local memory needs for a warp whose lanes access the floats with these indices
    at the same time. A bank, and a word, has 4 or 8 bytes.

    Word w is in bank w % 32. In each turn a bank delivers one word, to all lanes that access it.
    """
    words = 4 * np.fromiter(indices, np.int64) // bank_bytes
    return int(count.most_of_a_bank(words[None])[0])


def stride_turns(stride: int, bank_bytes: int = 4) -> int:
    """The same by a formula, for 32 lanes that access every `stride`-th float.

    With banks of 4 bytes the answer is the greatest common divisor of the stride and 32. With banks
    of 8 bytes two floats share a word. An even stride is then half as large, counted in words. With
    an odd stride two of the lanes conflict in a bank, with two exceptions: with a stride of 1 they
    read the same word, and with 33, 97, ... no two lanes can conflict.

    Raises:
        ValueError: if the stride is less than 1.
    """
    if stride < 1:
        raise ValueError(f"stride must be at least 1, not {stride}")
    if bank_bytes == 4:
        return math.gcd(stride, 32)
    if stride % 2 == 0:
        return math.gcd(stride // 2, 32)
    return 1 if stride == 1 or stride % 64 == 33 else 2
