// 18 tensor cores: a warp multiplies small matrices with one instruction.
//
// Before:   16_async_copies. Tiles are copied as there, but a warp's block of 64 x 64 consists of pieces of 16 x 8, and
//           one instruction (mma.sync) adds a 16 x 8 matrix times an 8 x 8 matrix to a piece. It reads TF32 numbers,
//           which keep 10 of a float's 23 bits after the point. PARTS = 2 recovers the rest (3xTF32, Ootomo and Yokota
//           2022): a float is split into a big and a small part, and three products of parts stand for one.
// Costs:    STAGES*TSK*(TSM + TSN + 16) floats of local memory, 128 accumulators; 1/TSM + 1/TSN global and 1/64 + 1/64
//           local loads per multiply-add.
// Requires: M, N and K multiples of TSM, TSN and TSK (padded to them). B transposed, N x K.
//
//    Work-item 4g + t (g = 0 ... 7, t = 0 ... 3) holds rows g and g + 8 and columns 2t and 2t + 1 of each piece. Which
//    rows of C these are is for us to choose: it gets 4g ... 4g + 3 of 32 rows, so that it loads and stores neighbours.
//
// Compile:  -DTSM=128   rows of the tile of C [64, 128]
//           -DTSN=128   columns of the tile of C [64, 128]
//           -DTSK=8     depth of the tiles of A and B, in steps of k [8, 16]
//           -DSTAGES=3  tiles of A and B in local memory: one in use, the others being filled [2, 3, 4]
//           -DPARTS=2   TF32 numbers that stand for a float: 1 (plain TF32) or 2 (3xTF32) [1, 2]
//           -DTENSOR=1  1: tensor cores where the device has them; 0: the same products in ordinary arithmetic [0, 1]

#define PAD (8)                     // floats added to each row of the tiles against bank conflicts
#define ITEMS (TSM/64*(TSN/64)*32)  // work-items in a work-group

// copy: 4 floats from global to local memory, as in 16_async_copies
#if TENSOR && defined(__NV_CL_C_VERSION)
#define COPY(to, from) \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"((uint)(size_t)(to)), "l"(from) : "memory")
#define COPIED() asm volatile("cp.async.commit_group;" ::: "memory")
#define AWAIT(batches) asm volatile("cp.async.wait_group %0;" :: "n"(batches) : "memory")
// sum += a b, of parts of floats: a work-item holds 4 elements of a, 2 of b and 4 of the sum
#define MMA(sum, PART_A, a, PART_B, b) \
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 " \
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]) \
        : "r"(as_uint(PART_A(a[0]))), "r"(as_uint(PART_A(a[1]))), "r"(as_uint(PART_A(a[2]))), \
          "r"(as_uint(PART_A(a[3]))), "r"(as_uint(PART_B(b[0]))), "r"(as_uint(PART_B(b[1]))))
#else
#define COPY(to, from) *(__local float4*)(to) = *(const __global float4*)(from)
#define COPIED()
#define AWAIT(batches)
#endif

// load: a tile, whose columns have `side` floats, ITEMS vectors of 4 at a time
static inline void load(__local float* tile, const __global float* from, const int ld, const int side)
{
    const int id = 4*get_local_id(0);
    for (int k = 0; k < TSK; k += 4*ITEMS/side) {
        COPY(&tile[(k + id/side)*(side + PAD) + id%side], &from[(k + id/side)*ld + id%side]);
    }
}

