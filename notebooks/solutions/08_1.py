loads = (8 + 1) / 64
checks.check_08_1(loads)
