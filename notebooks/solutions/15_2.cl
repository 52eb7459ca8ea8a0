        // compute
        #pragma unroll UNROLL
        for (int k = 0; k < TSK; k++) {
            float a[WPTM] __attribute__((aligned(16))); // each loaded once, used WPTN times
            for (int i = 0; i < WPTM; i += LWIDTH) {
                *(floatL*)&a[i] = *(const __local floatL*)&Atile[now][k][tm + i*WARPM];
            }
            float b[WPTN] __attribute__((aligned(16))); // each loaded once, used WPTM times
            for (int j = 0; j < WPTN; j += LWIDTH) {
                *(floatL*)&b[j] = *(const __local floatL*)&Btile[now][k][tn + j*WARPN];
            }
            for (int j = 0; j < WPTN; j++) {
                for (int i = 0; i < WPTM; i++) {
                    acc[j][i] += a[i] * b[j];
                }
            }
        }
