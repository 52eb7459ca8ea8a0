// transpose: write a P x Q matrix as its Q x P transpose (both column-major).
//
// Idea:     a tile goes through local memory, so that both the loads and the
//           stores of neighbouring work-items are neighbours in memory.
// Costs:    TT*(TT+1) floats of local memory; one load and one store an element.
//           The extra column keeps a column of the tile out of a single bank.
// Requires: nothing; elements outside the matrix are left alone.

#ifndef TT
#define TT 16 // side of the square tile, in elements
#endif

__kernel __attribute__((reqd_work_group_size(TT, TT, 1)))
void transpose(const int P, const int Q,
               const __global float* restrict in,
               __global float* restrict out)
{
    // identifiers
    const int tx = get_local_id(0);
    const int ty = get_local_id(1);
    const int p0 = get_group_id(0)*TT;       // first row of the tile
    const int q0 = get_group_id(1)*TT;       // first column of the tile

    // local memory
    __local float tile[TT][TT + 1];

    // load
    if (p0 + tx < P && q0 + ty < Q) {
        tile[ty][tx] = in[(long)(q0 + ty)*P + p0 + tx];
    }

    // barrier: the tile is complete
    barrier(CLK_LOCAL_MEM_FENCE);

    // store: rows and columns exchanged
    if (q0 + tx < Q && p0 + ty < P) {
        out[(long)(p0 + ty)*Q + q0 + tx] = tile[tx][ty];
    }
}
