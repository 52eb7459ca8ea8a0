// packed: a product on a CPU, from registers and caches alone
//
// Idea:     The innermost loop keeps a block of C in vector registers, two vectors of rows by six
//           columns, and reads its operands sequentially. To make that possible, A is first copied
//           ("packed") into panels of MR rows, one step of k after the other. Six columns of B stay
//           in the L1 cache while the panels of A pass by, and a block of KC steps of A stays in
//           the L2 cache.
// Why 2x6:  A multiply-add takes 4 or 5 cycles, and two can start per cycle, so ten sums must be in
//           flight. Twelve are, which leaves 4 of 16 vector registers for two vectors of A and the
//           elements of B.
// Costs:    1/MR + 1/6 loads per multiply-add, nearly all from the L1 cache; one extra read and
//           write of A.
// Requires: work-groups of one work-item, each doing the work of a thread. No local memory, no
//           barriers; any M, N and K.
// Sources:  K. Goto and R. van de Geijn, "Anatomy of high-performance matrix multiplication"
//           (TOMS 34(3), 2008); T. M. Low et al., "Analytical modeling is enough for
//           high-performance BLIS" (TOMS 43(2), 2016).
//
//                  six columns of B
//                     [ KC steps ]           Offsets and strides count elements. "apart" is the
//                     [ in L1    ]           stride of rows (of A) or columns (of B), "step" that
//   panel of A        [          ]           of steps of k; "down" and "across" are the strides of
//   [ MR x KC, L2 ]   [ MR x 6: registers ]  rows and columns of C0. C is contiguous.

#ifndef REAL
#define REAL float // or double
#endif
#ifndef WIDTH
#define WIDTH 8 // elements of a vector register
#endif
#ifndef KC
#define KC 256 // steps of k in a block
#endif
#ifndef BETA
#define BETA 0 // 1: add beta C0
#endif

#define MR (2*WIDTH) // rows of a panel of A, and of the block in registers
#define NR 6 // columns of the block in registers
#define JOIN(type, width) type##width
#define VECTOR_OF(type, width) JOIN(type, width)
#define VECTOR VECTOR_OF(REAL, WIDTH)
#define PADDED(m) (((m) + MR - 1)/MR*MR) // rows of all panels
#define LINE 16 // steps of k copied per row and pass: a cache line of floats

// Copy A into panels. The order is: blocks of KC steps of k, within them panels of MR rows, within
// them one step of k after the other. A work-item copies one panel of one block. Rows beyond the
// last one of A are zeros.
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void pack(const int M, const int K,
          const __global REAL* restrict A, const long offset_a, const long apart_a, const long step_a,
          __global REAL* restrict panels)
{
    const int m = get_group_id(0)*MR; // first row of the panel
    const int k0 = get_group_id(1)*KC; // first step of k of the block
    const int depth = min(KC, K - k0);
    const int height = min(MR, M - m); // rows that exist
    A += offset_a + m*apart_a + k0*step_a;
    panels += k0*(long)PADDED(M) + m*depth;
    if (height < MR) {
        for (int i = 0; i < MR*depth; i++) {
            panels[i] = 0;
        }
    }
    if (step_a == 1) {
        // Steps of k are adjacent. Rows whose distance is a power of two evict each other from the
        // L1 cache, so copy one cache line of each row at a time.
        for (int first = 0; first < depth; first += LINE) {
            const int end = min(first + LINE, depth);
            for (int i = 0; i < height; i++) {
                for (int k = first; k < end; k++) {
                    panels[k*MR + i] = A[i*apart_a + k];
                }
            }
        }
    } else if (height == MR) {
        for (int k = 0; k < depth; k++) {
            for (int i = 0; i < MR; i++) { // rows are adjacent, their number constant: vectors
                panels[k*MR + i] = A[k*step_a + i];
            }
        }
    } else {
        for (int k = 0; k < depth; k++) {
            for (int i = 0; i < height; i++) {
                panels[k*MR + i] = A[k*step_a + i];
            }
        }
    }
}

// What element (m, n) of C holds before this block of k is added: beta C0 at first, then the sum
// so far.
#if BETA
#define BEFORE(so_far, m, n) (fresh ? beta*C0[offset_c0 + (m)*down_c0 + (n)*across_c0] : (so_far))
#else
#define BEFORE(so_far, m, n) (fresh ? 0 : (so_far))
#endif

// Column J of the block in registers. Beyond the last column of B the last one is read again, for
// sums that are never stored. Each sum is a separate variable: an array would be kept in memory.
#define COLUMN(J) const __global REAL* b##J = B + offset_b + min(n + J, N - 1)*apart_b + k0*step_b; \
                  VECTOR c##J##_0 = 0, c##J##_1 = 0;
#define MULTIPLY(J) c##J##_0 += a0*b##J[at]; c##J##_1 += a1*b##J[at];

// C = alpha A B (+ beta C0) if first is 1, and C = C + alpha A B if it is 0. A work-item computes
// rows x columns of C.
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void gemm(const int M, const int N, const int K, const int rows, const int columns, const REAL alpha,
          const __global REAL* restrict A, // in panels
          const __global REAL* restrict B, const long offset_b, const long apart_b, const long step_b,
#if BETA
          const REAL beta, const __global REAL* C0, const long offset_c0, const long down_c0, const long across_c0,
#endif
          const int first, __global REAL* C)
{
    // identifiers: this work-item's block of C
    const int m0 = get_group_id(0)*rows;
    const int n0 = get_group_id(1)*columns;
    const int m1 = min(m0 + rows, M);
    const int n1 = min(n0 + columns, N);

    for (int k0 = 0; k0 < K; k0 += KC) {
        const int depth = min(KC, K - k0);
        const int fresh = first && k0 == 0; // C has no sum yet

        for (int n = n0; n < n1; n += NR) {
            for (int m = m0; m < m1; m += MR) {
                const __global VECTOR* a = (const __global VECTOR*)(A + k0*(long)PADDED(M) + m*depth);

                // accumulators
                COLUMN(0) COLUMN(1) COLUMN(2) COLUMN(3) COLUMN(4) COLUMN(5)

                // compute
                long at = 0;
                for (int k = 0; k < depth; k++) {
                    const VECTOR a0 = a[0], a1 = a[1];
                    MULTIPLY(0) MULTIPLY(1) MULTIPLY(2) MULTIPLY(3) MULTIPLY(4) MULTIPLY(5)
                    a += 2;
                    at += step_b;
                }

                // store: the part of the block that is inside C
                const VECTOR sums[NR][2] = {
                    {c0_0, c0_1}, {c1_0, c1_1}, {c2_0, c2_1}, {c3_0, c3_1}, {c4_0, c4_1}, {c5_0, c5_1},
                };
                const int height = min(MR, M - m);
                for (int j = 0; j < min(NR, N - n); j++) {
                    const REAL* sum = (const REAL*)sums[j];
                    __global REAL* to = C + (n + j)*(long)M + m;
                    for (int i = 0; i < height; i++) { // adjacent rows: vectors
                        to[i] = BEFORE(to[i], m + i, n + j) + alpha*sum[i];
                    }
                }
            }
        }
    }
}
