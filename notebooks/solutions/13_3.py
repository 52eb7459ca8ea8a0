def choose(size):
    # just past a multiple of the tile padding has more work-groups than the chip can run at once;
    # in a large matrix every multiprocessor has many of them anyway, and a few more weigh little
    return "shift" if size < 2000 and 0 < size % 128 < 96 else "pad"


checks.check_13_3(choose)
