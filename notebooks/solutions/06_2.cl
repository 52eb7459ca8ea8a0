        // compute
        #pragma unroll UNROLL
        for (int k = 0; k < TSK; k++) {
            float a[WPTM];                   // each loaded once, used WPTN times
            for (int i = 0; i < WPTM; i++) {
                a[i] = Atile[k][tm + i*RTSM];
            }
            float b[WPTN];                   // each loaded once, used WPTM times
            for (int j = 0; j < WPTN; j++) {
                b[j] = Btile[tn + j*RTSN][k];
            }
            for (int j = 0; j < WPTN; j++) {
                for (int i = 0; i < WPTM; i++) {
                    acc[j][i] += a[i] * b[j];
                }
            }
        }
