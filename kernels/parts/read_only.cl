// read-only loads: load(p) is *p; with READONLY on NVIDIA's GPUs through the read-only cache
#if READONLY && defined(__NV_CL_C_VERSION)
#if WIDTH == 1
static inline float load(const __global float* p)
{
    float v;
    asm("ld.global.nc.f32 %0, [%1];" : "=f"(v) : "l"(p));
    return v;
}
#elif WIDTH == 2
static inline float2 load(const __global float2* p)
{
    float2 v;
    asm("ld.global.nc.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "l"(p));
    return v;
}
#else
static inline float4 load4(const __global float4* p)
{
    float4 v;
    asm("ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];"
        : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p));
    return v;
}
#if WIDTH == 4
#define load(p) load4(p)
#else
static inline float8 load(const __global float8* p)
{
    const __global float4* half = (const __global float4*)p;
    return (float8)(load4(half), load4(half + 1));
}
#endif
#endif
#else
#define load(p) (*(p))
#endif
