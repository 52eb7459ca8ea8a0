        // load: RTS columns of each tile at a time, zero times something for what does not exist
        for (int j0 = 0; j0 < TS; j0 += RTS) {
            const int j = j0 + tn;           // column of the tile
            const float inside_a = m0 + tm < M && k0 + j < K ? 1.0f : 0.0f;
            const float inside_b = k0 + tm < K && n0 + j < N ? 1.0f : 0.0f;
            const float a = A[min(k0 + j, K - 1)*M + min(m0 + tm, M - 1)];
            const float b = B[min(n0 + j, N - 1)*K + min(k0 + tm, K - 1)];
            Atile[j][tm] = a * inside_a;
            Btile[j][tm] = b * inside_b;
        }
