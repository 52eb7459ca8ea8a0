store = """
// store: the sum with its bias, and nothing below 0
for (int j = 0; j < WPTN; j++) {
    for (int i = 0; i < WPTM; i++) {
        const int m = m0 + tm + i*RTSM;
        const int n = n0 + tn + j*RTSN;
        const float sum = alpha*acc[j][i] + beta*C0[offset_c + m*down + n*across];
        C[n*M + m] = fmax(sum, 0.0f);
    }
}
"""
checks.check_14_2(store)
