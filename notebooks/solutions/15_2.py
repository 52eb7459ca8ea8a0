def share(p, q, width):
    return p * q / (p * q + (p + q) / width)


checks.check_15_2(share)
