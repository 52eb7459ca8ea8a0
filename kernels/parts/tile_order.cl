// the row and the column of a tile of C, in tiles. Tiles are numbered down the columns of bands of
// ORDER rows of tiles; the last band may be lower.
static inline int2 place_of(const int tile, const int tiles_m, const int tiles_n)
{
    const int band = tile/(ORDER*tiles_n)*ORDER; // first row of the band
    const int rows = min(ORDER, tiles_m - band);
    const int i = tile%(ORDER*tiles_n);          // number of the tile in the band
    return (int2)(band + i%rows, i/rows);
}
