split = """
for (int l = 0; l < LPTB; l++) {
    const float4 big = (float4)(BIG(b[l].x), BIG(b[l].y), BIG(b[l].z), BIG(b[l].w));
    *(__local float4*)Bbig[to][kb][ib + l*NB] = big;
    *(__local float4*)Bsmall[to][kb][ib + l*NB] = b[l] - big;
}
"""
checks.check_19_3(split)
