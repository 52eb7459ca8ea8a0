// warp tiling: a tile for the work-group, a block of it for each warp, a part of that for
// each work-item.
//
// Before:   17_stream_k. Its ideas and those below it, for any size. In 09_prefetch the elements
//           of a work-item are scattered over the tile, and each float takes a load from local
//           memory. Here, as in 15_warp_tiles, the 32 work-items of a warp share one compact
//           block and read it as vectors of 4. While one step of k is multiplied, the vectors
//           for the next step are loaded into registers, and the next tiles are copied to local
//           memory.
// Costs:    STAGES*TSK*(TSM + TSN + PAD) floats of local memory, WPTM*WPTN accumulators and
//           2*(WPTM + WPTN) further registers; 1/TSM + 1/TSN global and 1/WPTM + 1/WPTN local
//           loads per multiply-add, the local ones 4 at a time. With GROUPS also a workspace
//           of 2*GROUPS*TSM*TSN floats, which are written once and read once, and of GROUPS
//           counters, which must be zero before the first launch and are zero after each.
// Requires: any M, N and K: elements outside the matrices count as zero, and nothing is
//           stored there. Leading dimensions: for A, M rounded up to a multiple of WIDTH; for
//           B, N rounded up likewise if it is transposed (N x K), else K; for C, M. TSM must
//           be a multiple of WPTM*WARPM, TSN of WPTN*32/WARPM, WPTM and WPTN of 4; all
//           work-items copy equal shares of the tiles.
//
//    Which work-item of warp 0 holds an element of C (WARPM = 8, WPTM = WPTN = 8):
//
//        n    0   4   8  12 |16  20  24  28
//    m   0    0   8  16  24 | 0   8  16  24    each number is a block of 4 x 4;
//        4    1   9  17  25 | 1   9  17  25    a work-item holds four of them,
//      ...                  |                  so that neighbouring work-items
//       28    7  15  23  31 | 7  15  23  31    read neighbouring vectors
//       32    0   8  16  24 | 0   8  16  24
//      ...
//
//    With GROUPS = 0 a work-group computes one tile. Otherwise the work is divided as in
//    Stream-K: the steps of k of all tiles form one line, which is cut into GROUPS pieces of
//    equal length. A fix-up adds up the parts of a tile that was cut: on NVIDIA's GPUs the last
//    work-group to finish its part of the tile, elsewhere a second launch (fixup.cl):
//
//    tile   |      0      |      1      |      2      |
//    group  |    0    |    1    |    2    |    3    |
//
// Compile:  -DTSM=128       rows of the tile of C [32, 64, 128]
//           -DTSN=64        columns of the tile of C [32, 64, 128]
//           -DTSK=16        depth of the tiles of A and B, in steps of k [8, 16]
//           -DWPTM=8        rows of C a work-item computes [4, 8]
//           -DWPTN=8        columns of C a work-item computes [4, 8]
//           -DWARPM=8       rows of work-items in a warp of 32 [4, 8]
//           -DWIDTH=4       floats copied at once from global memory [1, 4]
//           -DSTAGES=2      tiles of A and B in local memory: one in use, the others being filled [2, 3]
//           -DORDER=8       rows of tiles in a band that neighbouring work-groups go through together (swizzle) [1, 8]
//           -DGROUPS=0      work-groups that share all tiles equally (Stream-K); 0: one work-group per tile [0, 16, 264]
//           -DTRANSPOSED=1  1: B is N x K; 0: B is K x N [0, 1]
//           -DBATCHES=1     batches in which the copies of a tile are issued, spread over the multiply-adds [1, 3, 7]
//           -DTAIL=0        1: a separate loop for the steps of k after the last whole tiles of A and B; 0: zeroes fill them up [0, 1]
//           -DASYNC=1       1: copy to local memory asynchronously where the device can [0, 1]

// 1 where the compiler is NVIDIA's, which takes PTX
#ifdef __NV_CL_C_VERSION
#define NVIDIA 1
#else
#define NVIDIA 0
#endif

