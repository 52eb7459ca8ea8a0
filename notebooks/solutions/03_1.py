def local_loads(p, q):
    return 1 / p + 1 / q


checks.check_03_1(local_loads)
