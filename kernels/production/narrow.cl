// narrow: a product with few rows or few columns, such as a matrix times a vector, at the speed of memory.
//
// Idea:     one operand is long, and each of its elements is used a few times only: it goes straight from global
//           memory into registers, in an order in which neighbouring work-items read neighbouring elements. What it
//           is multiplied with, a few lines of the other operand, waits in local memory.
// Costs:    LINES*TSK floats of local memory, and some for the sums; every element of the long operand is loaded once.
//           With GROUPS also a workspace of 2*GROUPS partial tiles and GROUPS counters, which must be zero before
//           the first launch and are zero after each.
// Requires: any M, N and K. Leading dimensions: for A, M rounded up to a multiple of WIDTH if ROWS is 0, else M; for
//           B, K rounded up likewise if ROWS is 1, else K, where what is added is zero; for C, M.
//
//    ROWS = 0: C has few columns, and A is the long operand. A warp reads down a column of A; the eight warps of a
//    work-group go through every eighth column and add up their sums at the end:
//
//             k  0 1 2 ... 8 9            B: TSK x LINES in local memory
//    m 0 to 127  0 1 2     0 1            each number is a warp: 32 work-items with WPT vectors of WIDTH rows each
//
//    ROWS = 1: C has few rows, and B is the long operand. A warp reads down WPT columns of B at a time, each lane
//    keeps its own sums, and the lanes' sums are added up at the end.
//
//    As in warp tiling the steps of k of all tiles form one line, which is cut into GROUPS pieces of equal length; the
//    last work-group to finish its part of a tile adds up all parts.
//
// Compile:  -DLINES=4   columns of C that a tile has, or rows if ROWS is 1 [1, 2, 4, 8, 16]
//           -DROWS=0    1: C has few rows; 0: C has few columns [0, 1]
//           -DTSK=256   steps of k for which the lines of the short operand wait in local memory [128, 256, 512]
//           -DWPT=1     loads of the long operand that a work-item makes at a time: of its rows, or of columns if ROWS is 1 [1, 2, 4]
//           -DWIDTH=4   floats of the long operand in a load [1, 4]
//           -DGROUPS=0  work-groups that share all tiles equally; 0: one work-group per tile [0, 16, 264]

// 1 where the compiler is NVIDIA's, which takes PTX
#ifdef __NV_CL_C_VERSION
#define NVIDIA 1
#else
#define NVIDIA 0
#endif

#define ITEMS 256                             // work-items of a work-group
#define WARPS (ITEMS/32)
#define LONG (ROWS ? WARPS*WPT : 32*WIDTH*WPT) // rows of A, or columns of B, in a tile
#define SUMS (LONG*LINES)                     // elements of a tile
#define OWN (WPT*LINES*(ROWS ? 1 : WIDTH))    // sums that a work-item keeps
#define AT_ONCE (OWN < 8 ? OWN : 8)           // how many of these are added up at once
#if WIDTH == 4
#define vector float4
#else
#define vector float
#endif

// the parts of the text; a condition says which settings need a part, and reads the same in C and in Python
#if NVIDIA
#include "fence.cl"
#endif
#if NVIDIA == 0
#define IN_ORDER() mem_fence(CLK_GLOBAL_MEM_FENCE)
#endif
#if ROWS
#include "narrow/rows.cl"
#endif
#if ROWS == 0
#include "narrow/columns.cl"
#endif
#include "narrow/kernel.cl"

#if !(ROWS < 2)
#error ROWS is neither 0 nor 1
#endif
#if !((WIDTH - 1) * (WIDTH - 4) == 0)
#error WIDTH is neither 1 nor 4
#endif
#if !(TSK % (8 + ROWS * (32 * WIDTH - 8)) == 0)
#error TSK is not a multiple of 8, or with ROWS of 32 times WIDTH
#endif
#if !(LINES < 33)
#error LINES is more than 32
#endif
#if !(GROUPS < 65536)
#error GROUPS is not below 65536
#endif
