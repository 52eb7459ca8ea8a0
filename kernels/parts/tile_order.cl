// the place of a tile in C: its row and its column of tiles. Tiles are numbered down the columns of
// a band of ORDER rows of tiles, then down those of the next band; the last band may be lower. So
// the tiles that are computed at the same time form a block, and share rows of A and columns of B,
// which the L2 cache, between the chip and its memory, then has to load only once
static inline int2 place_of(const int tile, const int tiles_m, const int tiles_n)
{
    const int band = tile/(ORDER*tiles_n)*ORDER; // first row of the band
    const int rows = min(ORDER, tiles_m - band); // rows of the band
    const int i = tile%(ORDER*tiles_n);          // number of the tile in the band
    return (int2)(band + i%rows, i/rows);
}
