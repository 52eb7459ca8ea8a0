def most_registers(items, groups):
    return min(255, 65536 // (items * groups))


checks.check_06_1(most_registers)
