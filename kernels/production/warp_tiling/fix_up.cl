            // fix-up: the last work-group to finish its part adds up all parts, in the order of their steps
            const long begin = step - step%steps;
            const int first = ((begin + 1)*groups - 1)/line;     // the work-groups of the first step
            const int last = ((begin + steps)*groups - 1)/line;  // and the last step of the tile
            __global int* come = (__global int*)(pieces + (size_t)2*groups*TSM*TSN) + first;
            __local int* before = (__local int*)Atile;            // nobody needs the floats in it any more
            IN_ORDER();
            barrier(CLK_LOCAL_MEM_FENCE);
            if (tid == 0) {
                *before = atomic_inc(come);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            whole = *before == min(last - first, steps - 1);     // there are at most as many parts as steps
            barrier(CLK_LOCAL_MEM_FENCE);
            if (whole) {
                IN_ORDER();
                if (tid == 0) {
                    *come = 0;
                }
                for (int wn = 0; wn < WPTN; wn++) {
                    for (int wm = 0; wm < WPTM; wm++) {
                        acc[wn][wm] = 0.0f;
                    }
                }
                // a work-group that shared the tile before, too, has stored this part as its second
                const long start = line*first/groups;
                const int second = start < begin && start%steps != 0;
#if WPTM*WPTN <= 32
                #pragma unroll 4                             // the loads of several parts at once, if registers allow
#endif
                for (int from = first; from <= last; from++) {
                    // if there are few steps, some work-groups have none
                    if (groups <= line || line*from/groups < line*(from + 1)/groups) {
                        const int piece = 2*from + (from == first ? second : 0);
                        #pragma unroll
                        for (int wn = 0; wn < WPTN; wn++) {
                            #pragma unroll
                            for (int wm = 0; wm < WPTM; wm += 4) {
                                *(float4*)&acc[wn][wm] += *(const __global float4*)&PIECE(piece, wm, wn);
                            }
                        }
                    }
                }
            }
