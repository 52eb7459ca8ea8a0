settings = {
    "TSM": 32,
    "TSN": 32,
    "TSK": 32,
    "WPTM": 4,
    "WPTN": 4,
    "WIDTH": 2,
    "READONLY": 1,
    "UNROLL": 1,
}
checks.check_08_3(settings)
