    // the work-groups after those of the tiles are for the edge strips
    if (group >= groups) {
        strip(M, N, K, lda, ldb, A, B, C, group - groups, &Atile[0][0][0]);
        return;
    }
