def registers(rx, ry, width):
    vx = rx // width
    return vx * ry + vx + 1


checks.check_11_1(registers)
