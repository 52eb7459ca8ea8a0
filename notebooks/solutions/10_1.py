rows = -(-1000 // 160) * 160
checks.check_10_1(rows)
