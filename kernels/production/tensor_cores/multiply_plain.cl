                    // the same 8 steps of k in ordinary arithmetic
                    const int m = wm + i/2*32 + i%2*2 + 4*g;
                    const int n = wn + j/4*32 + j%4 + 8*t;
                    for (int l = 0; l < 8; l++) {
                        const __local float* x = &Atile[now][k + l][m];
                        const __local float* y = &Btile[now][k + l][n];
                        sum[i][j].x += product(x[0], y[0]);
                        sum[i][j].y += product(x[0], y[4]);
                        sum[i][j].z += product(x[1], y[0]);
                        sum[i][j].w += product(x[1], y[4]);
                    }
