        // load: the next tiles into the other buffer, while we compute
        if (k1 < K) {
            for (int e0 = 0; e0 < TSK*TSM/4; e0 += ITEMS) {
                const int i = (e0 + tid) % (TSM/4)*4; // first of four rows of the tile
                const int j = (e0 + tid) / (TSM/4);   // column of the tile
                const float4 a = k1 + j < K ? vload4(0, &A[(k1 + j)*M + m0 + i]) : (float4)(0.0f);
                vstore4(a, 0, &Atile[next][j][i]);
            }
            for (int e0 = 0; e0 < TSK*TSN/4; e0 += ITEMS) {
                const int i = (e0 + tid) % (TSN/4)*4;
                const int j = (e0 + tid) / (TSN/4);
                const float4 b = k1 + j < K ? vload4(0, &B[(k1 + j)*N + n0 + i]) : (float4)(0.0f);
                vstore4(b, 0, &Btile[next][j][i]);
            }
        }
