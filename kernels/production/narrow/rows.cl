// C has few rows: each work-item sums its own steps of k
#define EACH (32*WIDTH)                       // from one step of a work-item to its next
#define FIRST (lane*WIDTH)
#define ELEMENT(k, r) *(const __global vector*)(from + (size_t)min(WARPS*(r), most)*ld + (k))
#define FACTOR(k, j) *(const __local vector*)&lines[(j)*TSK + (k)]
#define factor vector
