// 08 vendor features: read-only loads, and shuffles instead of local loads.
//
// Before:   07_wide_loads. With both switches off it is exactly that kernel.
//           READONLY: A and B come through the read-only path of the cache.
//           SHUFFLE: an element of B is read from local memory by one work-item
//           and handed to its neighbours from register to register.
// Costs:    TSK*(TSM + TSN) floats of local memory, WPTM*WPTN accumulators and
//           WPTM + WPTN registers; 1/TSM + 1/TSN global loads per multiply-add, and
//           1/WPTM + 1/WPTN local ones (with SHUFFLE 1/(WPTM*WPTN) + 1/WPTN).
// Requires: as 07_wide_loads; with SHUFFLE, RTSM = TSM/WPTM a divisor of 32 and at
//           least WPTN. Where a device lacks a feature, the plain path runs: both
//           are inline PTX on NVIDIA; SHUFFLE also runs on sub-groups of 16 where
//           the OpenCL extensions for them exist.
//
//    SHUFFLE, WPTN = 4:     lane      0   1   2   3   4 ...   of one row of work-items
//                           reads    b0  b1  b2  b3  b0 ...   one local load per lane
//                           asks lane 0, 1, 2, 3 in turn, and has b0 b1 b2 b3.

#ifndef TSM
#define TSM 128 // rows of the tile of C [32, 64, 128, 160]
#endif
#ifndef TSN
#define TSN 128 // columns of the tile of C [32, 64, 128, 160]
#endif
#ifndef TSK
#define TSK 16 // depth of the tiles of A and B, in steps of k [8, 16, 32]
#endif
#ifndef WPTM
#define WPTM 8 // rows of C a work-item computes [2, 4, 8, 10]
#endif
#ifndef WPTN
#define WPTN 8 // columns of C a work-item computes [2, 4, 8, 10]
#endif
#ifndef WIDTH
#define WIDTH 4 // floats in a vector loaded from global memory [1, 2, 4, 8]
#endif
#ifndef READONLY
#define READONLY 0 // 1: load A and B through the read-only cache where the device can [0, 1]
#endif
#ifndef SHUFFLE
#define SHUFFLE 0 // 1: share B among neighbours from register to register where the device can [0, 1]
#endif
#ifndef UNROLL
#define UNROLL 4 // steps of k that the compiler lays out in one turn of the loop [1, 4, 16]
#endif

#if !(TSM == TSN)
#error TSM and TSN differ; this kernel fills both tiles with one loop (10 does not)
#endif
#if !(8 % WIDTH == 0)
#error WIDTH is none of 1, 2, 4 and 8
#endif
#if !(TSM % WPTM == 0)
#error TSM is not a multiple of WPTM
#endif
#if !(TSN % WPTN == 0)
#error TSN is not a multiple of WPTN
#endif
#if !(TSM % WIDTH == 0)
#error TSM is not a multiple of WIDTH
#endif
#if !(TSN % WIDTH == 0)
#error TSN is not a multiple of WIDTH
#endif
#if !((TSK * WPTM * WPTN) % (TSN * WIDTH) == 0)
#error uneven shares of a tile: TSK times WPTM times WPTN is not a multiple of TSN times WIDTH
#endif
#if !(TSK % UNROLL == 0)
#error TSK is not a multiple of UNROLL
#endif
#if !(READONLY < 2)
#error READONLY is neither 0 nor 1
#endif
#if !(SHUFFLE < 2)
#error SHUFFLE is neither 0 nor 1
#endif
#if !(SHUFFLE * WPTN <= TSM / WPTM)
#error SHUFFLE needs WPTN to be at most TSM over WPTM
#endif
#if !(SHUFFLE * 32 % (TSM / WPTM) == 0)
#error SHUFFLE needs TSM over WPTM to divide 32
#endif

#if WIDTH == 1
#define floatX float
#elif WIDTH == 2
#define floatX float2
#elif WIDTH == 4
#define floatX float4
#elif WIDTH == 8
#define floatX float8
#endif

#define RTSM (TSM/WPTM)   // rows of work-items in a work-group
#define RTSN (TSN/WPTN)   // columns of work-items in a work-group
#define ITEMS (RTSM*RTSN) // work-items in a work-group

