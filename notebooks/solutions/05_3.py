place = "n*TSK + (k + n*TSK/32) % TSK"
checks.check_05_3(place)
