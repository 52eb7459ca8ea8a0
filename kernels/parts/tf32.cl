// A float as a sum of two TF32 numbers, which have 10 bits after the point: BIG is the float
// rounded to them, SMALL is the rest, of which a tensor core reads 10 bits after the point, too.
#define BIG 0
#define SMALL 1

// what a tensor core reads of a float
static inline float cut(const float x)
{
    return as_float(as_uint(x) & 0xffffe000u);
}

// the big or the small part of a float; adding half of the last bit that stays rounds to nearest
static inline float part(const float x, const int which)
{
    const float big = as_float((as_uint(x) + 0x1000u) & 0xffffe000u);
    return which == BIG ? big : x - big;
}
