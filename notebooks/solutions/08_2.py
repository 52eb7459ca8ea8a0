def source_lane(lane, wn, rtsm):
    return lane // rtsm * rtsm + wn


checks.check_08_2(source_lane)
