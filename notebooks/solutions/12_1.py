def across(m, n, tile):
    return -(-m // tile) * -(-n // tile) - (m // tile) * (n // tile)


checks.check_12_1(across)
