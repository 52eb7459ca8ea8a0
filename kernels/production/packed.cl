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
#define REAL float // or double: what is multiplied and added up
#endif
#ifndef HALF
#define HALF 0 // 1: A and B are float16, which is converted to REAL
#endif
#ifndef HALF_RESULT
#define HALF_RESULT 0 // 1: so are C and C0, and sums that are not complete are kept in a workspace
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

// Conversions from and to the bits of float16, as vectors: compilers make none of vload_half and
// vstore_half. The exponent of a float is larger by 112; infinities and NaN have the largest one.
float8 from_half(const ushort8 bits)
{
    const uint8 x = convert_uint8(bits), magnitude = (x & 0x7fffu) << 13;
    const uint8 special = magnitude >= 0x0f800000u ? (uint8)(0x7f800000u) : (uint8)(0u);
    const float8 scaled = as_float8(magnitude)*5192296858534827628530496329220096.0f; // 2^112
    return as_float8(as_uint8(scaled) | special | (x & 0x8000u) << 16);
}

ushort8 to_half(const float8 x)
{
    const uint8 magnitude = as_uint8(x) & 0x7fffffffu;
    const uint8 normal = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13; // to even
    const uint8 subnormal = as_uint8(as_float8(magnitude) + 0.5f) - 0x3f000000u; // the sum is rounded
    const uint8 special = magnitude > 0x7f800000u ? (uint8)(0x7e00u) : (uint8)(0x7c00u);
    const uint8 finite = magnitude < 0x38800000u ? subnormal : normal;
    const uint8 all = magnitude < 0x47800000u ? finite : special;
    return convert_ushort8(all | (as_uint8(x) >> 16 & 0x8000u));
}

#if HALF
#define ELEMENT ushort
#define LOAD(x) from_half((ushort8)(x)).s0
#define LOAD8(to, x) vstore8(from_half(vload8(0, x)), 0, to)
#else
#define ELEMENT REAL
#define LOAD(x) (x)
#endif
#if HALF_RESULT
#define RESULT ushort
#define LOAD_RESULT(x) from_half((ushort8)(x)).s0
#else
#define RESULT REAL
#define LOAD_RESULT(x) (x)
#endif

// Copy A into panels. The order is: blocks of KC steps of k, within them panels of MR rows, within
// them one step of k after the other. A work-item copies one panel of one block. Rows beyond the
// last one of A are zeros.
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void pack(const int M, const int K,
          const __global ELEMENT* restrict A, const long offset_a, const long apart_a, const long step_a,
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
#if HALF
                if (end - first == LINE) {
                    REAL line[LINE];
                    LOAD8(line, A + i*apart_a + first);
                    LOAD8(line + 8, A + i*apart_a + first + 8);
                    for (int k = 0; k < LINE; k++) {
                        panels[(first + k)*MR + i] = line[k];
                    }
                    continue;
                }
#endif
                for (int k = first; k < end; k++) {
                    panels[k*MR + i] = LOAD(A[i*apart_a + k]);
                }
            }
        }
    } else if (height == MR) {
        for (int k = 0; k < depth; k++) {
#if HALF && WIDTH >= 4
            for (int i = 0; i < MR; i += 8) {
                LOAD8(panels + k*MR + i, A + k*step_a + i);
            }
            continue;
#endif
            for (int i = 0; i < MR; i++) { // rows are adjacent, their number constant: vectors
                panels[k*MR + i] = LOAD(A[k*step_a + i]);
            }
        }
    } else {
        for (int k = 0; k < depth; k++) {
            for (int i = 0; i < height; i++) {
                panels[k*MR + i] = LOAD(A[k*step_a + i]);
            }
        }
    }
}

// What element (m, n) of C holds before this block of k is added: beta C0 at first, then the sum
// so far.
#if BETA
#define BEFORE(so_far, m, n) \
    (fresh ? beta*LOAD_RESULT(C0[offset_c0 + (m)*down_c0 + (n)*across_c0]) : (so_far))
#else
#define BEFORE(so_far, m, n) (fresh ? 0 : (so_far))
#endif

