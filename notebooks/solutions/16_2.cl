        // compute, and load the next fragments
        #pragma unroll
        for (int k = 0; k < TSK; k++) {
            if (k == TSK - 1) {
                // barrier: the next tile is complete, and all work-items have read this one
                AWAIT(STAGES - 2);
                barrier(CLK_LOCAL_MEM_FENCE);
                now = BEYOND || left > TSK ? after(now) : now;
            }
            for (int j = 0; j < WPTN; j += 4) {
                *(float4*)&b[(k + 1)%2][j] = fragment(&Btile[now][(k + 1)%TSK][tn + j*WARPN]);
            }
            for (int i = 0; i < WPTM; i += 4) {
                *(float4*)&a[(k + 1)%2][i] = fragment(&Atile[now][(k + 1)%TSK][tm + i*WARPM]);
            }
            for (int j = 0; j < WPTN; j++) {
                for (int i = 0; i < WPTM; i++) {
                    acc[j][i] += a[k%2][i] * b[k%2][j];
                }
            }
        }
