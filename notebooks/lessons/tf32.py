"""The arithmetic of tensor cores in NumPy, for chapter 18: TF32, 3xTF32, and truncated sums.

A TF32 number is a float32 of which only the first 10 of the 23 bits after the point count.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.patches import Rectangle

from gemmlab.draw.picture import BLUE, GREEN, INK, MAGENTA, ORANGE, Picture, faint

#: Steps of k in one instruction of a tensor core (mma.sync.m16n8k8).
STEP = 8
#: Numbers whose bits are drawn, by name.
NUMBERS = {"pi": np.pi, "1/3": 1 / 3, "0.1": 0.1, "3": 3.0, "1.9998": 1.9998}
#: Errors by K, by the name of the arithmetic.
Errors = Mapping[str, Mapping[int, float]]


def nearest(x: np.ndarray) -> np.ndarray:
    """Each float32 of x rounded to the nearest TF32 number, ties away from zero (BIG)."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)


def cut(x: np.ndarray) -> np.ndarray:
    """Each float32 of x truncated to 10 bits after the point, as a tensor core reads it."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    return (bits & np.uint32(0xFFFFE000)).view(np.float32)


def parts(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two TF32 numbers for each float32 of x; their sum is x to 21 bits after the point or more."""
    x = np.asarray(x, np.float32)
    big = nearest(x)
    return big, cut(x - big)


def toward_zero(x: np.ndarray) -> np.ndarray:
    """Convert (normal) float64 to float32 by truncation, as a tensor core does with its sums."""
    bits = np.asarray(x, np.float64).view(np.uint64) & np.uint64(0xFFFFFFFFE0000000)
    return bits.view(np.float64).astype(np.float32)


def product(a: np.ndarray, b: np.ndarray, parts_of: int = 2, every: int = 1) -> np.ndarray:
    """A model of how "tensor_cores" computes a b in float32, instruction by instruction.

    Each instruction adds 8 exact products to a sum and truncates the result to a float32. Real
    tensor cores differ from this model in the last bit or two.

    Args:
        parts_of: how many TF32 numbers stand for a float, 1 or 2 (PARTS).
        every: after how many times 8 steps of k a sum is added to a float32 (EVERY); 0 for only at
            the end.

    Source: Ootomo and Yokota, Recovering single precision accuracy from Tensor Cores (2022).
    """
    if parts_of == 1:
        pairs = [(nearest(a), nearest(b))]
    else:
        (a_big, a_small), (b_big, b_small) = parts(a), parts(b)
        pairs = [(a_small, b_big), (a_big, b_small), (a_big, b_big)]  # the smallest first
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    held = np.zeros_like(total)
    for number, k in enumerate(range(0, a.shape[1], STEP), 1):
        for x, y in pairs:
            exact = x[:, k : k + STEP].astype(np.float64) @ y[k : k + STEP].astype(np.float64)
            held = toward_zero(held + exact)
        if every and number % every == 0:
            total += held
            held[:] = 0
    return total + held


def chain(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a b by float32 multiply-adds in the order of k, each rounded once."""
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for k in range(a.shape[1]):
        total = (total + np.outer(a[:, k].astype(np.float64), b[k])).astype(np.float32)
    return total


def relative_error(c: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    """The Frobenius norm of c - a b over that of a b, computed in float64."""
    exact = a.astype(np.float64) @ b.astype(np.float64)
    return float(np.linalg.norm(c - exact) / np.linalg.norm(exact))


def draw_bits(x: str | float = "pi") -> Picture:
    """The binary digits of a float32, of its two TF32 parts, and of what these two leave out.

    Digits for the same power of 2 are in one column; x is a name in `NUMBERS`, or a number.
    """
    whole = np.float32(NUMBERS[x] if isinstance(x, str) else x)
    big, small = (float(part) for part in parts(np.asarray(whole)))
    lost = float(whole) - big - small
    sign = "-" if small < 0 else "+"
    rest = f"and {abs(lost):.1g} is lost" if lost else "nothing is lost"
    alt = f"{whole:.9g} = big {big:.9g} {sign} small {abs(small):.4g}, {rest}"
    picture = Picture(6.8, 1.9, alt)
    ax = picture.axes_plain()
    top = int(np.frexp(whole)[1]) - 1  # the exponent of x
    for row, (name, value, digits, colour) in enumerate((
        ("x", float(whole), 24, None),
        ("big", big, 11, BLUE),
        ("small", small, 11, ORANGE),
        ("lost", lost, 24, MAGENTA),
    )):  # fmt: skip
        style: dict[str, Any] = {"va": "center", "fontsize": 9, "color": INK}
        label = f"-{name}" if value < 0 else name
        ax.text(-1.3, -row - 0.52, label, ha="right", **style)
        if not value:
            ax.text(0.2, -row - 0.52, "nothing", **style)
            continue
        first = int(np.frexp(abs(value))[1]) - 1
        number = round(abs(value) * 2.0 ** (23 - top))
        for power in range(first, max(first - digits, top - 24), -1):
            column = top - power
            face = colour or (faint(BLUE) if column < 11 else faint(INK, 0.1))
            ax.add_patch(Rectangle((column, -row - 0.9), 1, 0.8, facecolor=face, edgecolor=INK,
                                   linewidth=0.4))  # fmt: skip
            style["color"] = "w" if colour else INK
            digit = str(number >> (23 - column) & 1)
            ax.text(column + 0.5, -row - 0.52, digit, ha="center", **style)
    ax.set(xlim=(-1.1, 24.1), ylim=(-4, 0.1), yticks=[])
    ax.set_xlabel("power of 2 that a digit stands for")
    columns = (0, 5, 10, 15, 20, 23)
    ax.set_xticks([column + 0.5 for column in columns], [f"{top - column}" for column in columns])
    ax.spines["left"].set_visible(False)
    return picture


def draw_errors(modelled: Errors, measured: Errors) -> Picture:
    """Relative errors of products by K: modelled ones as lines, measured ones as points."""
    phrases = [
        f"{name}, {kind}: " + ", ".join(f"{k} {error:.1e}" for k, error in errors.items())
        for kind, series in (("modelled", modelled), ("measured", measured))
        for name, errors in series.items()
    ]
    picture = Picture(6.8, 3.4, f"Error by K. {'; '.join(phrases)}")
    ax = picture.axes_plain()
    names = dict.fromkeys([*modelled, *measured])
    styles = ((MAGENTA, "o"), (ORANGE, "^"), (BLUE, "s"), (GREEN, "D"), (INK, "v"))
    for name, (colour, marker) in zip(names, styles, strict=False):
        if name in modelled:
            line = modelled[name]
            ax.loglog(list(line), list(line.values()), color=colour, label=name)
        if name in measured:
            points = measured[name]
            label = None if name in modelled else name
            ax.loglog(list(points), list(points.values()), marker, color=colour, label=label)
    ks = sorted({k for errors in (*modelled.values(), *measured.values()) for k in errors})
    ax.minorticks_off()
    ax.set_xticks(ks, map(str, ks))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0e}")
    ax.grid(axis="y", color=INK, alpha=0.25, linewidth=0.5)
    ax.set(xlabel="K", ylabel="error, relative to the product")
    ax.legend(frameon=False, labelcolor=INK, fontsize=9, loc="center left", bbox_to_anchor=(1, 0.5))
    return picture
