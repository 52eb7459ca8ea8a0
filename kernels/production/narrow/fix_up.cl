            // fix-up: the last work-group to finish its part adds up all parts, in the order of their steps
            cut++;
            const long begin = step - step%steps;
            const int first = ((begin + 1)*groups - 1)/line;     // the work-groups of the first step
            const int last = ((begin + steps)*groups - 1)/line;  // and the last step of the tile
            __global int* come = (__global int*)(pieces + (size_t)2*groups*SUMS) + first;
            IN_ORDER();
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            if (tid == 0) {
                come_before = atomic_inc(come);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            whole = come_before == min(last - first, steps - 1); // there are at most as many parts as steps
            barrier(CLK_LOCAL_MEM_FENCE);
            if (whole) {
                IN_ORDER();
                if (tid == 0) {
                    *come = 0;
                }
            }
            // a work-group that shared the tile before, too, has stored this part as its second
            const long start = line*first/groups;
            const int second = start < begin && start%steps != 0;
            // if a tile has fewer elements than there are work-items, several share the parts of an element
            const int shares = SUMS < ITEMS ? ITEMS/SUMS : 1;
            const int share = SUMS < ITEMS ? tid/SUMS : 0;
            for (int e0 = 0; e0 < SUMS; e0 += ITEMS) {
                const int e = SUMS < ITEMS ? tid%SUMS : e0 + tid;
                const int until = whole && e < SUMS && share < shares ? last : -1;
                float total = 0.0f;
                #pragma unroll 8
                for (int source = first + share; source <= until; source += shares) {
                    // if there are few steps, some work-groups have none
                    if (groups <= line || line*source/groups < line*(source + 1)/groups) {
                        total += pieces[(size_t)(2*source + (source == first ? second : 0))*SUMS + e];
                    }
                }
                shared[tid] = total;
                barrier(CLK_LOCAL_MEM_FENCE);
                for (int other = 1; other < shares && tid < SUMS; other++) {
                    total += shared[other*SUMS + tid];
                }
                const int l = l0 + e%LONG;
                const int j = j0 + e/LONG;
                if (whole && share == 0 && e < SUMS && l < side && j < few) {
                    C[ROWS ? (size_t)l*M + j : (size_t)j*M + l] = total;
                }
                barrier(CLK_LOCAL_MEM_FENCE);
            }
