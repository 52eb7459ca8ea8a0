// load: the next tile of B into stage `filled`
#define NEXT() \
    for (int l = 0; l < LPTB; l++) { \
        COPY(&Btile[filled][kb][ib + l*NB][0], b_from + (size_t)l*NB*ldb, \
             n0 + ib + l*NB < N ? clamp(4*(K - k0 - 4*kb), 0, 16) : 0); \
    } \
    k0 += TSK; \
    b_from += TSK; \
    filled = filled + 1 < STAGES ? filled + 1 : 0; \
    COPIED()

// fetch: this work-item's 4 rows of A's tile, at steps t, t + 4, ...
#define FETCH(first) \
    if (inside && (first) + TSK <= K) { \
        for (int l = 0; l < TSK/4; l++) { \
            raw[l] = *(const __global float4*)(a_from + (size_t)(4*l)*lda); \
        } \
    } else { \
        for (int l = 0; l < TSK/4; l++) { \
            const int there = m0 + row < M && (first) + t + 4*l < K; \
            raw[l] = there ? *(const __global float4*)(a_from + (size_t)(4*l)*lda) : (float4)(0.0f); \
        } \
    }

// cut: split an element of A into its parts; split a tile of B, whose big parts take its place
#define CUT_A(x, big, small) \
    big = BIG(x); \
    small = (x) - big;
#define CUT_B(from, to) \
    for (int l = 0; l < LPTB; l++) { \
        __local float4* place = (__local float4*)&Btile[from][tid/TSN + l*(ITEMS/TSN)][tid%TSN][0]; \
        const float4 x = *place; \
        const float4 big = (float4)(BIG(x.x), BIG(x.y), BIG(x.z), BIG(x.w)); \
        *place = big; \
        *(__local float4*)&Bsmall[to][tid/TSN + l*(ITEMS/TSN)][tid%TSN][0] = x - big; \
    } \
    SHOW()
