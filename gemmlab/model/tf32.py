"""The arithmetic of tensor cores in NumPy: what TF32 loses, how 3xTF32 recovers it, and sums that are truncated.

A TF32 number is a float32 of which only the first 10 of the 23 bits after the point count. No device is needed.
"""

from __future__ import annotations

import numpy as np

STEP = 8  # steps of k in one instruction of a tensor core (mma.sync.m16n8k8)


def nearest(x: np.ndarray) -> np.ndarray:
    """Each float32 of x rounded to the nearest TF32 number, ties away from zero (BIG in the kernel)."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)


def cut(x: np.ndarray) -> np.ndarray:
    """Each float32 of x truncated to 10 bits after the point, as a tensor core reads it."""
    return (np.asarray(x, np.float32).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def parts(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two TF32 numbers for each float32 of x, big and small: their sum is x to at least 21 bits after the point."""
    x = np.asarray(x, np.float32)
    big = nearest(x)
    return big, cut(x - big)


def toward_zero(x: np.ndarray) -> np.ndarray:
    """Convert float64 to float32 by truncation (for normal numbers), as a tensor core does with its sums."""
    bits = np.asarray(x, np.float64).view(np.uint64) & np.uint64(0xFFFFFFFFE0000000)
    return bits.view(np.float64).astype(np.float32)


def product(a: np.ndarray, b: np.ndarray, parts_of: int = 2, every: int = 1, truncating: bool = True) -> np.ndarray:
    """A model of how "tensor_cores" computes a b, instruction by instruction.

    Each instruction adds 8 exact products to a sum and truncates the result to a float32. Real tensor cores differ
    from this model in the last bit or two.

    Args:
        a, b: m x k and k x n float32.
        parts_of: how many TF32 numbers stand for a float, 1 or 2 (PARTS).
        every: the promotion interval: after how many times 8 steps of k a sum moves into a float32 (EVERY); 0 means
            only at the end.
        truncating: False rounds the sums to nearest instead, as in ordinary float32 arithmetic.

    Returns:
        The product, m x n float32.

    Raises:
        ValueError: if parts_of or every is out of range.

    Source: Ootomo and Yokota, Recovering single precision accuracy from Tensor Cores (2022).
    """
    if parts_of not in (1, 2):
        raise ValueError(f"parts_of must be 1 or 2, not {parts_of!r}")
    if every < 0:
        raise ValueError(f"every must be a non-negative whole number, not {every!r}")
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
    """a b (m x k and k x n float32) by float32 multiply-adds in the order of k, each rounded once."""
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for k in range(a.shape[1]):
        total = (total + np.outer(a[:, k].astype(np.float64), b[k])).astype(np.float32)
    return total


def relative_error(c: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    """The relative error of c: the Frobenius norm of c - a b over that of a b, computed in float64."""
    exact = a.astype(np.float64) @ b.astype(np.float64)
    return float(np.linalg.norm(c - exact) / np.linalg.norm(exact))
