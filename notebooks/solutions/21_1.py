share = 1 / (2 * 4 * (1 + 1 / 8))
checks.check_21_1(share)
