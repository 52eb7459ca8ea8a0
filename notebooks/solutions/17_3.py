def place(tile, rows, columns):
    band = tile // (8 * columns) * 8
    column = tile % (8 * columns) // 8
    backwards = band // 8 % 2  # every other band is gone through from right to left
    return band + tile % 8, columns - 1 - column if backwards else column


checks.check_17_3(place)
