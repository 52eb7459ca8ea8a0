"""The numbers behind kernel 16, in NumPy: what TF32 loses, how two parts win it back, sums that are cut off.

TF32 is a float32 of which only 10 bits after the point count. No device needed.
"""

from __future__ import annotations

import numpy as np

STEP = 8  # steps of k in one instruction of kernel 16 (mma.sync.m16n8k8)


def nearest(x: np.ndarray) -> np.ndarray:
    """Each float32 of x rounded to 10 bits after the point, halves away from zero (BIG in kernel 16)."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)


def cut(x: np.ndarray) -> np.ndarray:
    """Each float32 of x with all but 10 bits after the point cut off: what a tensor core sees of it."""
    return (np.asarray(x, np.float32).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def parts(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two TF32 numbers for each float32 of x, big and small, whose sum is x to 21 bits after the point or more."""
    x = np.asarray(x, np.float32)
    big = nearest(x)
    return big, cut(x - big)


def toward_zero(x: np.ndarray) -> np.ndarray:
    """float64 to float32 by cutting bits off (for normal numbers), as sums in a tensor core are."""
    bits = np.asarray(x, np.float64).view(np.uint64) & np.uint64(0xFFFFFFFFE0000000)
    return bits.view(np.float64).astype(np.float32)


def product(a: np.ndarray, b: np.ndarray, parts_of: int = 2, every: int = 1, truncating: bool = True) -> np.ndarray:
    """a b as kernel 16 computes it on tensor cores, 8 steps of k at a time: a model of it, instruction by instruction.

    Each instruction adds 8 exact products to a sum, and cuts the result off to a float32. Real tensor cores differ
    from that in the last bit or two.

    Args:
        a, b: m x k and k x n float32.
        parts_of: TF32 numbers for a float, 1 or 2 (PARTS).
        every: instructions on a piece of k after which the sum moves into a float32 (EVERY); 0: at the end.
        truncating: False rounds the sums to nearest instead, as ordinary float32 sums are.
    """
    if parts_of not in (1, 2):
        raise ValueError(f"parts_of must be 1 or 2, not {parts_of!r}")
    if every < 0:
        raise ValueError(f"every must be a whole number from 0 on, not {every!r}")
    a_parts, b_parts = ((nearest(x),) if parts_of == 1 else parts(x) for x in (a, b))
    pairs = [(0, 0)] if parts_of == 1 else [(1, 0), (0, 1), (0, 0)]  # the smallest products first
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    held = np.zeros_like(total)
    for number, k in enumerate(range(0, a.shape[1], STEP), 1):
        for i, j in pairs:
            exact = a_parts[i][:, k : k + STEP].astype(np.float64) @ b_parts[j][k : k + STEP].astype(np.float64)
            held = toward_zero(held + exact) if truncating else (held + exact).astype(np.float32)
        if every and number % every == 0:
            total += held
            held[:] = 0
    return total + held


def chain(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a b (m x k and k x n float32) in float32 multiply-adds, one step of k after the other, each sum rounded."""
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for k in range(a.shape[1]):
        total = (total + np.outer(a[:, k].astype(np.float64), b[k])).astype(np.float32)
    return total


def error(c: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    """How far c is from a b: the Frobenius norm of the difference over that of the product, in float64."""
    exact = a.astype(np.float64) @ b.astype(np.float64)
    return float(np.linalg.norm(c - exact) / np.linalg.norm(exact))
