// copy 4 floats from global to local memory; store zeroes if they are outside the matrix
#define COPY(to, from, there) *(__local float4*)(to) = (there) ? *(const __global float4*)(from) : (float4)(0.0f)
#define COPIED()
#define AWAIT(batches)
