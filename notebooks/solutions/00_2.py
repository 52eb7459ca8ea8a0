def gflops(m, n, k, seconds):
    return 2 * m * n * k / seconds * 1e-9


checks.check_00_2(gflops)
