def roof(tile, block, lanes, words, fetched):
    return min(1, words * block / 2 / lanes, fetched * tile / 2 / lanes)


checks.check_21_2(roof)
