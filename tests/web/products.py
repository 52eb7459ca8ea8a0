"""Products for tests: kernels of the ladder in settings that any browser's GPU allows."""

from __future__ import annotations

import math

import numpy as np

from gemmlab.catalog import catalog
from gemmlab.catalog.spec import Limits

LADDER = range(1, 14)
#: A GPU that any browser offers.
SMALL = Limits("a browser", 256, (256, 256), 32768, 4, asynchronous=False, warpgroups=False)


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
    """Launches of supporting kernels: name, arrays, other arguments, work-groups, and what arrays
    must begin with afterwards.
    """
    rng = np.random.default_rng(0)
    P, Q, LD, offset, P_XL, Q_XL = 75, 50, 80, 3, 96, 64
    x, y = (rng.integers(-9, 9, offset + LD * Q).astype(np.float32) for _ in range(2))
    padded = np.zeros((Q_XL, P_XL), np.float32)
    padded[:Q, :P] = x[offset:].reshape(Q, LD)[:, :P]
    shape = {"P": P, "Q": Q, "LD": LD, "offset": offset, "P_XL": P_XL, "Q_XL": Q_XL}
    launches = []
    for name, want in (("pad", padded.ravel()), ("transpose", padded[:, :P].T.ravel())):
        blank = np.full(want.size, np.nan, np.float32)
        launches.append((name, {"in": x, "out": blank}, shape, (3, 2, 1), {"out": want}))
    values = {"size": 1500, "alpha": 2.0, "beta": 3.0}
    blank = np.full(1508, np.nan, np.float32)
    want = np.concatenate([2 * x[:1500] + 3 * y[:1500], blank[:8]])
    arrays = {"x": x[:1500], "y": y[:1500], "out": blank}
    return [*launches, ("axpby", arrays, values, (3, 1, 1), {"out": want})]


def same(got: np.ndarray, want: np.ndarray) -> bool:
    return np.array_equal(got[: want.size], want, equal_nan=True)
