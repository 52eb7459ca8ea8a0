def received_elements(m, n, k, rows, columns):
    return m * k / rows * (1 - 1 / columns) + k * n / columns * (1 - 1 / rows)


checks.check_20_2(received_elements)
