                    // one instruction, or three for the products of the parts of floats
#if PARTS == 2
                    sum[i][j] = mma(a_small[i], b[j], sum[i][j]);
                    sum[i][j] = mma(a[i], b_small[j], sum[i][j]);
#endif
                    sum[i][j] = mma(a[i], b[j], sum[i][j]);
