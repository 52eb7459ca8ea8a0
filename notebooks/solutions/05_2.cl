        // load: RTS columns of each tile at a time
        for (int e0 = 0; e0 < TS*TSK; e0 += TS*RTS) {
            const int e = e0 + tn*TS + tm;   // element of the tile, in the order of memory
            const int i = e % TS, j = e / TS;
            Atile[j][i] = A[(k0 + j)*M + m0 + i];
            Btile[i][j] = B[(k0 + j)*N + n0 + i];
        }
