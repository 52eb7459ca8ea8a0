settings_16_3 = {"TSM": 256, "TSN": 128, "TSK": 8, "WPTM": 16, "STAGES": 4}
checks.check_16_3(settings_16_3)
