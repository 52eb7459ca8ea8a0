settings_11_3 = {"RX": 16, "RY": 4, "WIDTH": 8}
checks.check_11_3(settings_11_3)
