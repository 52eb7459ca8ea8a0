floats = 2 * 64**3 // 16
checks.check_02_1(floats)
