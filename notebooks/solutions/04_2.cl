        // compute
        for (int k = 0; k < TS; k++) {
            acc = fma(Atile[k][tm], (floatX)(Bf[tn*TS + k]), acc);
        }
