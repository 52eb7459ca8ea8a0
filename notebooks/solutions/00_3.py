place = "n*K + k"
mine = sources.read("01_naive.cl").replace("B[n*K + k]", f"B[{place}]")
checks.check_00_3(mine)
