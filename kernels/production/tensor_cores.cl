// tensor cores: a warp multiplies small matrices with one instruction.
//
// Before:   warp_tiling. The tiles are copied as there, but a warp's block is cut into
//           blocks of 16 x 8, and one instruction (mma.sync) adds to each the product of a
//           16 x 8 and an 8 x 8 matrix. It takes TF32 numbers, which keep 10 of a float's 23
//           bits after the point. PARTS = 2 recovers the rest (3xTF32): a float is split into
//           a big and a small part, and three products of such parts stand for one (Ootomo
//           and Yokota 2022). The sums of tensor cores are truncated; EVERY, the promotion
//           interval, says how often they move into ordinary floats.
// Costs:    STAGES*TSK*(TSM + TSN + 2*PAD) floats of local memory; WM*WN/32 accumulators, and
//           as many again if EVERY > 1; 1/TSM + 1/TSN global and 1/WM + 1/WN local loads per
//           multiply-add, the local ones 4 at a time.
// Requires: any M, N and K: elements outside the matrices count as zero, and nothing is
//           stored there. B is transposed (N x K). Leading dimensions: for A and B, M and N
//           rounded up to a multiple of 4; for C, M. TSM must be a multiple of WM, TSN of WN,
//           WM and WN of 32, TSK of 8. Without tensor cores the kernel computes the same
//           products in ordinary arithmetic, which is very slow.
//
//    Which elements of a 32 x 32 block of C a work-item holds (g = lane/4, t = lane%4):
//
//              n = 8t + j     8t + 4 + j     for j = 0 ... 3, one instruction each
//    m = 4g         x             x          first instruction, its "row g"
//        4g + 1     x             x          first instruction, its "row g + 8"
//        4g + 2     x             x          second
//        4g + 3     x             x          second
//
//    The instruction numbers rows and columns in its own way. We assign them to the rows and
//    columns of C in a different order, so that the floats that a work-item loads for a step
//    of k, and those that it stores, are 4 neighbours.
//
// Compile:  -DTSM=128   rows of the tile of C [32, 64, 128]
//           -DTSN=128   columns of the tile of C [32, 64, 128]
//           -DTSK=8     depth of the tiles of A and B, in steps of k [8, 16, 32]
//           -DWM=64     rows of a warp's block of C [32, 64]
//           -DWN=64     columns of a warp's block of C [32, 64]
//           -DSTAGES=3  tiles of A and B in local memory: one in use, the others being filled [2, 3]
//           -DPAD=8     floats added to each row of Atile and Btile against bank conflicts [0, 8]
//           -DORDER=8   rows of tiles in a band that neighbouring work-groups go through together (swizzle) [1, 8]
//           -DPARTS=2   TF32 numbers that stand for a float: 1 (plain TF32) or 2 (3xTF32) [1, 2]
//           -DEVERY=1   promotion interval, in units of 8 steps of k: when a sum moves into a float; 0: only at the end [0, 1, 2, 8]
//           -DTENSOR=1  1: tensor cores where the device has them; 0: the same products in ordinary arithmetic [0, 1]

// 1 where the compiler is NVIDIA's, which takes PTX
#ifdef __NV_CL_C_VERSION
#define NVIDIA 1
#else
#define NVIDIA 0
#endif

#define ITEMS (TSM/WM*(TSN/WN)*32)           // work-items of a work-group
#define KA (ITEMS*4/TSM)                     // rows of A's tile that a work-group copies at once
#define KB (ITEMS*4/TSN)                     // rows of B's tile
#define LPTA (TSK/KA)                        // vectors of A's tile a work-item copies
#define LPTB (TSK/KB)                        // vectors of B's tile

// the parts of the text; a condition says which settings need a part, and reads the same in C and in Python
#if TENSOR * NVIDIA
#include "copy_async.cl"
#endif
#if TENSOR * NVIDIA == 0
#include "copy_plain.cl"
#endif
#include "tensor_cores/load.cl"
#include "tf32.cl"
#if TENSOR * NVIDIA
#include "tensor_cores/mma.cl"
#endif
#if TENSOR * NVIDIA == 0
#include "tensor_cores/product.cl"
#endif
#include "tensor_cores/kernel.cl"

#if !(TSM % WM == 0)
#error TSM is not a multiple of WM
#endif
#if !(TSN % WN == 0)
#error TSN is not a multiple of WN
#endif
#if !(WM % 32 == 0)
#error WM is not a multiple of 32
#endif
#if !(WN % 32 == 0)
#error WN is not a multiple of 32
#endif
#if !(TSK % 8 == 0)
#error TSK is not a multiple of 8
#endif
#if !(128 * TSN % (WM * WN) == 0)
#error 128 times TSN is not a multiple of WM times WN
#endif
#if !(128 * TSM % (WM * WN) == 0)
#error 128 times TSM is not a multiple of WM times WN
#endif
#if !((TSK * WM * WN) % (128 * TSN) == 0)
#error TSK times WM times WN is not a multiple of 128 times TSN
#endif
#if !((TSK * WM * WN) % (128 * TSM) == 0)
#error TSK times WM times WN is not a multiple of 128 times TSM
#endif
#if !(STAGES > 1)
#error STAGES is less than 2
#endif
#if !(PAD % 4 == 0)
#error PAD is not a multiple of 4
#endif
#if !((PARTS - 1) * (PARTS - 2) == 0)
#error PARTS is neither 1 nor 2
#endif
#if !(TENSOR < 2)
#error TENSOR is neither 0 nor 1
#endif
