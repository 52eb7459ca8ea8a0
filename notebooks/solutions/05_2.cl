        // load: RTS columns of each tile at a time
        for (int j0 = 0; j0 < TSK; j0 += RTS) {
            const int j = j0 + tn;           // column of the tile
            Atile[j][tm] = A[(k0 + j)*M + m0 + tm];
            Btile[tm][j] = B[(k0 + j)*N + n0 + tm];
        }
