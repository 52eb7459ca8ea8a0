launch, settings = 11, {"RX": 16, "RY": 4, "WIDTH": 8}
text = sources.read(gemmlab.catalog[launch].file)
checks.check_21_3((launch, settings, text))
