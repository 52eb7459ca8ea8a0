// B's tile: single floats down a column of B
#if TSK % 8 == 0
#define KB 8                                 // 8 floats from each of 4 columns: a warp's stores have no bank conflicts
#else
#define KB TSK
#endif
#define NB (ITEMS/KB)                        // columns of B that a work-group copies at once
#define LPTB (TSK/KB*(TSN/NB))
#define B_AT(k, n) B[(size_t)(n)*ldb + (k)]
#define K_OF(l) ((l)%(TSK/KB)*KB)
#define N_OF(l) ((l)/(TSK/KB)*NB)
#define COPY_B(l) COPY_1(&Btile[filled][kb][ib] + K_OF(l)*(TSN + PAD) + N_OF(l), \
                         b_from + (size_t)N_OF(l)*ldb + K_OF(l), n0 + ib + N_OF(l) < N && left_b > K_OF(l))
#define B_STEP TSK
