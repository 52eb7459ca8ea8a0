settings_03_3 = {"TS": 64, "WPT": 64}
checks.check_03_3(settings_03_3)
