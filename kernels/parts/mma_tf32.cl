// mma: sum + a b of TF32 numbers, where a is 16 x 8, b is 8 x 8, and all 32 work-items of a warp
// take part. Work-item 4g + t holds of
//
//    a: rows g and g + 8 of column t (a.x, a.y), then of column t + 4 (a.z, a.w)
//    b: column g of row t (b.x), then of row t + 4 (b.y)
//    sum: columns 2t and 2t + 1 of row g (sum.x, sum.y), then of row g + 8 (sum.z, sum.w)
//
// `part_a` and `part_b` say which part of each float is multiplied. `a_tile` and `b_tile` point to
// the same numbers in local memory, for devices without the instruction: to the first of 8 steps
// of k, at the work-item's own rows of sum (neighbours) and its own columns (4 floats apart).
#if TENSOR && defined(__NV_CL_C_VERSION)
static inline float4 mma(float4 sum, const int part_a, const float4 a, const __local float* a_tile,
                         const int part_b, const float2 b, const __local float* b_tile)
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
static inline float4 mma(float4 sum, const int part_a, const float4 a, const __local float* a_tile,
                         const int part_b, const float2 b, const __local float* b_tile)
{
    for (int k = 0; k < 8; k++) {
        const float x0 = cut(part(a_tile[k*(TSM + PAD)], part_a));
        const float x1 = cut(part(a_tile[k*(TSM + PAD) + 1], part_a));
        const float y0 = cut(part(b_tile[k*(TSN + PAD)], part_b));
        const float y4 = cut(part(b_tile[k*(TSN + PAD) + 4], part_b));
        sum += (float4)(x0*y0, x0*y4, x1*y0, x1*y4);
    }
    return sum;
}
#endif
