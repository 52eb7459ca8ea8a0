#ifndef RX
#define RX 8 // rows of C a work-item computes
#endif
#ifndef RY
#define RY 4 // columns of C a work-item computes
#endif
#ifndef RK
#define RK 1 // steps of k in one turn of the loop
#endif
#ifndef WIDTH
#define WIDTH 4 // floats in a vector: 1, 2, 4, 8 or 16
#endif
#ifndef GX
#define GX 8 // rows of work-items in a work-group
#endif
#ifndef GY
#define GY 8 // columns of work-items
#endif
#ifndef TRANSPOSED
#define TRANSPOSED 1 // 1: B is N x K; 0: B is K x N
#endif

#if !(16 % WIDTH == 0)
#error WIDTH must be 1, 2, 4, 8 or 16
#endif
#if !(RX % WIDTH == 0)
#error RX must be a multiple of WIDTH
#endif
#if !(TRANSPOSED < 2)
#error TRANSPOSED must be 0 or 1
#endif

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#if WIDTH == 1
#define floatX float
#else
#define floatX JOIN(float, WIDTH)
#endif

#define VX (RX/WIDTH) // vectors of A a step

#if TRANSPOSED
#define B_AT(k, n) B[(k)*N + (n)]
#else
#define B_AT(k, n) B[(n)*K + (k)]
#endif

__kernel __attribute__((reqd_work_group_size(GX, GY, 1)))
void gemm(const int M, const int N, const int K,
          const __global floatX* restrict A,
          const __global float* restrict B,
          __global floatX* restrict C)
{
    // identifiers
    const int m = get_global_id(0)*VX;       // first vector of rows of C
    const int n = get_global_id(1)*RY;       // first column of C

    // accumulators
    floatX acc[RY][VX];
    for (int j = 0; j < RY; j++) {
        for (int i = 0; i < VX; i++) {
            acc[j][i] = (floatX)(0.0f);
        }
    }

    for (int k0 = 0; k0 < K; k0 += RK) {
        #pragma unroll
        for (int r = 0; r < RK; r++) {
            const int k = k0 + r;

            // load
            floatX a[VX];
            #pragma unroll
            for (int i = 0; i < VX; i++) {
                a[i] = A[k*(M/WIDTH) + m + i];
            }

            const float4 b4 = vload4(0, &B[k*N + n]);

            // compute
            #pragma unroll
            for (int j = 0; j < RY; j++) {
                const floatX b = (floatX)(((const float*)&b4)[j]);
                #pragma unroll
                for (int i = 0; i < VX; i++) {
                    acc[j][i] += a[i] * b;
                }
            }
        }
    }

    // store
    for (int j = 0; j < RY; j++) {
        for (int i = 0; i < VX; i++) {
            C[(n + j)*(M/WIDTH) + m + i] = acc[j][i];
        }
    }
}
