def loads(tsm, tsn, tsk, wptm, wptn, width):
    items = (tsm // wptm) * (tsn // wptn)
    return tsm * tsk // items // width


checks.check_07_2(loads)
