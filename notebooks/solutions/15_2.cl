        // compute
        #pragma unroll UNROLL
        for (int k = 0; k < TSK; k++) {
            float a[WPTM] __attribute__((aligned(16))); // each loaded once, used WPTN times
            for (int i = 0; i < WPTM; i += LWIDTH) {
                *(floatX*)&a[i] = *(const __local floatX*)&Atile[now][k][tm + i*WARPM];
            }
            float b[WPTN] __attribute__((aligned(16))); // each loaded once, used WPTM times
            for (int j0 = 0; j0 < WPTN; j0 += LWIDTH) {
                *(floatX*)&b[j0] = *(const __local floatX*)&Btile[now][k][tn + j0*WARPN];
                for (int j = j0; j < j0 + LWIDTH; j++) {
                    for (int i = 0; i < WPTM; i++) {
                        acc[j][i] += a[i] * b[j];
                    }
                }
            }
        }
