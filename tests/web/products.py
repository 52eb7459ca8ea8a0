"""Products for tests: kernels of the ladder in settings that any browser's GPU allows."""

from __future__ import annotations

import math

import numpy as np

from gemmlab.catalog import catalog
from gemmlab.catalog.spec import Limits

LADDER = range(1, 14)
#: A GPU that any browser offers.
SMALL = Limits("a browser", 256, (256, 256), 32768, asynchronous=False, warpgroups=False)


def settings(kernel: int, count: int) -> list[dict[str, int]]:
    """The setting that fits a small GPU, and a seeded sample of those offered."""
    spec = catalog[kernel]
    quick = [
        p
        for p in spec.sample(SMALL, 40 * count, seed=kernel)
        if math.prod(spec.units(p)) <= 128 * 128 * 32
    ]
    return [spec.fit(SMALL), *quick[: count - 1]]


def sizes(kernel: int, params) -> tuple[int, int, int]:
    """Two tiles in each direction, or odd sizes where the kernel takes any."""
    spec = catalog[kernel]
    m, n, k = spec.units(params)
    if spec.edges == "pad":
        return 2 * m, 2 * n, 2 * k
    rows, cols, depth = spec.tiles(params)
    return rows + 5, cols + 3, 2 * depth + 1


def support() -> list[tuple[str, dict, dict, tuple[int, int, int], dict]]:
    """Launches of the supporting kernels: name, arrays, other arguments, work-groups, and what
    arrays must begin with afterwards.
    """
    rng = np.random.default_rng(0)
    P, Q, LD, offset, P_XL, Q_XL = 75, 50, 80, 3, 96, 64
    x = rng.integers(-9, 9, offset + LD * Q).astype(np.float32)
    block = x[offset:].reshape(Q, LD)[:, :P]
    padded = np.zeros((Q_XL, P_XL), np.float32)
    padded[:Q, :P] = block
    shape = {"P": P, "Q": Q, "LD": LD, "offset": offset, "P_XL": P_XL, "Q_XL": Q_XL}

    def blank(count):
        return np.full(count, np.nan, np.float32)

    compact = np.ascontiguousarray(block).ravel()
    launches = [
        ("pad", {"in": x, "out": blank(P_XL * Q_XL)}, shape, (3, 2, 1), {"out": padded.ravel()}),
        (
            "transpose",
            {"in": x, "out": blank(P * Q_XL)},
            shape,
            (3, 2, 1),
            {"out": padded[:, :P].T.ravel()},
        ),
        (
            "transpose_naive",
            {"in": compact, "out": blank(P * Q)},
            {"P": P, "Q": Q},
            (5, 4, 1),
            {"out": block.T.ravel()},
        ),
    ]
    y = rng.integers(-9, 9, 1500).astype(np.float32)
    for alpha, beta in ((2.0, 3.0), (0.0, 1.0), (1.0, 0.0)):
        values = {"size": 1500, "alpha": alpha, "beta": beta}
        want = np.float32(alpha) * x[:1500] + np.float32(beta) * y
        framed = {"out": np.concatenate([want, blank(8)])}
        arrays = {"x": x[:1500], "y": y, "out": blank(1508)}
        launches.append(("axpby", arrays, values, (3, 1, 1), framed))
    for strange, bits in ((0, 0x3F800000), (1, 0x7F800000)):
        found = np.full(LD * Q + offset, 0x3F800000, np.uint32)
        found[offset + 7 * LD + 5] = bits
        arrays = {"in": found, "found": np.zeros(1, np.int32)}
        launches.append(("range", arrays, shape, (1, 2, 1), {"found": np.array([strange])}))
    return launches


def same(got: np.ndarray, want: np.ndarray) -> bool:
    return np.array_equal(got[: want.size], want, equal_nan=True)
