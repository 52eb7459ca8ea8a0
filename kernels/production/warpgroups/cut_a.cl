        // cut: split this tile of A, for the first and for the second instruction
        float a[TSK/8][2][4], a_small[TSK/8][2][4];
        for (int l = 0; l < TSK/4; l++) {
            CUT_A(raw[l].x, a[l/2][0][l%2*2], a_small[l/2][0][l%2*2])
            CUT_A(raw[l].y, a[l/2][0][l%2*2 + 1], a_small[l/2][0][l%2*2 + 1])
            CUT_A(raw[l].z, a[l/2][1][l%2*2], a_small[l/2][1][l%2*2])
            CUT_A(raw[l].w, a[l/2][1][l%2*2 + 1], a_small[l/2][1][l%2*2 + 1])
        }
