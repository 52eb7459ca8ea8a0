// A's tile: vectors down a column
#if WIDTH == 4
#define COPY COPY_4
#else
#define COPY COPY_1
#endif
#define COPY_A(l) COPY(&Atile[filled][ka][ia] + (l)*KA*TSM, a_from + (l)*KA*lda, \
                       m0 + ia < M && left_a > (l)*KA)

// load: the next tiles of A and B into stage `filled`, or zeroes where there are none; of all these copies, NEXT(k)
// starts those that belong beside the multiply-adds of step k
#define STEP_OF(l, count) ((l)*BATCHES/(count)*((TSK - 1)/BATCHES))
#define NEXT(k) \
    _Pragma("unroll") \
    for (int l = 0; l < LPTA; l++) { \
        if (STEP_OF(l, LPTA) == (k)) \
            COPY_A(l); \
    } \
    _Pragma("unroll") \
    for (int l = 0; l < LPTB; l++) { \
        if (STEP_OF(l, LPTB) == (k)) \
            COPY_B(l); \
    } \
    if ((k) == TSK - 2) { \
        COPIED(); \
        left_a -= TSK; \
        left_b -= TSK; \
        a_from += (size_t)TSK*lda; \
        b_from += B_STEP; \
        filled = filled + 1 < STAGES ? filled + 1 : 0; \
    }
