// 11 register only: blocks straight from global memory into registers.
//
// Before:   10_any_size. There tiles went through local memory; here a work-item
//           loads what its RX x RY block needs by itself, as vectors of WIDTH, and
//           leaves the sharing to the caches. clBLAS did so on GPUs; a processor
//           likes it best of all, for its local memory is ordinary memory anyway.
// Costs:    no local memory, no barrier, RX*RY accumulators and RX + 1 registers;
//           1/RX + 1/RY global loads per multiply-add.
// Requires: M and N multiples of RX*GX and RY*GY, K of RK. B as it is or transposed.
//
//         A's column k   B's row k, RY floats
//                  *     * *         step k: RX*RY multiply-adds. A work-item has RX + 1
//      RX floats   *     C C         factors in registers, and goes RK steps per iteration.
//                  *     C C
//
// Compile:  -DRX=8          rows of C a work-item computes [4, 8, 16, 32, 48]
//           -DRY=4          columns of C a work-item computes [2, 4, 8, 12]
//           -DRK=1          steps of k in one turn of the loop [1, 2, 4]
//           -DWIDTH=4       floats in a vector [1, 2, 4, 8, 16]
//           -DGX=8          rows of work-items in a work-group [1, 2, 4, 8, 16]
//           -DGY=8          columns of work-items [1, 4, 8, 16]
//           -DTRANSPOSED=1  1: B is N x K; 0: B is K x N [0, 1]

#define VX (RX/WIDTH)      // vectors of A per step
#include "parts/floatX.cl" // a vector of WIDTH floats

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

            // compute
            #pragma unroll
            for (int j = 0; j < RY; j++) {
                const float b = TRANSPOSED ? B[k*N + (n + j)] : B[(n + j)*K + k];
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

#if !(16 % WIDTH == 0)
#error WIDTH is none of 1, 2, 4, 8 and 16
#endif
#if !(RX % WIDTH == 0)
#error RX is not a multiple of WIDTH
#endif
#if !(TRANSPOSED < 2)
#error TRANSPOSED is neither 0 nor 1
#endif
