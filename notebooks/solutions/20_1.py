received = 4096 * 4096 * 4 / 2**20 * (1 / 4 + 1 / 4)
checks.check_20_1(received)
