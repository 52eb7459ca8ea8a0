def stages(TSM, TSN, TSK, STAGES, lanes):
    return 4 * STAGES * TSK * (TSM + TSN), (STAGES - 1) * TSM * TSN * TSK / lanes


checks.check_16_1(stages)
