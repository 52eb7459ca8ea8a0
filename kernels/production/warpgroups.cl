// warpgroups: four warps multiply with one instruction, and go on while it runs.
//
// Before:   tensor_cores. Its instruction makes the warp wait and needs both matrices in
//           registers. This one (wgmma, on Hopper) multiplies 64 x 8 by 8 x 128 for the 128
//           work-items of a warpgroup, reads B from local memory by itself and does not make
//           them wait. So B is split into its parts once for the whole work-group, while the
//           tile before is multiplied, and each work-item loads what it needs of A from
//           global memory directly into registers. The sums move into ordinary floats once
//           per tile, after TSK/8 steps of the instruction.
// Costs:    (STAGES + 2)*TSK*(TSN + 2) floats of local memory; 128 accumulators, and 64
//           registers for the sums that are still in the tensor cores; 1/TSM + 1/TSN global
//           loads per multiply-add, and hardly any local ones, since the instruction reads
//           local memory by itself.
// Requires: any M, N and K: elements outside the matrices count as zero, and nothing is
//           stored there. Leading dimensions: for A (M x K) and B (K x N, not transposed), M
//           and K rounded up to a multiple of 4; for C, M. TSK must be a multiple of 8.
//           OpenCL's compiler does not know the instruction, so each one is hidden in a
//           comment that starts with "//@". gemmlab/opencl/build.py removes these marks from
//           the PTX that the compiler returns and declares Hopper as its target. Where this
//           has not been done, C becomes NaN.
//           Between an instruction and FINISH there must be no loop that the compiler does
//           not unroll: it would then wait after every instruction, which takes four times as
//           long. Without such tensor cores the kernel computes the same products in ordinary
//           arithmetic, which is very slow.
//
//    Which elements of the tile of C a work-item holds (warp w, g = lane/4, t = lane%4):
//
//                    n = 8j + 2t    8j + 2t + 1     for j = 0 ... 15
//    m = 32w + 4g         x              x          first instruction
//        32w + 4g + 1     x              x          first
//        32w + 4g + 2     x              x          second
//        32w + 4g + 3     x              x          second
//
//    B's tile is stored in the order that the instruction needs, with 4 steps of k side by
//    side: [k/4][n][k%4].
//
// Compile:  -DTSK=16    depth of the tiles of A and B, in steps of k [8, 16]
//           -DSTAGES=3  tiles of B in local memory: one in use, the others being filled [3, 4]
//           -DORDER=8   rows of tiles in a band that neighbouring work-groups go through together (swizzle) [1, 8]
//           -DPARTS=2   TF32 numbers that stand for a float: 1 (plain TF32) or 2 (3xTF32) [1, 2]
//           -DTENSOR=1  1: tensor cores where the device has them; 0: the same products in ordinary arithmetic [0, 1]

// 1 where the compiler is NVIDIA's, which takes PTX
#ifdef __NV_CL_C_VERSION
#define NVIDIA 1
#else
#define NVIDIA 0
#endif

#define TSM (64*2*2)                         // rows of the tile of C: 64 for each of 2 instructions of 2 warpgroups
#define TSN (128)                            // columns of the tile of C
#define ITEMS (128*2)                        // work-items of a work-group
#define NB (4*ITEMS/TSK)                     // columns of B's tile that a work-group copies at once
#define LPTB (TSN/NB)                        // vectors of B's tile a work-item copies
#define ROW (TSN + 2)                        // vectors in a row of B's tile; 2 more against bank conflicts

// the parts of the text; a condition says which settings need a part, and reads the same in C and in Python
#include "tf32.cl"
#if TENSOR * NVIDIA
#include "warpgroups/wgmma.cl"
#endif
#if TENSOR * NVIDIA == 0
#include "warpgroups/copy_plain.cl"
#endif
#include "warpgroups/load.cl"
#include "warpgroups/kernel.cl"

#if !(TSK % 8 == 0)
#error TSK is not a multiple of 8
#endif
#if !(STAGES > 2)
#error STAGES is less than 3
#endif
#if !((PARTS - 1) * (PARTS - 2) == 0)
#error PARTS is neither 1 nor 2
#endif
#if !(TENSOR < 2)
#error TENSOR is neither 0 nor 1
#endif
