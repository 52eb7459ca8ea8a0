rows = 32 - 100 % 32
checks.check_13_1(rows)
