def wasted(m, n, k, tsm, tsn, tsk):
    whole = 1
    for size, tile in zip((m, n, k), (tsm, tsn, tsk), strict=True):
        whole *= -(-size // tile) * tile
    return 1 - m * n * k / whole


checks.check_10_1(wasted)
