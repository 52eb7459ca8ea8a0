def choose(size):
    # just past a multiple of the tile padding has more work-groups than the chip can run at once,
    # and small tiles with guards have no such jump; in a large matrix every multiprocessor has many
    # work-groups anyway, and a few more weigh little
    return "guard" if size < 2000 and 0 < size % 128 < 96 else "pad"


checks.check_13_3(choose)
