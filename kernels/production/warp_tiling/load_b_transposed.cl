// B's tile: vectors down a column of the transposed B
#define KB (ITEMS*WIDTH/TSN)                 // steps of k of B's tile
#define LPTB (TSK/KB)
#define B_AT(k, n) B[(size_t)(k)*ldb + (n)]
#define COPY_B(l) COPY(&Btile[filled][kb + (l)*KB][ib], b_from + (l)*KB*ldb, \
                       n0 + ib < N && left_b > (l)*KB)
#define B_STEP (size_t)TSK*ldb
