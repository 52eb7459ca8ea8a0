settings_15_3 = {"TSM": 64, "TSN": 64, "WPTM": 4, "WPTN": 4}
checks.check_15_3(settings_15_3)
