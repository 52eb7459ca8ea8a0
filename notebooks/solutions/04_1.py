segments = 32 * 16 // 32
checks.check_04_1(segments)
