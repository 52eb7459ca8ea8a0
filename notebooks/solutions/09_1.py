def length_of_one(tiles, load, compute, buffers):
    if buffers == 1:
        return tiles * (load + compute)
    return load + (tiles - 1) * max(load, compute) + compute


checks.check_09_1(length_of_one)
