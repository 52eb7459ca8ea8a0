// transpose: write a P x Q matrix as its Q x P transpose (both column-major).
//
// Idea:     each tile passes through local memory. That way neighbouring work-items both
//           load and store neighbouring floats.
// Costs:    TT*(TT+1) floats of local memory. Without the extra float per row, a column of
//           the tile would be in a single bank. One load and one store per element; a
//           work-item does TT/TR of each, and all its loads are in flight at the same time.
// Requires: TT is a multiple of TR. LD is the leading dimension of the input, and offset is
//           the index of its first element, so the input may be a block of a larger matrix.
//           The leading dimension of the output is Q_XL, at least Q; its columns are padded
//           with zeros.

#ifndef TT
#define TT 32 // side of the square tile, in elements
#endif
#ifndef TR
#define TR 8 // columns that a work-group moves in one step
#endif

__kernel __attribute__((reqd_work_group_size(TT, TR, 1)))
void transpose(const int P, const int Q, const int LD, const long offset,
               const __global float* restrict in,
               const int Q_XL,
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
    for (int i = ty; i < TT; i += TR) {
        const int there = p0 + tx < P && q0 + i < Q;
        tile[i][tx] = there ? in[offset + (long)(q0 + i)*LD + p0 + tx] : 0.0f;
    }

    // barrier: the tile is complete
    barrier(CLK_LOCAL_MEM_FENCE);

    // store: rows and columns exchanged
    for (int i = ty; i < TT; i += TR) {
        if (q0 + tx < Q_XL && p0 + i < P) {
            out[(long)(p0 + i)*Q_XL + q0 + tx] = tile[tx][i];
        }
    }
}
