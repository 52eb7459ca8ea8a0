def intensity(m, n, k):
    return 2 * m * n * k / (4 * (2 * m * n * k + m * n))


checks.check_01_2(intensity)
