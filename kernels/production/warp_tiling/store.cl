#if WIDTH == 1 && WARPM*WPTM % 32 == 0 && STAGES*TSK*WPTN >= TSN
            // in local memory the work-items of a warp exchange elements, so that neighbours store neighbours
            __local float* block = &Atile[0][0][0] + warp*32*WPTM;    // [columns of the warp][its rows]
            const int m1 = m0 + tm - lane%WARPM*4;                   // the warp's first row and column of C
            const int n1 = n0 + tn - lane/WARPM*4;
            __global float* c = C + (size_t)n1*M + m1;
            const bool inside = m0 + TSM <= M && n0 + TSN <= N;
            #pragma unroll
            for (int wn = 0; wn < WPTN; wn++) {
                #pragma unroll
                for (int wm = 0; wm < WPTM; wm += 4) {
                    const int at = (lane/WARPM*WPTM + wm)*WARPM + lane%WARPM*4;
                    *(__local float4*)&block[at] = *(const float4*)&acc[wn][wm];
                }
                barrier(CLK_LOCAL_MEM_FENCE);
                #pragma unroll
                for (int n = 0; n < WARPN; n++) {
                    __global float* column = c + (size_t)(wn/4*4*WARPN + wn%4 + n*4)*M + lane;
                    #pragma unroll
                    for (int m = 0; m < WARPM*WPTM; m += 32) {
                        if (inside) {
                            column[m] = block[n*WARPM*WPTM + m + lane];
                        } else if (n1 + wn/4*4*WARPN + wn%4 + n*4 < N && m1 + m + lane < M) {
                            column[m] = block[n*WARPM*WPTM + m + lane];
                        }
                    }
                }
                barrier(CLK_LOCAL_MEM_FENCE);
            }
#else
            for (int wn = 0; wn < WPTN; wn++) {
                for (int wm = 0; wm < WPTM; wm += 4) {
                    const int m = m0 + ROW(wm);
                    const int n = n0 + COLUMN(wn);
                    const float4 sum = *(const float4*)&acc[wn][wm];
                    __global float* c = &C_AT(m, n);
                    if (M%4 == 0) {
                        if (n < N && m < M) *(__global float4*)c = sum;
                    } else if (n < N) {
                        if (m < M) c[0] = sum.x;
                        if (m + 1 < M) c[1] = sum.y;
                        if (m + 2 < M) c[2] = sum.z;
                        if (m + 3 < M) c[3] = sum.w;
                    }
                }
            }
#endif