// the parts of a float: rounded to 10 bits after the point, and the rest, of which an instruction reads as many
#define BIG(x) as_float((as_uint(x) + 0x1000u) & 0xffffe000u)
#define SMALL(x) as_float(as_uint((x) - BIG(x)) & 0xffffe000u)

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void gemm(const int M, const int N, const int K,
          const __global float* restrict A, const __global float* restrict B, __global float* restrict C)
{
    // identifiers
    const int g = get_local_id(0)%32/4;      // which 4 rows of 32
    const int t = get_local_id(0)%4;         // which steps of k, and which columns
    const int tm = get_local_id(0)/32%(TSM/64)*64 + 4*g;     // first row in the tile of C
    const int tn = get_local_id(0)/32/(TSM/64)*64;           // first column of the warp in the tile of C
    const int m0 = get_group_id(0)*TSM; const int n0 = get_group_id(1)*TSN; // first row and column of the tile of C

    // local memory: a stage to compute from, and the others to fill
    __local float Atile[STAGES][TSK][TSM + PAD] __attribute__((aligned(16))); // [stage][k][m]
    __local float Btile[STAGES][TSK][TSN + PAD] __attribute__((aligned(16))); // [stage][k][n]

    // accumulators: of 4 x 8 instructions, 4 elements each
    float acc[4][8][4] = {{{0.0f}}};

    // one turn starts copies of a tile, and multiplies the tile of STAGES - 1 turns before
    for (int k1 = 0; k1 < K + (STAGES - 1)*TSK; k1 += TSK) {
        const int next = k1/TSK%STAGES;      // the stage to fill
        const int now = (next + 1)%STAGES;   // the stage to compute from, filled longest ago
        // barrier: tile `now` has arrived for all, and nobody needs tile `next` any more
        AWAIT(STAGES - 2); barrier(CLK_LOCAL_MEM_FENCE);

        // load: start copies, while we compute
        if (k1 < K) {
            load(Atile[next][0], A + k1*M + m0, M, TSM);
            load(Btile[next][0], B + k1*N + n0, N, TSN);
        }
        COPIED();
        if (k1 < (STAGES - 1)*TSK) continue; // nothing has arrived yet

        // compute
#if TENSOR && defined(__NV_CL_C_VERSION)
        for (int k = 0; k < TSK; k += 8) {
            float a[4][4], b[8][2];          // what each instruction reads
            for (int h = 0; h < 2; h++) { for (int x = 0; x < 2; x++) {
                const float4 p = *(const __local float4*)&Atile[now][k + t + 4*h][tm + 32*x];
                const float4 q = *(const __local float4*)&Btile[now][k + t + 4*h][tn + 32*x + 4*g];
                a[2*x][2*h] = p.x, a[2*x][2*h + 1] = p.y, a[2*x + 1][2*h] = p.z, a[2*x + 1][2*h + 1] = p.w;
                b[4*x][h] = q.x, b[4*x + 1][h] = q.y, b[4*x + 2][h] = q.z, b[4*x + 3][h] = q.w;
            } }
            for (int i = 0; i < 4; i++) { for (int j = 0; j < 8; j++) {
#if PARTS == 1
                MMA(acc[i][j], BIG, a[i], BIG, b[j]);
#else
                float sum[4] = {0.0f};       // tensor cores cut their sums off: 8 steps of k, then a float adds
                MMA(sum, SMALL, a[i], BIG, b[j]);
                MMA(sum, BIG, a[i], SMALL, b[j]);
                MMA(sum, BIG, a[i], BIG, b[j]);
                for (int e = 0; e < 4; e++) { acc[i][j][e] += sum[e]; }
#endif
            } }
        }
#else
        for (int e = 0; e < 4*8*4; e++) {
            const int m = tm + e/64*32 + e/32%2*2 + e/2%2; const int n = tn + e/16%2*32 + 8*t + e%2*4 + e/4%4;
            for (int k = 0; k < TSK; k++) {
                const float a = Atile[now][k][m], b = Btile[now][k][n];
                acc[e/32][e/4%8][e%4] += (PARTS - 1)*(SMALL(a)*BIG(b) + BIG(a)*SMALL(b)) + BIG(a)*BIG(b);
            }
        }
#endif
    }

    // store: four rows at a time
    for (int i = 0; i < 4; i += 2) { for (int j = 0; j < 8; j++) { for (int h = 0; h < 2; h++) {
        const int n = n0 + tn + j/4*32 + 8*t + 4*h + j%4;
        const float4 rows = (float4)(acc[i][j][h], acc[i][j][h + 2], acc[i + 1][j][h], acc[i + 1][j][h + 2]);
        *(__global float4*)&C[n*M + m0 + tm + 16*i] = rows;
    } } }
}

#if !(TSM % 64 + TSN % 64 + TSK % 8 == 0)
#error TSM or TSN is not a multiple of 64, or TSK is not one of 8
#endif
#if !(TSK * 32 % TSM + TSK * 32 % TSN == 0)
#error uneven shares of a tile: TSK times 32 is not a multiple of TSM and of TSN
#endif
#if !((STAGES > 1) * (TENSOR < 2) * (PARTS > 0) * (PARTS < 3) == 1)
#error STAGES is less than 2, TENSOR neither 0 nor 1, or PARTS neither 1 nor 2
#endif
