// peaks: small kernels that measure the peaks of a device.
//
// fma_loop:   the arithmetic peak: independent chains of multiply-adds on vectors of WIDTH
//             floats, without memory traffic. A work-item makes 2*CHAINS*WIDTH*rounds
//             floating-point operations.
// copy:       the bandwidth of global memory: each work-item loads and stores one float4.
// local_loop: the bandwidth of local memory: neighbouring work-items read neighbouring
//             vectors of WIDTH floats, without bank conflicts. The first row of a round depends
//             on `step`, which the compiler does not know; otherwise it would load a row once
//             for several rounds. A work-item reads 4*CHAINS*WIDTH*rounds bytes.
// cache_loop: the bandwidth of the cache that holds data which is read repeatedly. In each
//             round a work-item reads CHAINS vectors, `gap` apart, from another one of
//             `places` positions (a power of two). Work-item i starts at i*apart and advances
//             by `step`. A work-item reads 4*CHAINS*WIDTH*rounds bytes.

#ifndef WIDTH
#define WIDTH 4 // floats in a vector: 1, 2, 4, 8 or 16
#endif
#ifndef CHAINS
#define CHAINS 12 // independent chains per work-item, to hide the latency of a multiply-add
#endif

#ifndef FUSED
#define FUSED 1 // 1: fma(a, b, c); 0: a*b + c, which is faster with some compilers for CPUs
#endif
#ifndef ITEMS
#define ITEMS 64 // work-items in a work-group of local_loop
#endif

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#if WIDTH == 1
#define FLOATX float
#else
#define FLOATX JOIN(float, WIDTH)
#endif

// The sum over all chains: the compiler must not remove any of them.
float total(const FLOATX* acc)
{
    FLOATX sum = acc[0];
    #pragma unroll
    for (int c = 1; c < CHAINS; c++) {
        sum += acc[c];
    }
#if WIDTH == 1
    return sum;
#else
    float lanes[WIDTH];
    JOIN(vstore, WIDTH)(sum, 0, lanes);
    float all = 0.0f;
    for (int i = 0; i < WIDTH; i++) {
        all += lanes[i];
    }
    return all;
#endif
}

__kernel void fma_loop(const int rounds, const float x, const float y,
                       __global float* restrict out)
{
    FLOATX acc[CHAINS];
    #pragma unroll
    for (int c = 0; c < CHAINS; c++) {
        acc[c] = (FLOATX)(get_global_id(0) + c);
    }
    for (int r = 0; r < rounds; r++) {
        #pragma unroll
        for (int c = 0; c < CHAINS; c++) {
#if FUSED
            acc[c] = fma(acc[c], (FLOATX)(x), (FLOATX)(y));
#else
            acc[c] = acc[c]*x + y;
#endif
        }
    }
    out[get_global_id(0)] = total(acc);
}

__kernel void copy(const __global float4* restrict in, __global float4* restrict out)
{
    const size_t i = get_global_id(0);
    out[i] = in[i];
}

#define PLACES 4 // rows of ITEMS vectors at which a round of local_loop may start; a power of two

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void local_loop(const int rounds, const int step, __global float* restrict out)
{
    __local FLOATX tile[(PLACES + CHAINS)*ITEMS];
    const int i = get_local_id(0);
    for (int row = 0; row < PLACES + CHAINS; row++) {
        tile[row*ITEMS + i] = (FLOATX)(row + i);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    FLOATX acc[CHAINS];
    #pragma unroll
    for (int c = 0; c < CHAINS; c++) {
        acc[c] = (FLOATX)(0.0f);
    }
    for (int r = 0; r < rounds; r++) {
        const int first = ((r*step) & (PLACES - 1))*ITEMS + i;
        #pragma unroll
        for (int c = 0; c < CHAINS; c++) {
            acc[c] += tile[first + c*ITEMS];
        }
    }
    out[get_global_id(0)] = total(acc);
}

__kernel void cache_loop(const int rounds, const int places, const int apart, const int step,
                         const int gap, const __global FLOATX* restrict in,
                         __global float* restrict out)
{
    FLOATX acc[CHAINS];
    #pragma unroll
    for (int c = 0; c < CHAINS; c++) {
        acc[c] = (FLOATX)(0.0f);
    }
    for (int r = 0; r < rounds; r++) {
        const int place = (r*step + (int)get_global_id(0)*apart) & (places - 1);
        #pragma unroll
        for (int c = 0; c < CHAINS; c++) {
            acc[c] += in[place + c*gap];
        }
    }
    out[get_global_id(0)] = total(acc);
}
