// fragment: load what a work-item needs for step k from local memory into registers. Without `volatile` the compiler
// would move these loads to where their values are needed, and the work-item would wait
#define FRAGMENT(k, to) \
    for (int wm = 0; wm < WPTM; wm += 4) { \
        *(float4*)&a[to][wm] = *(const volatile __local float4*)&Atile[now][k][tm + wm*WARPM]; \
    } \
    for (int wn = 0; wn < WPTN; wn += 4) { \
        *(float4*)&b[to][wn] = *(const volatile __local float4*)&Btile[now][k][tn + wn*WARPN]; \
    }

// multiply: the fragments of a step. Two columns at a time, down the first two and up the next two, so that each
// multiply-add shares a factor with the one before
#define MULTIPLY(of) \
    _Pragma("unroll") \
    for (int wn = 0; wn < WPTN; wn += 2) { \
        _Pragma("unroll") \
        for (int i = 0; i < WPTM; i++) { \
            const int wm = wn%4 ? WPTM - 1 - i : i; \
            acc[wn + i%2][wm] += a[of][wm]*b[of][wn + i%2]; \
            acc[wn + 1 - i%2][wm] += a[of][wm]*b[of][wn + 1 - i%2]; \
        } \
    }
