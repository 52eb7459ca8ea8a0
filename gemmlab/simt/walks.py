"""The kernels once more, in Python: what one work-item does, one statement after the other as in its file.

Each is a generator; a barrier is a `yield`. `trace` sends the work-items of a group through it. Kernel 8 is
told without its switches, 11 and the helpers' guards without what a compiler would make of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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
    rts = TS // WPT
    tm, tn = w.local
    m, n = w.group[0] * TS + tm, w.group[1] * TS + tn
    acc = [0.0] * WPT
    for t in range(K // TS):
        for i in range(WPT):
            w.store("Asub", (tn + i * rts) * TS + tm, w.load("A", (t * TS + tn + i * rts) * M + m))
            w.store("Bsub", (tn + i * rts) * TS + tm, w.load("B", (n + i * rts) * K + t * TS + tm))
        yield 1
        for k in range(TS):
            a = w.load("Asub", k * TS + tm)
            for i in range(WPT):
                acc[i] += a * w.load("Bsub", (tn + i * rts) * TS + k)
        yield 2
    for i in range(WPT):
        w.store("C", (n + i * rts) * M + m, acc[i])


def vector_types(w: WorkItem, M, N, K, TS, WIDTH):
    tm, tn = w.local[0] * WIDTH, w.local[1]
    m, n = w.group[0] * TS + tm, w.group[1] * TS + tn
    acc = [0.0] * WIDTH
    for t in range(K // TS):
        w.store_vector("Asub", tn * TS + tm, w.load_vector("A", (t * TS + tn) * M + m, WIDTH))
        w.store_vector("Bsub", tn * TS + tm, w.load_vector("B", n * K + t * TS + tm, WIDTH))
        yield 1
        for k in range(0, TS, WIDTH):
            b = w.load_vector("Bsub", tn * TS + k, WIDTH)
            for i in range(WIDTH):
                a = w.load_vector("Asub", (k + i) * TS + tm, WIDTH)
                acc = [c + x * b[i] for c, x in zip(acc, a, strict=True)]
        yield 2
    w.store_vector("C", n * M + m, acc)


def rectangular_tiles(w: WorkItem, M, N, K, TS, TSK, WPT, PAD):
    rts = TS // WPT
    tm, tn = w.local
    m0, n0 = w.group[0] * TS, w.group[1] * TS
    acc = [0.0] * WPT
    for t in range(K // TSK):
        for k in range(tn, TSK, rts):
            w.store("Asub", k * TS + tm, w.load("A", (t * TSK + k) * M + m0 + tm))
            w.store("Bsub", tm * (TSK + PAD) + k, w.load("B", (t * TSK + k) * N + n0 + tm))
        yield 1
        for k in range(TSK):
            a = w.load("Asub", k * TS + tm)
            for i in range(WPT):
                acc[i] += a * w.load("Bsub", (tn + i * rts) * (TSK + PAD) + k)
        yield 2
    for i in range(WPT):
        w.store("C", (n0 + tn + i * rts) * M + m0 + tm, acc[i])


def register_blocking(w: WorkItem, M, N, K, TSM, TSN, TSK, WPTM, WPTN, PAD, UNROLL):
    tm, tn, tid, m0, n0 = _place(w, TSM, TSN, WPTM, WPTN)
    rtsm, rtsn, row = TSM // WPTM, TSN // WPTN, TSK + PAD
    acc = [[0.0] * WPTM for _ in range(WPTN)]
    for t in range(K // TSK):
        for number in range(tid, TSK * TSM, rtsm * rtsn):
            i, k = number % TSM, number // TSM
            w.store("Asub", k * TSM + i, w.load("A", (t * TSK + k) * M + m0 + i))
            w.store("Bsub", i * row + k, w.load("B", (t * TSK + k) * N + n0 + i))
        yield 1
        for k in range(TSK):
            b = [w.load("Bsub", (tn + j * rtsn) * row + k) for j in range(WPTN)]
            for i in range(WPTM):
                a = w.load("Asub", k * TSM + tm + i * rtsm)
                for j in range(WPTN):
                    acc[j][i] += a * b[j]
        yield 2
    _store_block(w, acc, m0 + tm, n0 + tn, rtsm, rtsn, M)


def wide_loads(w: WorkItem, M, N, K, TSM, TSN, TSK, WPTM, WPTN, WIDTH, UNROLL, READONLY=0, SHUFFLE=0):
    tm, tn, tid, m0, n0 = _place(w, TSM, TSN, WPTM, WPTN)
    rtsm, rtsn = TSM // WPTM, TSN // WPTN
    acc = [[0.0] * WPTM for _ in range(WPTN)]
    for t in range(K // TSK):
        for number in range(tid, TSK * TSM // WIDTH, rtsm * rtsn):
            i, k = number % (TSM // WIDTH) * WIDTH, number // (TSM // WIDTH)
            w.store_vector("Asub", k * TSM + i, w.load_vector("A", (t * TSK + k) * M + m0 + i, WIDTH))
            w.store_vector("Bsub", k * TSN + i, w.load_vector("B", (t * TSK + k) * N + n0 + i, WIDTH))
        yield 1
        _multiply(w, acc, 0, tm, tn, rtsm, rtsn, TSM, TSN, TSK)
        yield 2
    _store_block(w, acc, m0 + tm, n0 + tn, rtsm, rtsn, M)


def prefetch(w: WorkItem, M, N, K, TSM, TSN, TSK, WPTM, WPTN, WIDTH, UNROLL):
    tm, tn, tid, m0, n0 = _place(w, TSM, TSN, WPTM, WPTN)
    rtsm, rtsn = TSM // WPTM, TSN // WPTN
    acc = [[0.0] * WPTM for _ in range(WPTN)]

    def fetch(t: int, buffer: int) -> None:
        for name, local, side, rows, first in (("A", "Asub", TSM, M, m0), ("B", "Bsub", TSN, N, n0)):
            for number in range(tid, TSK * side // WIDTH, rtsm * rtsn):
                i, k = number % (side // WIDTH) * WIDTH, number // (side // WIDTH)
                vector = w.load_vector(name, (t * TSK + k) * rows + first + i, WIDTH)
                w.store_vector(local, (buffer * TSK + k) * side + i, vector)

    fetch(0, 0)
    for t in range(K // TSK):
        yield 1
        if t + 1 < K // TSK:
            fetch(t + 1, (t + 1) % 2)
        _multiply(w, acc, t % 2 * TSK, tm, tn, rtsm, rtsn, TSM, TSN, TSK)
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
    rts = TS // WPT
    tm, tn = w.local
    m, n = w.group[0] * TS + tm, w.group[1] * TS + tn
    acc = [0.0] * WPT
    for t in range(-(-K // TS)):
        for i in range(WPT):
            ka, kb, place = t * TS + tn + i * rts, t * TS + tm, (tn + i * rts) * TS + tm
            w.store("Asub", place, w.load("A", ka * M + m) if m < M and ka < K else 0.0)
            w.store("Bsub", place, w.load("B", (n + i * rts) * K + kb) if n + i * rts < N and kb < K else 0.0)
        yield 1
        for k in range(TS):
            a = w.load("Asub", k * TS + tm)
            for i in range(WPT):
                acc[i] += a * w.load("Bsub", (tn + i * rts) * TS + k)
        yield 2
    for i in range(WPT):
        if m < M and n + i * rts < N:
            w.store("C", (n + i * rts) * M + m, acc[i])


def shifted(w: WorkItem, M, N, K, TSM, TSN, TSK, WPTM, WPTN, UNROLL):
    tm, tn, tid, own_m, own_n = _place(w, TSM, TSN, WPTM, WPTN)
    rtsm, rtsn, m0, n0 = TSM // WPTM, TSN // WPTN, min(own_m, M - TSM), min(own_n, N - TSN)
    acc = [[0.0] * WPTM for _ in range(WPTN)]

    def fetch(t: int, buffer: int) -> None:
        for name, local, side, rows, first in (("A", "Asub", TSM, M, m0), ("B", "Bsub", TSN, N, n0)):
            for number in range(tid, TSK * side, rtsm * rtsn):
                i, k = number % side, number // side
                value = w.load(name, (t * TSK + k) * rows + first + i) if t * TSK + k < K else 0.0
                w.store(local, (buffer * TSK + k) * side + i, value)

    fetch(0, 0)
    for t in range(-(-K // TSK)):
        yield 1
        if (t + 1) * TSK < K:
            fetch(t + 1, (t + 1) % 2)
        _multiply(w, acc, t % 2 * TSK, tm, tn, rtsm, rtsn, TSM, TSN, TSK)
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
    """The identifiers of kernels 6 to 10: tm, tn, tid, m0, n0."""
    tm, tn = w.local
    return tm, tn, tn * (TSM // WPTM) + tm, w.group[0] * TSM, w.group[1] * TSN


def _multiply(w: WorkItem, acc, first, tm, tn, rtsm, rtsn, TSM, TSN, TSK) -> None:
    """A block of C from local tiles that lie as [k][m] and [k][n], from row `first` on."""
    for k in range(first, first + TSK):
        b = [w.load("Bsub", k * TSN + tn + j * rtsn) for j in range(len(acc))]
        for i in range(len(acc[0])):
            a = w.load("Asub", k * TSM + tm + i * rtsm)
            for j in range(len(acc)):
                acc[j][i] += a * b[j]


def _store_block(w: WorkItem, acc, m, n, rtsm, rtsn, M) -> None:
    for j, column in enumerate(acc):
        for i, value in enumerate(column):
            w.store("C", (n + j * rtsn) * M + m + i * rtsm, value)


@dataclass(frozen=True)
class Walk:
    """How to replay a kernel: its generator, and its local arrays as (rows, floats of a row), as expressions."""

    steps: Callable
    local: dict[str, tuple[str, str]]


_SQUARE = {"Asub": ("TS", "TS"), "Bsub": ("TS", "TS")}
_BLOCKS = {"Asub": ("TSK", "TSM"), "Bsub": ("TSK", "TSN")}
_DOUBLE = {"Asub": ("2 * TSK", "TSM"), "Bsub": ("2 * TSK", "TSN")}

#: How each kernel is replayed, by its number.
WALKS = {
    1: Walk(naive, {}),
    2: Walk(work_per_thread, _SQUARE),  # with WPT = 1
    3: Walk(work_per_thread, _SQUARE),
    4: Walk(vector_types, _SQUARE),
    5: Walk(rectangular_tiles, {"Asub": ("TSK", "TS"), "Bsub": ("TS", "TSK + PAD")}),
    6: Walk(register_blocking, {"Asub": ("TSK", "TSM"), "Bsub": ("TSN", "TSK + PAD")}),
    7: Walk(wide_loads, _BLOCKS),
    8: Walk(wide_loads, _BLOCKS),
    9: Walk(prefetch, _DOUBLE),
    10: Walk(prefetch, _DOUBLE),
    11: Walk(register_only, {}),
    12: Walk(guarded, _SQUARE),
    13: Walk(shifted, _DOUBLE),
    15: Walk(warp_tiling, {"Asub": ("STAGES * TSK", "TSM"), "Bsub": ("STAGES * TSK", "TSN + 4 * (1 - TRANSPOSED)")}),
}
