import math


def turns(stride):
    return math.gcd(stride, 32)


checks.check_05_1(turns)
