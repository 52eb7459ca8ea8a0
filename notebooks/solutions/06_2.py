def groups(items, registers):
    return 65536 // (items * registers)


checks.check_06_2(groups)
