        // compute
        for (int k = 0; k < TSV; k++) {
            const floatX b = Btile[tn][k];   // WIDTH steps of k
            for (int w = 0; w < WIDTH; w++) {
                acc = fma(Atile[k*WIDTH + w][tm], (floatX)(LANE(b, w)), acc);
            }
        }
