            // compute
            float four[4];
            vstore4(vload4(0, &B[k*N + n]), 0, four); // columns n to n + 3 of step k
            #pragma unroll
            for (int j = 0; j < RY; j++) {
                const float b = four[j];
                #pragma unroll
                for (int i = 0; i < VX; i++) {
                    acc[j][i] += a[i] * b;
                }
            }
