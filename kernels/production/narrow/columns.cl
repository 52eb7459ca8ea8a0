// C has few columns: each work-item computes its own rows
#define EACH WARPS
#define FIRST warp
#define ELEMENT(k, r) *(const __global vector*)(from + (size_t)(k)*ld + min(32*WIDTH*(r), most))
#define FACTOR(k, j) lines[(k)*LINES + (j)]
#define factor float
