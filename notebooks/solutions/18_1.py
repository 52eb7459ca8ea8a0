def most(p, rounded):
    return 2.0 ** -(p + 1) if rounded else 2.0**-p


checks.check_18_1(most)