// Column J of the block in registers. Beyond the last column of B the last one is read again, for
// sums that are never stored. Each sum is a separate variable: an array would be kept in memory.
#if HALF // they were converted
#define B_COLUMN(J) const REAL* b##J = converted + J*apart
#define B_STEP step
#else
#define B_COLUMN(J) \
    const __global REAL* b##J = B + offset_b + min(n + J, N - 1)*apart_b + k0*step_b
#define B_STEP step_b
#endif
#define COLUMN(J) B_COLUMN(J); VECTOR c##J##_0 = 0, c##J##_1 = 0;
#define MULTIPLY(J) c##J##_0 += a0*b##J[at]; c##J##_1 += a1*b##J[at];

// C = alpha A B (+ beta C0) if first is 1, and C = C + alpha A B if it is 0. A work-item computes
// rows x columns of C.
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void gemm(const int M, const int N, const int K, const int rows, const int columns, const REAL alpha,
          const __global REAL* restrict A, // in panels
          const __global ELEMENT* restrict B, const long offset_b, const long apart_b, const long step_b,
#if BETA
          const REAL beta, const __global RESULT* C0, const long offset_c0, const long down_c0, const long across_c0,
#endif
#if HALF_RESULT
          const int last, __global REAL* sums, // laid out as C
#endif
          const int first, __global RESULT* C)
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
#if HALF
            // convert six columns of B, which all panels of A will use
            REAL converted[8*KC];
            const int whole = apart_b == 1 && n + 8 <= N; // 8 neighbours in each step of k
            const int apart = whole ? 1 : KC, step = whole ? 8 : 1;
            for (int k = 0; whole && k < depth; k++) {
                LOAD8(converted + 8*k, B + offset_b + n + (k0 + k)*step_b);
            }
            for (int j = 0; !whole && j < NR; j++) {
                const __global ELEMENT* from = B + offset_b + min(n + j, N - 1)*apart_b + k0*step_b;
                int k = 0;
                for (; step_b == 1 && k + 8 <= depth; k += 8) {
                    LOAD8(converted + j*KC + k, from + k);
                }
                for (; k < depth; k++) {
                    converted[j*KC + k] = LOAD(from[k*step_b]);
                }
            }
#endif
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
                    at += B_STEP;
                }

                // store: the part of the block that is inside C
                const VECTOR block[NR][2] = {
                    {c0_0, c0_1}, {c1_0, c1_1}, {c2_0, c2_1}, {c3_0, c3_1}, {c4_0, c4_1}, {c5_0, c5_1},
                };
                const int height = min(MR, M - m);
                for (int j = 0; j < min(NR, N - n); j++) {
                    const REAL* sum = (const REAL*)block[j];
#if HALF_RESULT
                    __global REAL* to = sums + (n + j)*(long)M + m;
                    if (last && k0 + KC >= K) {
#if BETA == 0 && WIDTH >= 4
                        if (fresh && height == MR) {
                            for (int i = 0; i < MR; i += 8) {
                                vstore8(to_half(alpha*vload8(0, sum + i)), 0, C + (n + j)*(long)M + m + i);
                            }
                            continue;
                        }
#endif
                        REAL total[(MR + 7)/8*8] = {0};
                        for (int i = 0; i < height; i++) {
                            total[i] = BEFORE(to[i], m + i, n + j) + alpha*sum[i];
                        }
                        for (int i = 0; i < height; i += 8) {
                            const ushort8 rounded = to_half(vload8(0, total + i));
                            if (i + 8 <= height) {
                                vstore8(rounded, 0, C + (n + j)*(long)M + m + i);
                                continue;
                            }
                            for (int l = i; l < height; l++) {
                                C[(n + j)*(long)M + m + l] = ((const ushort*)&rounded)[l - i];
                            }
                        }
                        continue;
                    }
#else
                    __global REAL* to = C + (n + j)*(long)M + m;
#endif
                    for (int i = 0; i < height; i++) { // adjacent rows: vectors
                        to[i] = BEFORE(to[i], m + i, n + j) + alpha*sum[i];
                    }
                }
            }
        }
    }
}
