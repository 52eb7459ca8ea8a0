sizes_12_3 = (65, 64, 95)  # of three tiles along M one reaches beyond, and of three steps along K
checks.check_12_3(sizes_12_3)
