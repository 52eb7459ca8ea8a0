def place(k, n, row):
    return (k // 4 * row + n) * 4 + k % 4


checks.check_19_2(place)
