// where an element of C is, if the launch stores its transpose, N x M; fixup.cl cannot store that
#define C_AT(m, n) C[(size_t)(m)*N + (n)]
