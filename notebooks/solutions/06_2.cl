        // compute
        #pragma unroll UNROLL
        for (int k = 0; k < TSK; k++) {
            float b[WPTN];                   // each loaded once, used WPTM times
            for (int j = 0; j < WPTN; j++) {
                b[j] = Btile[tn + j*RTSN][k];
            }
            for (int i = 0; i < WPTM; i++) {
                const float a = Atile[k][tm + i*RTSM]; // loaded once, used WPTN times
                for (int j = 0; j < WPTN; j++) {
                    acc[j][i] += a * b[j];
                }
            }
        }
