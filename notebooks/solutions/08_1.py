def source_lane(lane, j, rtsm):
    return lane // rtsm * rtsm + j


checks.check_08_1(source_lane)
