    // where the tile is: down a band of ORDER rows of tiles, then on to the next column of the band
    const int band = tile/(ORDER*tiles_n)*ORDER;
    const int rows = min(ORDER, tiles_m - band);
    const int m0 = (band + tile%(ORDER*tiles_n)%rows)*TSM; // its first row in C
    const int n0 = tile%(ORDER*tiles_n)/rows*TSN;          // its first column
