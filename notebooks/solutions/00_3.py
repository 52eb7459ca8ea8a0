place = "n*K + k"
checks.check_00_3(place)
