def loads(m, n, k, ts):
    return (m // ts) * (n // ts) * (k // ts) * 2 * ts * ts


checks.check_02_2(loads)