#define WARPN (32/WARPM)                     // columns of work-items in a warp
#define WARPS (TSM/(WPTM*WARPM))             // warps in a column of the tile
#define ITEMS (TSM/WPTM*(TSN/WPTN))          // work-items of a work-group
#define KA (ITEMS*WIDTH/TSM)                 // steps of k of A's tile that a work-group copies at once
#define LPTA (TSK/KA)                        // vectors of A's tile a work-item copies
#define PAD (4*(1 - TRANSPOSED))             // floats added to each row of Btile against bank conflicts

// where a work-item's elements are: the row of acc[][wm] and the column of acc[wn] inside the tile, and the first of 4
// elements in a partial tile of the workspace
#define ROW(wm) (tm + (wm)*WARPM)
#define COLUMN(wn) (tn + (wn)/4*4*WARPN + (wn)%4)
#define PIECE(piece, wm, wn) pieces[((size_t)(piece)*TSN + COLUMN(wn))*TSM + ROW(wm)]

// the parts of the text; a condition says which settings need a part, and reads the same in C and in Python
#if TURNED
#include "warp_tiling/c_turned.cl"
#endif
#if TURNED == 0
#include "warp_tiling/c.cl"
#endif
#if ASYNC * NVIDIA
#include "copy_async.cl"
#endif
#if ASYNC * NVIDIA == 0
#include "copy_plain.cl"
#endif
#if TRANSPOSED
#include "warp_tiling/load_b_transposed.cl"
#endif
#if TRANSPOSED == 0
#include "warp_tiling/load_b.cl"
#endif
#include "warp_tiling/load.cl"
#include "warp_tiling/fragments.cl"
#if NVIDIA
#include "fence.cl"
#endif
#include "warp_tiling/kernel.cl"

#if !(TSM % (WPTM * WARPM) == 0)
#error TSM is not a multiple of WPTM*WARPM
#endif
#if !(32 % WARPM == 0)
#error WARPM does not divide 32
#endif
#if !(TSN * WARPM % (WPTN * 32) == 0)
#error TSN is not a multiple of WPTN times 32 over WARPM
#endif
#if !(WPTM % 4 == 0)
#error WPTM is not a multiple of 4
#endif
#if !(WPTN % 4 == 0)
#error WPTN is not a multiple of 4
#endif
#if !((WIDTH - 1) * (WIDTH - 4) == 0)
#error WIDTH is neither 1 nor 4
#endif
#if !(TSN * WIDTH % (WPTM * WPTN) == 0)
#error TSN times WIDTH is not a multiple of WPTM times WPTN
#endif
#if !(TSM * WIDTH % (WPTM * WPTN) == 0)
#error TSM times WIDTH is not a multiple of WPTM times WPTN
#endif
#if !((TSK * WPTM * WPTN) % (TSN * WIDTH) == 0)
#error TSK times WPTM times WPTN is not a multiple of TSN times WIDTH
#endif
#if !((TSK * WPTM * WPTN) % (TSM * WIDTH) == 0)
#error uneven shares of a tile: TSK times WPTM times WPTN is not a multiple of TSM times WIDTH
#endif
#if !(STAGES > 1)
#error STAGES is less than 2
#endif
#if !(TSK % 2 == 0)
#error TSK is odd
#endif
#if !((TSM * TSN) % (TSK * WPTM * WPTN) == 0)
#error TSM times TSN is not a multiple of TSK times WPTM times WPTN
#endif
#if !((8 * WPTM * WPTN) % TSM == 0)
#error 8 times WPTM times WPTN is not a multiple of TSM
#endif
#if !((BATCHES > 0) * (BATCHES < TSK) == 1)
#error BATCHES is not between 1 and TSK minus 1
#endif
#if !(TAIL < 2)
#error TAIL is neither 0 nor 1
#endif
#if !(TRANSPOSED < 2)
#error TRANSPOSED is neither 0 nor 1
#endif
#if !(GROUPS < 65536)
#error GROUPS is not below 65536
#endif
#if !(ASYNC < 2)
#error ASYNC is neither 0 nor 1
#endif
