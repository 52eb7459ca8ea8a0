// shuffles: shuffle(value, lane) is the value of another lane, from register to register. SHARE says
// whether the device has them and SHUFFLE asks for them, LANES how many work-items can exchange
// values, and lane_id() which of them this one is. A row of work-items has RTSM of them.
#if SHUFFLE && defined(__NV_CL_C_VERSION)
#define SHARE 1
#define LANES 32
#define SUB_GROUPS
static inline float shuffle(const float value, const int lane)
{
    float other;
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1f, 0xffffffff;"
                 : "=f"(other) : "f"(value), "r"(lane));
    return other;
}
static inline int lane_id(void)
{
    return (get_local_id(1)*RTSM + get_local_id(0)) % 32;
}
#elif SHUFFLE && defined(cl_khr_subgroup_shuffle) && defined(cl_intel_required_subgroup_size) \
    && RTSM % 16 == 0
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
#pragma OPENCL EXTENSION cl_khr_subgroup_shuffle : enable
#define SHARE 1
#define LANES 16
#define SUB_GROUPS __attribute__((intel_reqd_sub_group_size(16)))
#define shuffle(value, lane) sub_group_shuffle(value, (uint)(lane))
#define lane_id() ((int)get_sub_group_local_id())
#else
#define SHARE 0
#define LANES 32
#define SUB_GROUPS
#define shuffle(value, lane) (value)
#define lane_id() 0
#endif
