split = """
    const float4 big = (float4)(part(b.x, BIG), part(b.y, BIG), part(b.z, BIG), part(b.w, BIG));
    *(__local float4*)to_big = big;
    *(__local float4*)to_small = b - big;
"""
checks.check_19_3(split)
