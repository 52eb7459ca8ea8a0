def choose(size):
    # just past a multiple of the tile padding multiplies most zeroes, and in a small matrix they weigh most
    return "shift" if size < 2000 and 0 < size % 128 < 96 else "pad"


checks.check_13_3(choose)
