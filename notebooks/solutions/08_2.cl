        // load: RTS columns of B's tile at a time; A's tile as copies of TS columns
        for (int j0 = 0; j0 < TS; j0 += RTS) {
            const int j = j0 + tn;           // column of the tile
            Btile[j][tm] = B[(n0 + j)*K + k0 + tm];
        }
        event_t copied = 0;
        for (int k = 0; k < TS; k++) {
            copied = async_work_group_copy(&Atile[k][0], &A[(k0 + k)*M + m0], TS, copied);
        }
        wait_group_events(1, &copied);
