settings = {"WPTM": 4, "WPTN": 8, "PAD": 1, "UNROLL": 16}
checks.check_06_3(settings)
