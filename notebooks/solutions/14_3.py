# seven columns: narrower than a micro-tile of a processor, so that selection falls back
shape = (1024, 7, 512)
own_tile = {
    "TSM": 64,
    "TSN": 7,
    "TSK": 1,
    "WPTM": 8,
    "WPTN": 7,
    "UNROLL": 1,
    "WIDTH": 8,
    "STAGES": 0,
}
checks.check_14_3(shape and (shape, own_tile))
