operations = 2 * 300 * 200 * 100
checks.check_00_1(operations)
