    // which tile: down a band of ORDER rows of tiles, then on to the next column of the band
    const int tiles_m = (M - 1)/TSM + 1;
    const int tiles_n = (N - 1)/TSN + 1;
    const int tile = get_group_id(0);
    const int band = tile/(ORDER*tiles_n)*ORDER;
    const int rows = min(ORDER, tiles_m - band);
    const int m0 = (band + tile%(ORDER*tiles_n)%rows)*TSM;
    const int n0 = tile%(ORDER*tiles_n)/rows*TSN;
