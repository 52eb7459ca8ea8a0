// peaks: small kernels that measure the peaks of a device.
//
// fma_loop:   the arithmetic peak: independent chains of multiply-adds on vectors of WIDTH
//             floats, without memory traffic. A work-item makes 2*CHAINS*WIDTH*rounds
//             floating-point operations.
// copy:       the bandwidth of global memory: each work-item loads and stores one float4.

#ifndef WIDTH
#define WIDTH 4 // floats in a vector: 1, 2, 4, 8 or 16
#endif
#ifndef CHAINS
#define CHAINS 12 // independent chains per work-item, to hide the latency of a multiply-add
#endif

#ifndef FUSED
#define FUSED 1 // 1: fma(a, b, c); 0: a*b + c, which is faster with some compilers for CPUs
#endif

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#if WIDTH == 1
#define FLOATX float
#else
#define FLOATX JOIN(float, WIDTH)
#endif

__kernel void fma_loop(const int rounds, const float x, const float y,
                       __global FLOATX* restrict out)
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
    FLOATX sum = acc[0]; // over all chains: the compiler must not remove any of them
    #pragma unroll
    for (int c = 1; c < CHAINS; c++) {
        sum += acc[c];
    }
    out[get_global_id(0)] = sum;
}

__kernel void copy(const __global float4* restrict in, __global float4* restrict out)
{
    const size_t i = get_global_id(1)*get_global_size(0) + get_global_id(0);
    out[i] = in[i];
}
