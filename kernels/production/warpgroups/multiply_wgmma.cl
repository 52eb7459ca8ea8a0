            // a batch of instructions: one or three for 8 steps of k
            FENCE();
            for (int k = 0; k < TSK/8; k++) {
#if PARTS == 2
                WGMMA(a_small[k][i], WHERE(&Btile[now][2*k][0][0]), k > 0);
                WGMMA(a[k][i], WHERE(&Bsmall[odd][2*k][0][0]), 1);
                WGMMA(a[k][i], WHERE(&Btile[now][2*k][0][0]), 1);
#else
                WGMMA(a[k][i], WHERE(&Btile[now][2*k][0][0]), k > 0);
#endif
            }
            DONE();
