        // compute, and load the next fragments
        #pragma unroll
        for (int k = 0; k < TSK; k++) {
            if (k == TSK - 1) {
                // barrier: the next tile is there for all, and nobody needs this one any more
                AWAIT(STAGES - 2);
                barrier(CLK_LOCAL_MEM_FENCE);
                now = !BEYOND && left == TSK ? now : now + 1 < STAGES ? now + 1 : 0;
            }
            FRAGMENT((k + 1)%TSK, (k + 1)%2)
            for (int j = 0; j < WPTN; j++) {
                for (int i = 0; i < WPTM; i++) {
                    acc[j][i] += a[k%2][i] * b[k%2][j];
                }
            }
        }
