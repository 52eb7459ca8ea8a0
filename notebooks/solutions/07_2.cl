        // load: ITEMS vectors of each tile at a time, in the order of memory
        for (int e0 = 0; e0 < TSK*TSM/WIDTH; e0 += ITEMS) {
            const int i = (e0 + tid) % (TSM/WIDTH); // row of the tile, in vectors
            const int j = (e0 + tid) / (TSM/WIDTH); // column of the tile
            Atile[j][i] = A[(k0 + j)*(M/WIDTH) + m0/WIDTH + i];
        }
        for (int e0 = 0; e0 < TSK*TSM/WIDTH; e0 += ITEMS) {
            const int i = (e0 + tid) % (TSM/WIDTH);
            const int j = (e0 + tid) / (TSM/WIDTH);
            Btile[j][i] = B[(k0 + j)*(N/WIDTH) + n0/WIDTH + i];
        }
