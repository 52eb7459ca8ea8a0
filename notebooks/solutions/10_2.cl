        // load: the next tiles into the other buffer, while we compute
        if (k1 < K) {
            for (int e0 = 0; e0 < TSK*(TSM + TSN)/WIDTH; e0 += ITEMS) {
                const int e = e0 + tid - TSK*TSM/WIDTH; // vector of B, unless it is one of A
                if (e < 0) {
                    const int i = (e0 + tid) % (TSM/WIDTH), j = (e0 + tid) / (TSM/WIDTH);
                    Atile[next][j][i] = A[(k1 + j)*(M/WIDTH) + m0/WIDTH + i];
                } else {
                    const int i = e % (TSN/WIDTH), j = e / (TSN/WIDTH);
                    Btile[next][j][i] = B[(k1 + j)*(N/WIDTH) + n0/WIDTH + i];
                }
            }
        }
