// multiply: sum + a b, for 16 x 8 elements per warp; a work-item holds 4 elements of a, 2 of b and 4 of the sum
static inline float4 mma(const float* a, const float* b, const float4 sum)
{
    float4 d;
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
        : "=f"(d.x), "=f"(d.y), "=f"(d.z), "=f"(d.w)
        : "r"(as_uint(a[0])), "r"(as_uint(a[1])), "r"(as_uint(a[2])), "r"(as_uint(a[3])),
          "r"(as_uint(b[0])), "r"(as_uint(b[1])),
          "f"(sum.x), "f"(sum.y), "f"(sum.z), "f"(sum.w));
    return d;
}
