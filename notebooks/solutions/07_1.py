import math


def turns(wptm, rtsm):
    return max(1, rtsm * math.gcd(wptm, 32) // 32)


checks.check_07_1(turns)
