        // compute
        #pragma unroll UNROLL
        for (int k = 0; k < TSK; k++) {
            float a[WPTM] __attribute__((aligned(16))); // each loaded once, used WPTN times
            for (int i = 0; i < WPTM; i += LWIDTH) {
                *(floatX*)&a[i] = *(const __local floatX*)&Atile[now][k][tm + i*WARPM];
            }
            float b[WPTN] __attribute__((aligned(16))); // each loaded once, used WPTM times
            for (int j = 0; j < WPTN; j += LWIDTH) {
                *(floatX*)&b[j] = *(const __local floatX*)&Btile[now][k][tn + j*WARPN];
            }
            for (int j = 0; j < WPTN; j++) {
                for (int i = 0; i < WPTM; i++) {
                    acc[j][i] += a[i] * b[j];
                }
            }
        }
