items = 32 * 32 // 8
checks.check_03_1(items)
