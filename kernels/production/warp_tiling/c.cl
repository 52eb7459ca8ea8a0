// where an element of C is
#define C_AT(m, n) C[(size_t)(n)*M + (m)]
