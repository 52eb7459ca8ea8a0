// The two TF32 numbers that stand for a float: BIG is the float rounded to 10 bits after the point,
// SMALL is the rest, of which a tensor core reads as many bits.
#define BIG 0
#define SMALL 1

// what a tensor core reads of a float
static inline float cut(const float x)
{
    return as_float(as_uint(x) & 0xffffe000u);
}

static inline float part(const float x, const int which)
{
    const float big = as_float((as_uint(x) + 0x1000u) & 0xffffe000u);
    return which == BIG ? big : x - big;
}
