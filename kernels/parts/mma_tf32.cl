// mma: all 32 work-items of a warp add a b to sum, where a is 16 x 8, b is 8 x 8, and the factors
// are TF32 numbers. Work-item 4g + t passes and receives
//
//    a: rows g and g + 8 of column t (a.x, a.y), then of column t + 4 (a.z, a.w)
//    b: column g of row t (b.x), then of row t + 4 (b.y)
//    sum: columns 2t and 2t + 1 of row g (sum.x, sum.y), then of row g + 8 (sum.z, sum.w)
//
// `part_a` and `part_b`, BIG or SMALL, say which part of each factor is multiplied. Without the
// instruction a work-item reads the factors of the other work-items in local memory: `at_a` is the
// first of the two rows, which are neighbours, and `at_b` the first of the two columns, which are 4
// floats apart.
#if TENSOR && defined(__NV_CL_C_VERSION)
static inline float4 mma(float4 sum, const float4 a, const int part_a, const float2 b,
                         const int part_b, const __local float* at_a, const __local float* at_b)
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum.x), "+f"(sum.y), "+f"(sum.z), "+f"(sum.w)
        : "r"(as_uint(part(a.x, part_a))), "r"(as_uint(part(a.y, part_a))),
          "r"(as_uint(part(a.z, part_a))), "r"(as_uint(part(a.w, part_a))),
          "r"(as_uint(part(b.x, part_b))), "r"(as_uint(part(b.y, part_b))));
    return sum;
}
#else
static inline float4 mma(float4 sum, const float4 a, const int part_a, const float2 b,
                         const int part_b, const __local float* at_a, const __local float* at_b)
{
    for (int k = 0; k < 8; k++) {
        const float x0 = cut(part(at_a[k*(TSM + PAD)], part_a));
        const float x1 = cut(part(at_a[k*(TSM + PAD) + 1], part_a));
        const float y0 = cut(part(at_b[k*(TSN + PAD)], part_b));
        const float y4 = cut(part(at_b[k*(TSN + PAD) + 4], part_b));
        sum += (float4)(x0*y0, x0*y4, x1*y0, x1*y4);
    }
    return sum;
}
#endif