// READONLY: one load of floatX that bypasses the coherent cache
#if READONLY && defined(__NV_CL_C_VERSION)
#if WIDTH == 1
inline float load(const __global float* p)
{
    float v;
    asm("ld.global.nc.f32 %0, [%1];" : "=f"(v) : "l"(p));
    return v;
}
#elif WIDTH == 2
inline float2 load(const __global float2* p)
{
    float2 v;
    asm("ld.global.nc.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "l"(p));
    return v;
}
#else
inline float4 load4(const __global float4* p)
{
    float4 v;
    asm("ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];"
        : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p));
    return v;
}
#if WIDTH == 4
#define load(p) load4(p)
#else
#define load(p) ((float8)(load4((const __global float4*)(p)), load4((const __global float4*)(p) + 1)))
#endif
#endif
#else
#define load(p) (*(p))
#endif

// SHUFFLE: the value of another lane, counted from the first lane of this row of work-items
#if SHUFFLE && defined(__NV_CL_C_VERSION)
#define SHARE 1
#define LANES 32
inline float shuffle(float value, int lane)
{
    float other;
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=f"(other) : "f"(value), "r"(lane));
    return other;
}
#define lane_id() ((int)((get_local_id(1)*RTSM + get_local_id(0)) % 32))
#elif SHUFFLE && defined(cl_khr_subgroup_shuffle) && defined(cl_intel_required_subgroup_size) && RTSM % 16 == 0
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
#pragma OPENCL EXTENSION cl_khr_subgroup_shuffle : enable
#define SHARE 1
#define LANES 16
#define shuffle(value, lane) sub_group_shuffle(value, (uint)(lane))
#define lane_id() ((int)get_sub_group_local_id())
__attribute__((intel_reqd_sub_group_size(16)))
#else
#define SHARE 0
#endif

__kernel __attribute__((reqd_work_group_size(RTSM, RTSN, 1)))
void gemm(const int M, const int N, const int K,
          const __global floatX* restrict A,
          const __global floatX* restrict B,
          __global float* restrict C)
{
    // identifiers
    const int tm = get_local_id(0);          // first row in the tile of C
    const int tn = get_local_id(1);          // first column in the tile of C
    const int tid = tn*RTSM + tm;            // number of the work-item
    const int m0 = get_group_id(0)*TSM;      // first row of the tile of C
    const int n0 = get_group_id(1)*TSN;      // first column of the tile of C

#if SHARE
    const int first = lane_id() - tm % (RTSM < LANES ? RTSM : LANES); // first lane of this row
#endif

    // local memory
    __local floatX Atile[TSK][TSM/WIDTH];    // [k][m]
    __local floatX Btile[TSK][TSN/WIDTH];    // [k][n]
    const __local float* Af = (const __local float*)Atile; // the same, float by float
    const __local float* Bf = (const __local float*)Btile;

    // accumulators
    float acc[WPTN][WPTM];
    for (int j = 0; j < WPTN; j++) {
        for (int i = 0; i < WPTM; i++) {
            acc[j][i] = 0.0f;
        }
    }

    for (int k0 = 0; k0 < K; k0 += TSK) {

        // load: ITEMS vectors of each tile at a time, in the order of memory
        for (int e0 = 0; e0 < TSK*TSM/WIDTH; e0 += ITEMS) {
            const int i = (e0 + tid) % (TSM/WIDTH); // row of the tile, in vectors
            const int j = (e0 + tid) / (TSM/WIDTH); // column of the tile
            Atile[j][i] = load(&A[(k0 + j)*(M/WIDTH) + m0/WIDTH + i]);
            Btile[j][i] = load(&B[(k0 + j)*(N/WIDTH) + n0/WIDTH + i]);
        }

        // barrier: the tiles are complete
        barrier(CLK_LOCAL_MEM_FENCE);

        // compute
        #pragma unroll UNROLL
        for (int k = 0; k < TSK; k++) {
            float a[WPTM];                   // each loaded once, used WPTN times
            for (int i = 0; i < WPTM; i++) {
                a[i] = Af[k*TSM + tm + i*RTSM];
            }
            float b[WPTN];                   // each loaded once, used WPTM times
#if SHARE
            const float mine = Bf[k*TSN + tn + (tm % WPTN)*RTSN];
            for (int j = 0; j < WPTN; j++) {
                b[j] = shuffle(mine, first + j);
            }
#else
            for (int j = 0; j < WPTN; j++) {
                b[j] = Bf[k*TSN + tn + j*RTSN];
            }
#endif
            for (int j = 0; j < WPTN; j++) {
                for (int i = 0; i < WPTM; i++) {
                    acc[j][i] += a[i] * b[j];
                }
            }
        }

        // barrier: nobody needs the tiles any more
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    // store
    for (int j = 0; j < WPTN; j++) {
        for (int i = 0; i < WPTM; i++) {
            C[(n0 + tn + j*RTSN)*M + m0 + tm + i*RTSM] = acc[j][i];
        }
    }
}
