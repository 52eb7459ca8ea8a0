        // compute
        for (int k = 0; k < TS; k++) {
            const float a = Atile[k][tm];    // loaded once, used WPT times
            for (int j = 0; j < WPT; j++) {
                acc[j] += a * Btile[tn*WPT + j][k];
            }
        }

        // barrier: nobody needs the tiles any more
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    // store
    for (int j = 0; j < WPT; j++) {
        C[(n0 + tn*WPT + j)*M + m0 + tm] = acc[j];
    }
