            // compute
            const float4 four = vload4(0, &B[k*N + n]); // columns n to n + 3 of step k
            #pragma unroll
            for (int j = 0; j < RY; j++) {
                const floatX b = (floatX)(((const float*)&four)[j]);
                #pragma unroll
                for (int i = 0; i < VX; i++) {
                    acc[j][i] += a[i] * b;
                }
            }
