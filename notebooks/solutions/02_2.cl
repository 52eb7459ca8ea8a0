        // load: one element of each tile per work-item
        Atile[tn][tm] = A[(k0 + tn)*M + m0 + tm];
        Btile[tm][tn] = B[(n0 + tn)*K + k0 + tm];

        // barrier: the tiles are complete
        barrier(CLK_LOCAL_MEM_FENCE);

        // compute
        for (int k = 0; k < TS; k++) {
            acc += Atile[k][tm] * Btile[k][tn];
        }
