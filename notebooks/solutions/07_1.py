instructions = 128 * 16 // 256 // 4
checks.check_07_1(instructions)
