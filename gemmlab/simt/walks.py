"""The kernels once more, in Python: what one work-item does, one statement after the other as in its file.

Each is a generator; a barrier is a `yield`. `trace` sends the work-items of a group through it. Kernel 8 is
told without its switches, 11 and the helpers' guards without what a compiler would make of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from .warpwalk import warp_tiling
from .workitem import WorkItem


def naive(w: WorkItem, M, N, K, TS):
    m = w.group[0] * TS + w.local[0]
    n = w.group[1] * TS + w.local[1]
    acc = 0.0
    for k in range(K):
        acc += w.load("A", k * M + m) * w.load("B", n * K + k)
    w.store("C", n * M + m, acc)
    yield from ()


def work_per_thread(w: WorkItem, M, N, K, TS, WPT=1):
    tm, tn, tid, m0, n0 = _place(w, TS, TS, 1, WPT)
    rts = TS // WPT
    acc = [0.0] * WPT
    for k0 in range(0, K, TS):
        for e in range(tid, TS * TS, TS * rts):
            i, j = e % TS, e // TS
            w.store("Atile", j * TS + i, w.load("A", (k0 + j) * M + m0 + i))
            w.store("Btile", j * TS + i, w.load("B", (n0 + j) * K + k0 + i))
        yield 1
        for k in range(TS):
            a = w.load("Atile", k * TS + tm)
            for j in range(WPT):
                acc[j] += a * w.load("Btile", (tn + j * rts) * TS + k)
        yield 2
    for j in range(WPT):
        w.store("C", (n0 + tn + j * rts) * M + m0 + tm, acc[j])


def vector_types(w: WorkItem, M, N, K, TS, WIDTH):
    tm, tn = w.local[0] * WIDTH, w.local[1]
    m0, n0 = w.group[0] * TS, w.group[1] * TS
    acc = [0.0] * WIDTH
    for k0 in range(0, K, TS):
        w.store_vector("Atile", tn * TS + tm, w.load_vector("A", (k0 + tn) * M + m0 + tm, WIDTH))
        w.store_vector("Btile", tn * TS + tm, w.load_vector("B", (n0 + tn) * K + k0 + tm, WIDTH))
        yield 1
        for k in range(0, TS, WIDTH):
            b = w.load_vector("Btile", tn * TS + k, WIDTH)
            for i in range(WIDTH):
                a = w.load_vector("Atile", (k + i) * TS + tm, WIDTH)
                acc = [c + x * b[i] for c, x in zip(acc, a, strict=True)]
        yield 2
    w.store_vector("C", (n0 + tn) * M + m0 + tm, acc)


def rectangular_tiles(w: WorkItem, M, N, K, TS, TSK, WPT, PAD):
    tm, tn, tid, m0, n0 = _place(w, TS, TS, 1, WPT)
    rts, row = TS // WPT, TSK + PAD
    acc = [0.0] * WPT
    for k0 in range(0, K, TSK):
        for e in range(tid, TSK * TS, TS * rts):
            i, j = e % TS, e // TS
            w.store("Atile", j * TS + i, w.load("A", (k0 + j) * M + m0 + i))
            w.store("Btile", i * row + j, w.load("B", (k0 + j) * N + n0 + i))
        yield 1
        for k in range(TSK):
            a = w.load("Atile", k * TS + tm)
            for j in range(WPT):
                acc[j] += a * w.load("Btile", (tn + j * rts) * row + k)
        yield 2
    for j in range(WPT):
        w.store("C", (n0 + tn + j * rts) * M + m0 + tm, acc[j])


def register_blocking(w: WorkItem, M, N, K, TSM, TSN, TSK, WPTM, WPTN, PAD, UNROLL):
    tm, tn, tid, m0, n0 = _place(w, TSM, TSN, WPTM, WPTN)
    rtsm, rtsn, row = TSM // WPTM, TSN // WPTN, TSK + PAD
    acc = [[0.0] * WPTM for _ in range(WPTN)]
    for k0 in range(0, K, TSK):
        for e in range(tid, TSK * TSM, rtsm * rtsn):
            i, j = e % TSM, e // TSM
            w.store("Atile", j * TSM + i, w.load("A", (k0 + j) * M + m0 + i))
            w.store("Btile", i * row + j, w.load("B", (k0 + j) * N + n0 + i))
        yield 1
        for k in range(TSK):
            a = [w.load("Atile", k * TSM + tm + i * rtsm) for i in range(WPTM)]
            b = [w.load("Btile", (tn + j * rtsn) * row + k) for j in range(WPTN)]
            _outer(acc, a, b)
        yield 2
    _store_block(w, acc, m0 + tm, n0 + tn, rtsm, rtsn, M)


def wide_loads(w: WorkItem, M, N, K, TSM, TSN, TSK, WPTM, WPTN, WIDTH, UNROLL, READONLY=0, SHUFFLE=0):
    tm, tn, tid, m0, n0 = _place(w, TSM, TSN, WPTM, WPTN)
    rtsm, rtsn = TSM // WPTM, TSN // WPTN
    acc = [[0.0] * WPTM for _ in range(WPTN)]
    for k0 in range(0, K, TSK):
        for e in range(tid, TSK * TSM // WIDTH, rtsm * rtsn):
            i, j = e % (TSM // WIDTH) * WIDTH, e // (TSM // WIDTH)
            w.store_vector("Atile", j * TSM + i, w.load_vector("A", (k0 + j) * M + m0 + i, WIDTH))
            w.store_vector("Btile", j * TSN + i, w.load_vector("B", (k0 + j) * N + n0 + i, WIDTH))
        yield 1
        _multiply(w, acc, 0, tm, tn, rtsm, rtsn, TSM, TSN, TSK)
        yield 2
    _store_block(w, acc, m0 + tm, n0 + tn, rtsm, rtsn, M)


def prefetch(w: WorkItem, M, N, K, TSM, TSN, TSK, WPTM, WPTN, WIDTH, UNROLL, apart=False):
    """`apart`: a loop for A's tile and one for B's, as in kernel 10; else one for both, as in kernel 9."""
    tm, tn, tid, m0, n0 = _place(w, TSM, TSN, WPTM, WPTN)
    rtsm, rtsn = TSM // WPTM, TSN // WPTN
    acc = [[0.0] * WPTM for _ in range(WPTN)]
    a_tile, b_tile = ("A", "Atile", TSM, M, m0), ("B", "Btile", TSN, N, n0)

    def fetch(k0: int, buffer: int) -> None:
        for tiles in ((a_tile,), (b_tile,)) if apart else ((a_tile, b_tile),):
            for e in range(tid, TSK * tiles[0][2] // WIDTH, rtsm * rtsn):
                for name, local, side, rows, first in tiles:
                    i, j = e % (side // WIDTH) * WIDTH, e // (side // WIDTH)
                    vector = w.load_vector(name, (k0 + j) * rows + first + i, WIDTH)
                    w.store_vector(local, (buffer * TSK + j) * side + i, vector)

    fetch(0, 0)
    now = 0
    for k0 in range(0, K, TSK):
        yield 1
        if k0 + TSK < K:
            fetch(k0 + TSK, 1 - now)
        _multiply(w, acc, now * TSK, tm, tn, rtsm, rtsn, TSM, TSN, TSK)
        now = 1 - now
    _store_block(w, acc, m0 + tm, n0 + tn, rtsm, rtsn, M)


def register_only(w: WorkItem, M, N, K, RX, RY, RK, WIDTH, GX, GY, TRANSPOSED):
    m = (w.group[0] * GX + w.local[0]) * RX
    n = (w.group[1] * GY + w.local[1]) * RY
    acc = [[0.0] * RX for _ in range(RY)]
    for k in range(K):
        a = [x for i in range(0, RX, WIDTH) for x in w.load_vector("A", k * M + m + i, WIDTH)]
        for j in range(RY):
            b = w.load("B", k * N + n + j if TRANSPOSED else (n + j) * K + k)
            acc[j] = [c + x * b for c, x in zip(acc[j], a, strict=True)]
    for j in range(RY):
        for i in range(0, RX, WIDTH):
            w.store_vector("C", (n + j) * M + m + i, acc[j][i : i + WIDTH])
    yield from ()


def guarded(w: WorkItem, M, N, K, TS, WPT):
    tm, tn, tid, m0, n0 = _place(w, TS, TS, 1, WPT)
    rts = TS // WPT
    acc = [0.0] * WPT
    for k0 in range(0, K, TS):
        for e in range(tid, TS * TS, TS * rts):
            i, j = e % TS, e // TS
            w.store("Atile", e, w.load("A", (k0 + j) * M + m0 + i) if m0 + i < M and k0 + j < K else 0.0)
            w.store("Btile", e, w.load("B", (n0 + j) * K + k0 + i) if k0 + i < K and n0 + j < N else 0.0)
        yield 1
        for k in range(TS):
            a = w.load("Atile", k * TS + tm)
            for j in range(WPT):
                acc[j] += a * w.load("Btile", (tn + j * rts) * TS + k)
        yield 2
    for j in range(WPT):
        if m0 + tm < M and n0 + tn + j * rts < N:
            w.store("C", (n0 + tn + j * rts) * M + m0 + tm, acc[j])


def shifted(w: WorkItem, M, N, K, TSM, TSN, TSK, WPTM, WPTN, UNROLL):
    tm, tn, tid, own_m, own_n = _place(w, TSM, TSN, WPTM, WPTN)
    rtsm, rtsn, m0, n0 = TSM // WPTM, TSN // WPTN, min(own_m, M - TSM), min(own_n, N - TSN)
    acc = [[0.0] * WPTM for _ in range(WPTN)]

    def fetch(k0: int, buffer: int) -> None:
        for name, local, side, rows, first in (("A", "Atile", TSM, M, m0), ("B", "Btile", TSN, N, n0)):
            for e in range(tid, TSK * side, rtsm * rtsn):
                i, j = e % side, e // side
                value = w.load(name, (k0 + j) * rows + first + i) if k0 + j < K else 0.0
                w.store(local, (buffer * TSK + j) * side + i, value)

    fetch(0, 0)
    now = 0
    for k0 in range(0, K, TSK):
        yield 1
        if k0 + TSK < K:
            fetch(k0 + TSK, 1 - now)
        _multiply(w, acc, now * TSK, tm, tn, rtsm, rtsn, TSM, TSN, TSK)
        now = 1 - now
    for j in range(WPTN):
        for i in range(WPTM):
            m, n = m0 + tm + i * rtsm, n0 + tn + j * rtsn
            if m >= own_m and n >= own_n:
                w.store("C", n * M + m, acc[j][i])


def transpose(w: WorkItem, P, Q, TT):
    tx, ty = w.local
    p0, q0 = w.group[0] * TT, w.group[1] * TT
    w.store("tile", ty * (TT + 1) + tx, w.load("in", (q0 + ty) * P + p0 + tx))
    yield 1
    w.store("out", (p0 + ty) * Q + q0 + tx, w.load("tile", tx * (TT + 1) + ty))


def transpose_naive(w: WorkItem, P, Q, TT):
    p, q = w.group[0] * TT + w.local[0], w.group[1] * TT + w.local[1]
    w.store("out", p * Q + q, w.load("in", q * P + p))
    yield from ()


def _place(w: WorkItem, TSM, TSN, WPTM, WPTN):
    """The identifiers of the kernels with tiles: tm, tn, tid, m0, n0."""
    tm, tn = w.local
    return tm, tn, tn * (TSM // WPTM) + tm, w.group[0] * TSM, w.group[1] * TSN


def _multiply(w: WorkItem, acc, first, tm, tn, rtsm, rtsn, TSM, TSN, TSK) -> None:
    """A block of C from local tiles that lie as [k][m] and [k][n], from row `first` on."""
    for k in range(first, first + TSK):
        a = [w.load("Atile", k * TSM + tm + i * rtsm) for i in range(len(acc[0]))]
        b = [w.load("Btile", k * TSN + tn + j * rtsn) for j in range(len(acc))]
        _outer(acc, a, b)


def _outer(acc, a, b) -> None:
    """Add the product of a column of A and a row of B to a block of sums."""
    for column, y in zip(acc, b, strict=True):
        for i, x in enumerate(a):
            column[i] += x * y


def _store_block(w: WorkItem, acc, m, n, rtsm, rtsn, M) -> None:
    for j, column in enumerate(acc):
        for i, value in enumerate(column):
            w.store("C", (n + j * rtsn) * M + m + i * rtsm, value)


@dataclass(frozen=True)
class Walk:
    """How to replay a kernel: its generator, and its local arrays as (rows, floats of a row), as expressions."""

    steps: Callable
    local: dict[str, tuple[str, str]]


_SQUARE = {"Atile": ("TS", "TS"), "Btile": ("TS", "TS")}
_BLOCKS = {"Atile": ("TSK", "TSM"), "Btile": ("TSK", "TSN")}
_DOUBLE = {"Atile": ("2 * TSK", "TSM"), "Btile": ("2 * TSK", "TSN")}

#: How each kernel is replayed, by its number.
WALKS = {
    1: Walk(naive, {}),
    2: Walk(work_per_thread, _SQUARE),  # with WPT = 1
    3: Walk(work_per_thread, _SQUARE),
    4: Walk(vector_types, _SQUARE),
    5: Walk(rectangular_tiles, {"Atile": ("TSK", "TS"), "Btile": ("TS", "TSK + PAD")}),
    6: Walk(register_blocking, {"Atile": ("TSK", "TSM"), "Btile": ("TSN", "TSK + PAD")}),
    7: Walk(wide_loads, _BLOCKS),
    8: Walk(wide_loads, _BLOCKS),
    9: Walk(prefetch, _DOUBLE),
    10: Walk(partial(prefetch, apart=True), _DOUBLE),
    11: Walk(register_only, {}),
    12: Walk(guarded, _SQUARE),
    13: Walk(shifted, _DOUBLE),
    15: Walk(warp_tiling, {"Atile": ("STAGES * TSK", "TSM"), "Btile": ("STAGES * TSK", "TSN + 4 * (1 - TRANSPOSED)")}),
}
