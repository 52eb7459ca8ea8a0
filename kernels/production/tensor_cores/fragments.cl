            // fragments: load what this work-item needs for steps t and t + 4 from local memory into registers
            float a[WM/16][4], a_small[WM/16][4];
            float b[WN/8][2], b_small[WN/8][2];
            for (int h = 0; h < 2; h++) {
                for (int i = 0; i < WM/16; i += 2) {
                    const float4 x = *(const __local float4*)&Atile[now][k + t + 4*h][wm + i*16 + 4*g];
                    a[i][2*h] = x.x;
                    a[i][2*h + 1] = x.y;
                    a[i + 1][2*h] = x.z;
                    a[i + 1][2*h + 1] = x.w;
                }
                for (int j = 0; j < WN/8; j += 4) {
                    const float4 x = *(const __local float4*)&Btile[now][k + t + 4*h][wn + j*8 + 4*g];
                    b[j][h] = x.x;
                    b[j + 1][h] = x.y;
                    b[j + 2][h] = x.z;
                    b[j + 3][h] = x.w;
                }
            }
            for (int i = 0; i < WM/16; i++) {
                for (int l = 0; l < 4; l++) {
                    const float x = a[i][l];
                    a[i][l] = BIG(x);
                    a_small[i][l] = SMALL(x, a[i][l]);
                }
            }
            for (int j = 0; j < WN/8; j++) {
                for (int l = 0; l < 2; l++) {
                    const float x = b[j][l];
                    b[j][l] = BIG(x);
                    b_small[j][l] = SMALL(x, b[j][l]);
                }
            }
