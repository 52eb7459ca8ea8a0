"""Kernel 15 in Python, as `walks` has the others: one work-item of a warp."""

from __future__ import annotations

from .workitem import WorkItem


def warp_tiling(w: WorkItem, M, N, K, TSM, TSN, TSK, WPTM, WPTN, WARPM, WIDTH, STAGES, ORDER, GROUPS, LAST,
                TRANSPOSED, BATCHES, SPLIT, DOWN, TAIL, ASYNC):  # fmt: skip
    """With GROUPS = 0 and SPLIT = 0, and copies that are there at once."""
    tid = w.local[0]
    lane, warp, columns, items = tid % 32, tid // 32, 32 // WARPM, TSM // WPTM * (TSN // WPTN)
    warps = TSM // (WPTM * WARPM)
    tm = warp % warps * WARPM * WPTM + lane % WARPM * 4
    tn = warp // warps * columns * WPTN + lane // WARPM * 4
    row, column = ordered(w.group[0], -(-M // TSM), -(-N // TSN), ORDER)
    m0, n0, count = row * TSM, column * TSN, -(-K // TSK)
    acc = [[0.0] * WPTM for _ in range(WPTN)]

    row_b = TSN + 4 * (1 - TRANSPOSED)

    def load(t):
        across = [("A", "Atile", M, m0, TSM, DOWN)] + [("B", "Btile", N, n0, TSN, 1)] * TRANSPOSED
        for name, there, size, first, row, down in across:
            ld, side = -(-size // WIDTH) * WIDTH, row // down // WIDTH
            for turn in range(TSK * row // WIDTH // items):
                i, k = (tid % side + turn % down * side) * WIDTH, tid // side + turn // down * (items // side)
                inside = t * TSK + k < K and first + i < size
                value = w.load_vector(name, (t * TSK + k) * ld + first + i, WIDTH) if inside else [0.0] * WIDTH
                w.store_vector(there, (t % STAGES * TSK + k) * row + i, value)
        deep = TSK if TSK % 8 else 8
        for id in range(tid, TSK * TSN * (1 - TRANSPOSED), items):
            turn, place = id // items, id % items
            k = place % deep + turn % (TSK // deep) * deep
            n = place // deep + turn // (TSK // deep) * (items // deep)
            inside = t * TSK + k < K and n0 + n < N
            value = w.load("B", (n0 + n) * K + t * TSK + k) if inside else 0.0
            w.store("Btile", (t % STAGES * TSK + k) * row_b + n, value)

    def fragment(t, k):
        place = t % STAGES * TSK + k
        a = [w.load_vector("Atile", place * TSM + tm + i * 4 * WARPM, 4) for i in range(WPTM // 4)]
        b = [w.load_vector("Btile", place * row_b + tn + j * 4 * columns, 4) for j in range(WPTN // 4)]
        return sum(a, []), sum(b, [])

    for t in range(STAGES - 1):
        load(t)
    yield 1
    a, b = fragment(0, 0)
    whole = K // TSK if TAIL else count
    for t in range(whole):
        load(t + STAGES - 1)
        for k in range(TSK):
            if k == TSK - 1:
                yield 2
            step = t * TSK + k + 1
            following = fragment(step // TSK, step % TSK)
            acc = [[c + x * y for c, x in zip(column, a, strict=True)] for column, y in zip(acc, b, strict=True)]
            a, b = following
    for k in range(K % TSK * TAIL):
        a, b = fragment(whole, k)
        acc = [[c + x * y for c, x in zip(column, a, strict=True)] for column, y in zip(acc, b, strict=True)]
    yield 3
    for j in range(WPTN):
        for i in range(0, WPTM, 4):
            m, n = m0 + tm + i * WARPM, n0 + tn + j // 4 * 4 * columns + j % 4
            width = WIDTH if M % WIDTH == 0 else 1
            for first in range(0, 4, width):
                if n < N and m + first < M:
                    w.store_vector("C", n * M + m + first, acc[j][i + first : i + first + width])


def ordered(tile: int, rows: int, columns: int, order: int) -> tuple[int, int]:
    """Row and column of a tile that is number `tile` in kernel 15's order: down `order` rows, then on to the right."""
    band = tile // (order * columns) * order
    inside = min(order, rows - band)
    return band + tile % (order * columns) % inside, tile % (order * columns) // inside
