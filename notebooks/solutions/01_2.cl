    // compute
    float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    int k = 0;
    for (; k + 4 <= K; k += 4) {
        for (int i = 0; i < 4; i++) {
            sums[i] += A[(k + i)*M + m] * B[n*K + k + i];
        }
    }
    for (; k < K; k++) {
        sums[0] += A[k*M + m] * B[n*K + k];
    }
    acc = (sums[0] + sums[1]) + (sums[2] + sums[3]);
