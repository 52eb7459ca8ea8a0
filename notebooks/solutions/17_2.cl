        // which tile, and which of its slices
        const int tile = slice/(K/TSK);
        const int tiles_m = M/TSM;
        const int tiles_n = N/TSN;
        const int band = tile/(ORDER*tiles_m)*ORDER; // its first column of tiles
        const int columns = min(ORDER, tiles_n - band);
        const int m0 = tile%(ORDER*tiles_m)/columns*TSM;
        const int n0 = (band + tile%(ORDER*tiles_m)%columns)*TSN;
        const int first = slice%(K/TSK);     // its first slice here
        const int count = min(K/TSK - first, end - slice); // and how many there are
