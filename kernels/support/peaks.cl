// peaks: two small kernels that measure the peaks of a device.
//
// fma_loop: the arithmetic peak: independent chains of fused multiply-adds on vectors of
//           WIDTH floats, without memory traffic. A work-item performs
//           2*CHAINS*WIDTH*rounds floating-point operations.
// copy:     the bandwidth of global memory: each work-item loads and stores one float4.

#ifndef WIDTH
#define WIDTH 4 // floats in a vector: 1, 2, 4, 8 or 16
#endif
#ifndef CHAINS
#define CHAINS 12 // independent chains per work-item, to hide the latency of a multiply-add
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
