        // which tile, and which of its steps
        const int tile = step/(K/TSK);
        const int tiles_m = M/TSM;
        const int band = tile/(ORDER*tiles_m)*ORDER;             // its first column of tiles
        const int columns = min(ORDER, tiles_n - band);
        const int m0 = tile%(ORDER*tiles_m)/columns*TSM;
        const int n0 = (band + tile%(ORDER*tiles_m)%columns)*TSN;
        const int first = step%(K/TSK);
        const int count = min(K/TSK - first, end - step);
        const __global float* a_from = A + (first*TSK + id/TSM)*M + m0 + id%TSM;
        const __global float* b_from = B + (first*TSK + id/TSN)*N + n0 + id%TSN;
        int left = count*TSK;                // steps of k that are left to multiply
        int filled = 0, now = 0;             // the stages to fill and to compute from
