memory = 2 * 16 * (128 + 128) * 4
checks.check_09_1(memory)
