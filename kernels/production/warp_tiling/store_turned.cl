            // a work-item's columns of a row are neighbours now
            for (int wm = 0; wm < WPTM; wm++) {
                for (int wn = 0; wn < WPTN; wn += 4) {
                    const int m = m0 + ROW(wm/4*4) + wm%4;
                    const int n = n0 + COLUMN(wn);
                    const float4 sum = (float4)(acc[wn][wm], acc[wn + 1][wm], acc[wn + 2][wm], acc[wn + 3][wm]);
                    __global float* c = &C_AT(m, n);
                    if (N%4 == 0) {
                        if (m < M && n < N) *(__global float4*)c = sum;
                    } else if (m < M) {
                        if (n < N) c[0] = sum.x;
                        if (n + 1 < N) c[1] = sum.y;
                        if (n + 2 < N) c[2] = sum.z;
                        if (n + 3 < N) c[3] = sum.w;
                    }
                }
            }
