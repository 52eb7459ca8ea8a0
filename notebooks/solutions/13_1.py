def place(t, m, rows):
    return min(t * rows, m - rows), min(rows, m - t * rows)


checks.check_13_1(place)
