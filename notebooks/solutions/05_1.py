turns = 32
checks.check_05_1(turns)
