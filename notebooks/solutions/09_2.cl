        // load: the next tiles into the other buffer, while we compute
        const int last = min(k1, K - TSK);   // the last tiles twice, but nothing behind them
        for (int e0 = 0; e0 < TSK*TSM/WIDTH; e0 += ITEMS) {
            const int i = (e0 + tid) % (TSM/WIDTH); // row of the tile, in vectors
            const int j = (e0 + tid) / (TSM/WIDTH); // column of the tile
            Atile[next][j][i] = A[(last + j)*(M/WIDTH) + m0/WIDTH + i];
            Btile[next][j][i] = B[(last + j)*(N/WIDTH) + n0/WIDTH + i];
        }
