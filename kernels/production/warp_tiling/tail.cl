        // the steps of k after the last whole tiles of A and B
        #pragma unroll 1
        for (int k = 0; k < depth%TSK; k++) {
            FRAGMENT(k, 0)
            MULTIPLY(0)
        }
