uses = 64 * 128 * 8 // (8 * 128)
checks.check_19_1(uses)
