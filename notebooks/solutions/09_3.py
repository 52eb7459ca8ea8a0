early = """
        floatX a_next[TSK*TSM/WIDTH/ITEMS], b_next[TSK*TSM/WIDTH/ITEMS];
        if (k1 < K) {
            for (int l = 0; l < TSK*TSM/WIDTH/ITEMS; l++) {
                const int i = (l*ITEMS + tid) % (TSM/WIDTH), j = (l*ITEMS + tid) / (TSM/WIDTH);
                a_next[l] = A[(k1 + j)*(M/WIDTH) + m0/WIDTH + i];
                b_next[l] = B[(k1 + j)*(N/WIDTH) + n0/WIDTH + i];
            }
        }
"""
late = """
        if (k1 < K) {
            for (int l = 0; l < TSK*TSM/WIDTH/ITEMS; l++) {
                const int i = (l*ITEMS + tid) % (TSM/WIDTH), j = (l*ITEMS + tid) / (TSM/WIDTH);
                Atile[next][j][i] = a_next[l];
                Btile[next][j][i] = b_next[l];
            }
        }
"""
checks.check_09_3((early, late))
