// copy 4 floats or 1 from global to local memory; store zeroes if they are outside the matrix
#define COPY_4(to, from, there) *(__local float4*)(to) = (there) ? *(const __global float4*)(from) : (float4)(0.0f)
#define COPY_1(to, from, there) *(to) = (there) ? *(from) : 0.0f
#define COPIED()
#define AWAIT(tiles)
