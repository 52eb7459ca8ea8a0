// load: the next tiles of A and B into stage `filled`
#define LOAD(A_THERE, B_THERE) \
    for (int l = 0; l < LPTA; l++) { \
        COPY_4(&Atile[filled][ka + l*KA][ia], a_from + l*KA*lda, A_THERE); \
    } \
    for (int l = 0; l < LPTB; l++) { \
        COPY_4(&Btile[filled][kb + l*KB][ib], b_from + l*KB*ldb, B_THERE); \
    }
#define NEXT() \
    if (k0 < K) { \
        if (inside && k0 + TSK <= K) { \
            LOAD(1, 1) \
        } else { \
            LOAD(m0 + ia < M && k0 + ka + l*KA < K, n0 + ib < N && k0 + kb + l*KB < K) \
        } \
        k0 += TSK; \
        a_from += TSK*(size_t)lda; \
        b_from += TSK*(size_t)ldb; \
        filled = filled + 1 < STAGES ? filled + 1 : 0; \
    } \
    COPIED()
