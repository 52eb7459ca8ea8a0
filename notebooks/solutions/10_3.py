settings_10_3 = {"TSM": 128, "TSN": 24, "TSK": 16, "WPTM": 8, "WPTN": 12}
checks.check_10_3(settings_10_3)
