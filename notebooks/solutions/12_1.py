groups = 7 * 7
checks.check_12_1(groups)
