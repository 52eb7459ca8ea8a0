uses = 64 / (8 + 8)
checks.check_06_1(uses)
