// the product of two floats as the tensor cores compute it
static inline float product(const float a, const float b)
{
    const float a_big = BIG(a);
    const float b_big = BIG(b);
#if PARTS == 1
    return a_big*b_big;
#else
    return CUT(SMALL(a, a_big))*b_big + a_big*CUT(SMALL(b, b_big)) + a_big*b_big;
#endif
}
