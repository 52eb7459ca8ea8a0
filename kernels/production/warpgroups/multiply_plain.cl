            // the same products in ordinary arithmetic
            for (int j = 0; j < 64; j++) {
                const int m = row + 2*i + j/2%2;
                const int n = j/4*8 + 2*t + j%2;
                sum[j] = 0.0f;
                for (int k = 0; k < TSK; k++) {
                    const int there = m0 + m < M && first + k < K;
                    const float x = there ? A[(size_t)(first + k)*lda + m0 + m] : 0.0f;
                    const float big = BIG(x);
#if PARTS == 2
                    sum[j] += CUT(x - big)*Btile[now][k/4][n][k%4] + big*CUT(Bsmall[odd][k/4][n][k%4]);
#endif
                    sum[j] += big*Btile[now][k/4][n][k%4];
                }
            }
