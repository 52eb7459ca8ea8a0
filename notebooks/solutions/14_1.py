tile_14_1 = {"TSM": 96, "TSN": 48, "TSK": 16, "WPTM": 6, "WPTN": 6}
checks.check_14_1(tile_14_1)
