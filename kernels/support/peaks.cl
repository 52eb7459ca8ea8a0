// peaks: two small kernels that measure what a device can do at its best.
//
// fma_loop: independent chains of fused multiply-adds on floats (vectors of
//           WIDTH), no memory traffic: the arithmetic peak. A work-item does
//           2*CHAINS*WIDTH*rounds floating-point operations.
// copy:     one float4 in, one float4 out: the bandwidth of global memory.

#ifndef WIDTH
#define WIDTH 4 // floats in a vector: 1, 2, 4, 8 or 16
#endif
#ifndef CHAINS
#define CHAINS 12 // independent chains a work-item, to hide the unit's latency
#endif

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#if WIDTH == 1
#define FLOATX float
#define FIRST(v) v
#else
#define FLOATX JOIN(float, WIDTH)
#define FIRST(v) v.s0
#endif

__kernel void fma_loop(const int rounds, const float x, const float y,
                       __global float* restrict out)
{
    FLOATX acc[CHAINS];
    for (int c = 0; c < CHAINS; c++) {
        acc[c] = (FLOATX)(get_global_id(0) + c);
    }
    for (int r = 0; r < rounds; r++) {
        for (int c = 0; c < CHAINS; c++) {
            acc[c] = fma(acc[c], (FLOATX)(x), (FLOATX)(y));
        }
    }
    FLOATX sum = acc[0];
    for (int c = 1; c < CHAINS; c++) {
        sum += acc[c];
    }
    float total = 0.0f;
    total += FIRST(sum);
#if WIDTH > 1
    float lanes[WIDTH];
    JOIN(vstore, WIDTH)(sum, 0, lanes);
    for (int i = 1; i < WIDTH; i++) {
        total += lanes[i];
    }
#endif
    out[get_global_id(0)] = total;
}

__kernel void copy(const __global float4* restrict in, __global float4* restrict out)
{
    const size_t i = get_global_id(0);
    out[i] = in[i];
}
