floats = 2 * 64 * 32 * 32
checks.check_01_1(floats)
