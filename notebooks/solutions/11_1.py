multiply_adds = 16 // 8 * 8
checks.check_11_1(multiply_adds)
