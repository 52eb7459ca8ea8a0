settings = {"TSM": 32, "TSN": 32, "TSK": 32, "WPTM": 8, "WPTN": 8, "UNROLL": 16}
checks.check_07_3(settings)
